"""What `run` says about a run folder: the verdicts over the hook's data, joined with those over the program's output."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path

from gyrecheck.commands.ledger_text import with_texts
from gyrecheck.model.finding import Report, Severity, State, Verdict
from gyrecheck.model.live import HookedRun
from gyrecheck.rulebook.codes import load_codes
from gyrecheck.rulebook.hook_table import load_hook_table
from gyrecheck.rulebook.thresholds import load_thresholds
from gyrecheck.stream.logs import Ask, open_log, read_logs
from gyrecheck.stream.open_log import find_logs
from gyrecheck.stream.self_checks import read_measured
from gyrecheck.stream.shards import events_of, read_run
from gyrecheck.verdict.judge import Judgement, judge
from gyrecheck.verdict.live import LiveJudgement, judge_live
from gyrecheck.verdict.passed_over import judge_passed_over
from gyrecheck.verdict.ruling import Docket, Rules
from gyrecheck.verdict.self_checks import judge_self_checks
from gyrecheck.verdict.tally import Tally

OUTPUTS = ("stdout.log", "stderr.log")
_LEDGER_TERMS = {"sampled", "taken", "drawn", "dropped_stale", "dropped_other", "left", "in_flight", "published", "loaded"}


def recorded(
    command: str, folder: Path, *, topology: str = "", chosen: frozenset[str] | None = None, extra: Path | None = None
) -> Report | None:
    """The report on what a hooked run left in `folder`, after any kind of death; None when the hook wrote nothing there."""
    run = read_run(folder)
    if run is None:
        return None
    live = judge_hook(run, topology=topology, chosen=chosen, extra=extra)
    logs = judge_logs(folder, run, topology=live.topology, chosen=chosen, extra=extra)
    printed = judge_printed(folder, run, topology=live.topology, chosen=chosen, extra=extra)
    return report_of(command, (str(folder),), live, logs, printed)


def judge_logs(
    folder: Path, run: HookedRun, *, topology: str = "", chosen: frozenset[str] | None = None, extra: Path | None = None
) -> Judgement | None:
    """The ledger's judgement over the program's output and over what it told the hook's own ledger; None when neither says anything."""
    paths = tuple(str(folder / name) for name in OUTPUTS if (folder / name).is_file() and (folder / name).stat().st_size)
    tally = Tally()
    tally.feed_events(event for event in events_of(run) if event.kind in _LEDGER_TERMS)
    if paths:
        ask = Ask(extra=extra)
        opened = [open_log(log, ask) for log in find_logs(paths)]
        readings, ordered = read_logs(opened, ask)
        for part in readings:
            tally.feed(part)
        tally.ordered = all(ordered)
        for log in opened:
            tally.saw(log.note())
    snapshot = tally.snapshot()
    if not snapshot.readings:
        return None
    judged = judge(snapshot, load_codes(extra), topology=topology, chosen=chosen)
    docket = Docket(Rules(load_codes(extra), load_thresholds(), topology, chosen))
    judge_passed_over(snapshot, run, docket)
    judged = dataclasses.replace(judged, verdicts=(*judged.verdicts, *docket.verdicts))
    return dataclasses.replace(judged, verdicts=with_texts(judged.verdicts, find_logs(paths))) if paths else judged


def judge_hook(run: HookedRun, *, topology: str = "", chosen: frozenset[str] | None = None, extra: Path | None = None) -> LiveJudgement:
    """The judgement over the hook's own data."""
    return judge_live(run, Rules(load_codes(extra), load_thresholds(), topology, chosen), load_hook_table())


def judge_printed(
    folder: Path, run: HookedRun, *, topology: str = "", chosen: frozenset[str] | None = None, extra: Path | None = None
) -> tuple[Verdict, ...]:
    """The verdicts over what the program measured of itself and printed."""
    checks = load_hook_table().self_checks
    docket = Docket(Rules(load_codes(extra), load_thresholds(), topology, chosen))
    for name in OUTPUTS:
        with contextlib.suppress(OSError):
            found = read_measured(folder / name, checks.zero, checks.one, checks.zero_first, checks.never)
            judge_self_checks(found, checks.most, docket, run)
    return tuple(docket.verdicts)


def placed(report: Report, folder: Path) -> Report:
    """The report with the program's output named `stdout` and `stderr`: its files are gone when nobody reads this."""
    names = {str(folder / name): name.removesuffix(".log") for name in OUTPUTS}

    def moved(verdict: Verdict) -> Verdict:
        first, evidence = verdict.first, verdict.evidence
        if first is not None and first.path in names:
            first = dataclasses.replace(first, path=names[first.path])
        evidence = tuple(dataclasses.replace(e, path=names.get(e.path, e.path)) for e in evidence)
        return dataclasses.replace(verdict, first=first, evidence=evidence)

    return dataclasses.replace(report, verdicts=tuple(moved(v) for v in report.verdicts))


def report_of(
    command: str, inputs: tuple[str, ...], live: LiveJudgement, logs: Judgement | None, printed: tuple[Verdict, ...] = ()
) -> Report:
    """Both judgements as one report; a fault that both see is told once, by the graver of the two."""
    nothing = tuple(v for v in (logs.verdicts if logs else ()) if v.state is State.UNDECIDED and v.quantity == "terms")
    if logs and nothing:  # a program need not print counters: that it does not is no question left open
        logs = dataclasses.replace(logs, verdicts=tuple(v for v in logs.verdicts if v not in nothing))
    verdicts = merge(live.verdicts, (*printed, *(logs.verdicts if logs else ())))
    broken = [v for v in verdicts if v.state is State.BROKEN]
    counted = {level: sum(v.severity is level for v in broken) for level in (Severity.ERROR, Severity.WARNING, Severity.NOTE)}
    words = ", ".join(f"{n} {level.value}{'s' if n > 1 else ''}" for level, n in counted.items() if n)
    return Report(
        command=command,
        inputs=inputs,
        topology=live.topology,
        topology_reason=live.topology_reason,
        verdicts=verdicts,
        tables=dict(live.tables or {}),
        heading=live.heading,
        sentences=live.sentences,
        summary=f"Found {words}." if words else "No findings.",
        not_judged=(*live.not_judged, *(v.message for v in nothing), *(logs.not_judged if logs else ())),
        statistics=dict(live.statistics or {}),
        next=next((f"gyrecheck explain {v.code}" for v in broken), ""),
    )


def merge(first: tuple[Verdict, ...], second: tuple[Verdict, ...]) -> tuple[Verdict, ...]:
    """Verdicts worst first. Of two broken ones with one code and one quantity the graver stays, with the other's evidence."""
    kept: list[Verdict] = []
    for verdict in (*first, *second):
        same = (verdict.code, verdict.quantity, verdict.state)
        twin = next((n for n, k in enumerate(kept) if (k.code, k.quantity, k.state) == same), None)
        if twin is None or verdict.state is not State.BROKEN or verdict.first != kept[twin].first:
            kept.append(verdict)
            continue
        graver, other = (verdict, kept[twin]) if verdict.severity.rank > kept[twin].severity.rank else (kept[twin], verdict)
        kept[twin] = dataclasses.replace(graver, evidence=(*graver.evidence, *other.evidence))
    order = {State.BROKEN: 0, State.UNDECIDED: 1, State.HOLDS: 2}
    return tuple(sorted(kept, key=lambda v: (order[v.state], -v.severity.rank if v.state is not State.HOLDS else 0)))
