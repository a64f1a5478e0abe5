"""Several run folders at once: the same three ways to look, one row or one line a run, each judged on its own."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import typer

from gyrecheck.commands.options import UndecidedAs, finish, write_stdout
from gyrecheck.commands.watch_look import Look, report_now
from gyrecheck.commands.watch_run import Alerts, feed_of, snapshot_object
from gyrecheck.model.errors import ExitCode, GyreError
from gyrecheck.model.finding import Report, Severity, State, Table, Verdict
from gyrecheck.screen.view import View


class Runs:
    """One feed and one set of alerts a run. Runs of one name are told apart by their paths."""

    def __init__(self, look: Look) -> None:
        if look.prometheus is not None:
            raise GyreError("--prometheus serves one run", hint="give one folder")
        self.looks = tuple(replace(look, targets=(target,)) for target in look.targets)
        self._feeds = [feed_of(one) for one in self.looks]
        self._alerts = [Alerts(one) for one in self.looks]
        names = [Path(target).resolve().name for target in look.targets]
        self._names = look.targets if len(set(names)) < len(names) else tuple(names)

    def poll(self) -> tuple[View, ...]:
        """The newest picture of each run."""
        views = tuple(replace(feed.poll(), run=name) for feed, name in zip(self._feeds, self._names, strict=True))
        for alerts, view in zip(self._alerts, views, strict=True):
            alerts.see(view)
        return views

    def close(self) -> None:
        """Stop reading."""
        for feed in self._feeds:
            feed.close()


def runs_once(look: Look) -> NoReturn:
    """All runs as one table and their gravest verdicts; in a machine format one report over all."""
    runs = Runs(look)
    if look.formats and look.formats != ("full",):
        _finish(look, merged(runs, [_report(one) for one in runs.looks], runs.poll()))
    from gyrecheck.screen.glyphs import Pen
    from gyrecheck.screen.panels import runs as table

    views = runs.poll()
    runs.close()
    lines = [table.body(views, Pen(ascii=look.ascii, color=False), 1000, len(views) + 1).plain, ""]
    for view in views:
        lines += [f"{view.run}: {v.severity.value}[{v.code}] {v.name}: {v.message}" for v in view.broken]
    write_stdout("\n".join(line.rstrip() for text in lines for line in text.split("\n")).rstrip() + "\n")
    raise typer.Exit(_code(look, tuple(v for view in views for v in view.verdicts)))


def runs_lines(look: Look) -> NoReturn:
    """One line a run and interval; ends when all runs have ended, at the timeout, or with Ctrl-C."""
    from gyrecheck.screen.export import plain_line

    runs, started, machine = Runs(look), time.monotonic(), "jsonl" in look.formats
    views, interrupted = runs.poll(), False
    try:
        while True:
            for view in views:
                write_stdout((json.dumps(snapshot_object(view)) if machine else f"{view.run} {plain_line(view)}") + "\n")
            left = None if look.timeout is None else look.timeout - (time.monotonic() - started)
            if (left is not None and left <= 0) or all(view.state == "ended" for view in views):
                break
            time.sleep(look.interval if left is None else min(look.interval, max(0.05, left)))
            views = runs.poll()
    except KeyboardInterrupt:
        interrupted = True
    runs.close()
    raise typer.Exit(int(ExitCode.INTERRUPTED) if interrupted else _code(look, tuple(v for view in views for v in view.verdicts)))


def runs_screen(look: Look, *, color: bool) -> NoReturn:
    """The screen for several runs."""
    from gyrecheck.screen.glyphs import Pen
    from gyrecheck.screen.runs_app import RunsApp

    runs = Runs(look)
    app = RunsApp(runs.poll, interval=look.interval, pen=Pen(ascii=look.ascii, color=color), timeout=look.timeout)
    app.run()
    runs.close()
    raise typer.Exit(_code(look, tuple(v for view in app.views for v in view.verdicts)))


def merged(runs: Runs, reports: list[Report], views: tuple[View, ...]) -> Report:
    """One report over all runs: a table of them, and every verdict with its run's name before its message."""
    from gyrecheck.screen.panels.runs import HEAD, cells

    named = tuple(
        replace(verdict, message=f"{view.run}: {verdict.message}")
        for view, report in zip(views, reports, strict=True)
        for verdict in report.verdicts
    )
    order = {State.BROKEN: 0, State.UNDECIDED: 1, State.HOLDS: 2}
    ranked = sorted(named, key=lambda v: (order[v.state], -v.severity.rank if v.state is not State.HOLDS else 0))
    table = Table(HEAD[1:], tuple(cells(view) for view in views), title="Runs")
    broken = sum(v.state is State.BROKEN and v.severity is not Severity.NOTE for v in named)
    return Report(
        command="watch",
        inputs=tuple(one.targets[0] for one in runs.looks),
        verdicts=tuple(ranked),
        tables={"runs": table},
        summary=f"{broken} broken verdicts in {len(views)} runs." if broken else f"No findings in {len(views)} runs.",
    )


def _report(look: Look) -> Report:
    try:
        return report_now(look)
    except GyreError as error:  # a run that has written nothing yet is no reason to hide the others
        return Report(command="watch", inputs=look.targets, skipped=(str(error),))


def _code(look: Look, verdicts: tuple[Verdict, ...]) -> int:
    from gyrecheck.verdict.severity import exit_code

    report = Report(command="watch", verdicts=verdicts)
    return 0 if look.exit_zero else int(exit_code(report, look.fail_on, undecided_ok=look.undecided is UndecidedAs.OK))


def _finish(look: Look, report: Report) -> NoReturn:
    finish(
        report,
        output_format=list(look.formats) or None,
        output=look.output,
        color=look.color,
        quiet=look.quiet,
        fail_on=look.fail_on,
        exit_zero=look.exit_zero,
        undecided=look.undecided,
        force=look.force,
    )
