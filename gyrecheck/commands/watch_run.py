"""The three ways to look: a screen, lines at an interval, one picture; and the alerts that all of them share."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from gyrecheck.commands.options import UndecidedAs, finish, write_stdout
from gyrecheck.commands.streams import write_stderr
from gyrecheck.commands.watch_look import Look, report_now
from gyrecheck.model.errors import ExitCode, GyreError
from gyrecheck.model.finding import Report, State, Verdict

if TYPE_CHECKING:
    from gyrecheck.model.live import HookedRun
    from gyrecheck.screen.feed import RunFeed
    from gyrecheck.screen.replay import ReplayFeed
    from gyrecheck.screen.view import View
    from gyrecheck.verdict.judge import Judgement


class Alerts:
    """Runs the user's command once a broken code, and again only after the hold-off. A command that fails is said, never raised."""

    def __init__(self, look: Look, clock: Callable[[], float] = time.monotonic) -> None:
        self._look, self._clock = look, clock
        self._last: dict[str, float] = {}
        self._running: list[subprocess.Popen[bytes]] = []

    def see(self, view: View) -> None:
        """Alert for what is newly broken at or above the fail level."""
        from gyrecheck.report.json import verdict_object

        self._running = [child for child in self._running if child.poll() is None]
        for verdict in view.broken:
            if verdict.severity.rank < max(1, self._look.fail_on.rank):
                continue
            now = self._clock()
            if now - self._last.get(verdict.code, -1e18) < self._look.hold_off:
                continue
            self._last[verdict.code] = now
            if self._look.bell:
                sys.stderr.write("\a")
                sys.stderr.flush()
            if self._look.on_breach:
                self._start({"run": view.run, **verdict_object(verdict)})

    def _start(self, verdict: dict[str, object]) -> None:
        try:
            child = subprocess.Popen(
                shlex.split(self._look.on_breach), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            if child.stdin is not None:
                child.stdin.write(json.dumps(verdict).encode())
                child.stdin.close()
            self._running.append(child)
        except (OSError, ValueError) as error:
            write_stderr(f"note: --on-breach could not run: {error}")


class HookedJudge:
    """The report of `gyrecheck run` over a run that goes on. What the program printed is read anew only now and then: it may be large."""

    def __init__(self, look: Look, clock: Callable[[], float] = time.monotonic) -> None:
        self._look, self._clock = look, clock
        self._due, self._printed = -1e18, tuple[Verdict, ...]()

    def __call__(self, run: HookedRun, judge_logs: Callable[[str], Judgement | None]) -> Report:
        """All verdicts over counters, events and output."""
        from gyrecheck.commands.run_report import judge_hook, judge_printed, report_of

        look = self._look
        live = judge_hook(run, topology=look.topology, chosen=look.chosen, extra=look.extra)
        began = self._clock()
        if began >= self._due:
            self._printed = judge_printed(Path(run.folder), run, topology=live.topology, chosen=look.chosen, extra=look.extra)
            self._due = self._clock() + max(2.0, 30 * (self._clock() - began))
        return report_of("watch", look.targets, live, judge_logs(live.topology), self._printed)


def feed_of(look: Look) -> RunFeed | ReplayFeed:
    """The feed that the options describe."""
    from gyrecheck.screen.feed import RunFeed
    from gyrecheck.stream.logs import Ask

    feed = RunFeed(
        targets=look.targets,
        codes=look.codes,
        ask=Ask(look.format, look.mapping, None, None, None, look.extra),
        topology=look.topology,
        chosen=look.chosen,
        max_age=look.max_age,
        pid=look.pid,
        hook_judge=HookedJudge(look),
    )
    if look.replay is None:
        return feed
    from gyrecheck.screen.replay import ReplayFeed

    return ReplayFeed(feed, look.replay)


def watch_once(look: Look) -> NoReturn:
    """One picture: text in 80 columns, or the report in a machine format."""
    if look.formats and look.formats != ("full",):
        _finish(look, report_now(look))
    if look.mapping and "-" not in look.targets:
        report_now(look)  # the ledger's sentence on a key that no log has
    from gyrecheck.screen.plain import page

    feed = feed_of(look)
    view = feed.poll()
    while "-" in look.targets and view.state != "ended":
        time.sleep(0.05)
        view = feed.poll()
    feed.close()
    write_stdout(page(view, ascii_only=look.ascii))
    raise typer.Exit(_code(look, view) if view.counters or view.verdicts else int(ExitCode.UNDECIDED))


def watch_lines(look: Look) -> NoReturn:
    """One line an interval, then the ledger's report; ends with the run, at the timeout, or with Ctrl-C."""
    from gyrecheck.screen.export import plain_line

    feed = feed_of(look)
    alerts, stop = Alerts(look), _prometheus(look, lambda: view)
    machine = "jsonl" in look.formats
    started = time.monotonic()
    view = feed.poll()
    interrupted = False
    try:
        while True:
            line = json.dumps(snapshot_object(view)) if machine else plain_line(view)
            write_stdout(line + "\n")
            alerts.see(view)
            over = look.timeout is not None and time.monotonic() - started >= look.timeout
            if over or view.state == "ended" or (look.until_exit and look.pid is not None and not _alive(look.pid)):
                break
            time.sleep(min(look.interval, max(0.05, look.timeout - (time.monotonic() - started))) if look.timeout else look.interval)
            view = feed.poll()
    except KeyboardInterrupt:
        interrupted = True
    feed.close()
    stop()
    if machine:
        raise typer.Exit(int(ExitCode.INTERRUPTED) if interrupted else _code(look, view))
    if view.counters or view.verdicts:
        _finish(look, replace(_last_report(look, feed), partial=interrupted))
    raise typer.Exit(int(ExitCode.INTERRUPTED) if interrupted else int(ExitCode.UNDECIDED))


def _last_report(look: Look, feed: RunFeed | ReplayFeed) -> Report:
    """The ledger's report; of what came through a pipe, over what the feed has read, since it comes only once."""
    from gyrecheck.screen.feed import RunFeed

    if "-" not in look.targets or not isinstance(feed, RunFeed) or feed.judged is None:
        return report_now(look)
    from gyrecheck.commands.ledger_report import report_of

    made = report_of(
        feed.judged,
        feed.snapshot,
        look.targets,
        topology=look.topology,
        reason="declared" if look.topology else "",
        explain=False,
        per_step=False,
    )
    return replace(made, command="watch")


def watch_screen(look: Look, *, color: bool) -> NoReturn:
    """The Textual screen; leaving it prints the ledger's report."""
    from gyrecheck.screen.app import WatchApp
    from gyrecheck.screen.glyphs import Pen

    newest: list[View] = []
    alerts = Alerts(look)
    feed = feed_of(look)

    class Watched:
        """The feed, with alerts and the exporter looking on."""

        def poll(self) -> View:
            view = feed.poll()
            newest[:] = [view]
            alerts.see(view)
            return view

        def close(self) -> None:
            feed.close()

    from gyrecheck.screen.view import View as Empty

    stop = _prometheus(look, lambda: newest[0] if newest else Empty())
    app = WatchApp(
        Watched(), interval=look.interval, pen=Pen(ascii=look.ascii, color=color), timeout=look.timeout, until_ended=look.until_exit
    )
    app.run()
    stop()
    if newest and (newest[0].counters or newest[0].verdicts) and sys.stdout.isatty():  # a browser has no place for the report
        _finish(look, report_now(look))
    raise typer.Exit(int(ExitCode.OK))


def _prometheus(look: Look, newest: Callable[[], View]) -> Callable[[], None]:
    if look.prometheus is None:
        return lambda: None
    try:
        from gyrecheck.screen.prometheus import serve
    except ModuleNotFoundError as error:
        raise GyreError(f"--prometheus needs {error.name}, which is not installed", hint="pip install 'gyrecheck[serve]'") from error
    return serve(newest, look.prometheus, look.host)


def _alive(pid: int) -> bool:
    from gyrecheck.screen.places import alive

    return alive(pid)


def _code(look: Look, view: View) -> int:
    from gyrecheck.verdict.severity import exit_code

    report = Report(command="watch", verdicts=view.verdicts)
    return 0 if look.exit_zero else int(exit_code(report, look.fail_on, undecided_ok=look.undecided is UndecidedAs.OK))


def snapshot_object(view: View) -> dict[str, object]:
    """One picture as a row of JSON lines."""
    from gyrecheck.report.json import plain, verdict_object

    return {
        "kind": "snapshot",
        "schema": 1,
        "run": view.run,
        "state": view.state,
        "seconds": plain(view.seconds),
        "counters": {row.name: plain(row.total) for row in view.counters},
        "balance": {row.name: plain(row.value) for row in view.balance},
        "ages": {f"{row.age:g}": plain(row.share) for row in view.ages},
        "verdicts": [verdict_object(v) for v in view.verdicts if v.state is not State.HOLDS],
        "gaps": list(view.gaps),
        "lines": view.lines,
    }


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
