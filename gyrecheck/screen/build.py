"""From a snapshot and its judgement to a `View`. Figures are read off the engine's own flows and verdicts; nothing is judged here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gyrecheck.model.events import Unit
from gyrecheck.model.finding import First, State, Verdict
from gyrecheck.model.folder import FolderBalance
from gyrecheck.model.snapshot import Series, Snapshot
from gyrecheck.screen.hooked import HookFigures
from gyrecheck.screen.view import AgeRow, BalanceRow, CounterRow, ProcessRow, RunState, SeriesView, View
from gyrecheck.verdict.flows import Flow
from gyrecheck.verdict.judge import Judgement

WINDOW = 60.0
"""Rates are over the last so many seconds of the run's own clock."""
SILENT, DEAD = 10.0, 30.0
PLOTTED = (
    "sampled",
    "taken",
    "dropped_stale",
    "left",
    "age",
    "update",
    "loss",
    "lr",
    "entropy",
    "kl",
    "ratio",
    "clip_fraction",
    "grad_norm",
    "reward",
)
SHORT = {
    Unit.TRAJECTORY: "traj",
    Unit.SAMPLE: "",
    Unit.GROUP: "groups",
    Unit.ROW: "rows",
    Unit.STEP: "steps",
    Unit.BATCH: "batches",
    Unit.CALL: "",
}


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the feed knows besides the log's content."""

    run: str
    topology: str = ""
    state: RunState = "live"
    note: str = ""
    now: float | None = None
    """Seconds since the epoch; None when figures of an ended run are shown."""
    age: float | None = None
    files: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    unknown_lines: tuple[str, ...] = ()
    not_understood: int = 0
    waiting_for: tuple[str, ...] = ()
    command: str = ""
    alive: dict[int, bool] | None = None
    """Whether the pids of this host still run, as far as it could be told."""
    handoff: tuple[tuple[str, str], ...] = ()
    hook: HookFigures | None = None
    """Rows from counter shards, where there are some."""


def build_view(snapshot: Snapshot, judged: Judgement, around: Circumstances, folder: FolderBalance | None = None) -> View:
    """One picture of the run."""
    run = judged.run
    hook = around.hook or HookFigures()
    known = {row.name for row in hook.counters}
    unjudged = "not judged" if around.topology == "synchronous" or around.state == "ended" else "waiting"
    coupling = next((v for v in judged.verdicts if v.code == "GYR501"), None)
    return View(
        run=around.run,
        topology=around.topology,
        state=around.state,
        note=around.note,
        seconds=snapshot.seconds if hook.seconds is None else hook.seconds,
        age=around.age,
        counters=(*hook.counters, *(row for row in counters(judged) if row.name not in known)),
        versions=hook.versions or versions(snapshot),
        coupling=coupling_rows(judged, hook),
        coupling_recent=hook.coupling_recent,
        coupling_state=_word(coupling) if coupling else unjudged if run.flow("sample_call") or known else "not logged",
        balance=balance_rows(judged, folder),
        balance_unit=judged.accounts[0].unit.value if judged.accounts and judged.accounts[0].unit is not Unit.SAMPLE else "",
        balance_state=balance_state(judged.verdicts),
        ages=ages(snapshot, judged, folder),
        ages_note=ages_note(judged.verdicts, snapshot),
        handoff=(*hook.handoff, *around.handoff),
        ladder=next((v.steps for v in judged.verdicts if v.steps), ()),
        ladder_note=next((v.message for v in judged.verdicts if v.steps and v.state is State.BROKEN), ""),
        processes=hook.processes or processes(snapshot, around),
        processes_note="" if hook.processes else judged.layout.sentence,
        verdicts=judged.verdicts,
        not_judged=judged.not_judged,
        waiting_for=around.waiting_for,
        files=around.files,
        lines=sum(f.lines for f in snapshot.files),
        not_understood=around.not_understood,
        unknown_lines=around.unknown_lines,
        gaps=(*around.gaps, *hook.problems),
        series=(*hook.series, *plotted(snapshot, judged)),
        command=around.command,
    )


def counters(judged: Judgement) -> tuple[CounterRow, ...]:
    """The three counters, with rates where the log tells the time."""
    run = judged.run
    rows = []
    for name, flow in (("sampled", run.sampled), ("consumed", run.taken), ("train steps", run.updates)):
        if flow is not None:
            rate, recent = _rate(flow)
            rows.append(CounterRow(name, flow.last, SHORT.get(flow.unit, flow.unit.value) if name != "train steps" else "", rate, recent))
    return tuple(rows)


def _rate(flow: Flow) -> tuple[float | None, tuple[float, ...]]:
    """Increase per second over the last minute, and the increments of its sixty seconds (or of the last readings without times)."""
    times, values = _timed(flow)
    if len(times) < 2:
        steps = [b - a for a, b in zip(flow.values, flow.values[1:])][-60:]  # noqa: B905 - pairs
        return None, tuple(steps)
    end = times[-1]
    start = max(times[0], end - WINDOW)
    before = [v for t, v in zip(times, values, strict=True) if t <= start]
    grown = values[-1] - (before[-1] if before else values[0])
    buckets = [0.0] * 60
    last = before[-1] if before else values[0]
    for t, v in zip(times, values, strict=True):
        if t > start:
            buckets[min(59, int((t - start) / max(end - start, 1e-9) * 60))] += v - last
            last = v
    return (grown / (end - start) if end > start else None), tuple(buckets)


def _timed(flow: Flow) -> tuple[list[float], list[float]]:
    times: list[float] = []
    values: list[float] = []
    known = {order: time for series in flow.series for order, time in zip(series.orders, series.times, strict=True)}
    for order, value in zip(flow.orders, flow.values, strict=True):
        time = known.get(order, math.nan)
        if not math.isnan(time):
            times.append(max(time, times[-1]) if times else time)
            values.append(value)
    return times, values


def versions(snapshot: Snapshot) -> tuple[tuple[str, str], ...]:
    """The newest policy version of each side, as the log tells it."""
    out = []
    for side, terms in (("trainer", ("trainer_version", "published")), ("sampler", ("loaded", "policy_version"))):
        found = [s for s in snapshot.of(*terms) if side == "trainer" or s.key.term == "loaded" or s.side == "sampling"]
        if found:
            out.append((side, f"{max(found, key=lambda s: s.orders[-1]).last:g}"))
    return tuple(out)


def coupling_rows(judged: Judgement, hook: HookFigures) -> tuple[tuple[str, str], ...]:
    """Calls of both sides and their ratio."""
    run = judged.run
    samples, updates = run.flow("sample_call"), run.flow("update_call")
    rows: list[tuple[str, str]] = []
    counted = {row.name: row.total for row in hook.counters}
    if counted:
        rows = [(name, f"{counted[name]:,.0f}") for name in ("sample calls", "update calls") if name in counted]
        if counted.get("update calls"):
            rows.append(("ratio", f"{counted.get('sample calls', 0) / counted['update calls']:.3g} : 1"))
        return tuple(rows)
    if samples is not None:
        rows.append(("sample calls", f"{samples.last:,.0f}"))
    if updates is not None:
        rows.append(("update calls", f"{updates.last:,.0f}"))
    if samples is not None and updates is not None and updates.last:
        rows.append(("ratio", f"{samples.last / updates.last:.3g} : 1"))
    return tuple(rows)


def balance_rows(judged: Judgement, folder: FolderBalance | None) -> tuple[BalanceRow, ...]:
    """Sampled, its sinks and the residual; from the run folder's files where there is one, since files outlive lines."""
    if folder is not None and folder.sampled:
        parts = [("taken", folder.taken), ("dropped stale", folder.dropped_stale), ("dropped other", folder.dropped_other)]
        parts += [("left in buffer", folder.left), ("in flight", folder.in_flight)]
        shown = [(name, float(value)) for name, value in parts if value or name in {"taken", "dropped stale", "left in buffer"}]
        return _balance(float(folder.sampled), shown, float(folder.residual))
    if not judged.accounts:
        return ()
    account = judged.accounts[0]
    sinks: list[tuple[str, float | None]] = [] if account.mode == "replay" else [("taken", account.taken.last if account.taken else None)]
    sinks += [(f"dropped {flow.reason}".strip(), flow.last) for flow in account.drops]
    sinks.append(("left in buffer", account.left.last if account.left else account.given_left))
    if account.in_flight is not None:
        sinks.append(("in flight", account.in_flight.last))
    found = next((b for b in judged.balances if b.account is account), None)
    nothing_over = found is not None and found.missing == ("dropped",) and not found.residual  # a drop that nobody counted was none
    residual = found.residual if found is not None and (nothing_over or not found.missing) else None
    return _balance(account.sampled.last if account.sampled else None, sinks, residual)


def _balance(sampled: float | None, sinks: Sequence[tuple[str, float | None]], residual: float | None) -> tuple[BalanceRow, ...]:
    rows = [BalanceRow("sampled", sampled, None, 0)]
    rows += [BalanceRow(name, value, value / sampled if value is not None and sampled else None) for name, value in sinks]
    return (*rows, BalanceRow("residual", residual, None, 0))


def balance_state(verdicts: tuple[Verdict, ...]) -> str:
    """The word behind the residual."""
    about = [v for v in verdicts if v.code in {"GYR507", "GYR510"}]
    for state, word in ((State.BROKEN, "error"), (State.UNDECIDED, "undecided"), (State.HOLDS, "ok")):
        if any(v.state is state for v in about):
            return word
    return ""


def ages(snapshot: Snapshot, judged: Judgement, folder: FolderBalance | None) -> tuple[AgeRow, ...]:
    """Shares of uses by age in whole versions; by trajectories from the run folder, else by log lines."""
    limit = next((v for v in (folder.max_age if folder else None, _setting(judged, "max_age")) if v is not None), None)
    counted: dict[float, float] = {}
    if folder is not None and folder.ages:
        counted = {float(age): float(number) for age, number in folder.ages.items()}
    else:
        for series in snapshot.of("age")[:1]:
            for value in series.values:
                counted[float(math.floor(value))] = counted.get(float(math.floor(value)), 0.0) + 1
    whole = sum(counted.values())
    if not whole:
        return ()
    return tuple(AgeRow(age, number / whole, over=limit is not None and age > limit) for age, number in sorted(counted.items()))


def _setting(judged: Judgement, term: str) -> float | None:
    found = judged.run.setting(term)
    return found.last if found is not None else None


def ages_note(verdicts: tuple[Verdict, ...], snapshot: Snapshot) -> tuple[str, ...]:
    """The staleness verdict in words, and what the ages were counted from."""
    notes = [v.message for v in verdicts if v.code == "GYR404"][:1]
    thinned = any(s.thinned > 1 for s in snapshot.of("age"))
    return (*notes, *(("thinned evenly; totals are exact",) if thinned else ()))


def processes(snapshot: Snapshot, around: Circumstances) -> tuple[ProcessRow, ...]:
    """One row a process: alive, silent, presumed dead or known dead, by its last line and, on this host, by its pid."""
    rows = []
    for process in snapshot.processes:
        quiet = (
            around.now - process.last_time if around.now is not None and process.last_time is not None and process.last_time > 1e9 else None
        )
        running = (around.alive or {}).get(process.pid)
        if around.state == "ended":
            state = "ended"
        elif running is False:
            state = "known dead"
        elif quiet is None or quiet < SILENT:
            state = "alive"
        else:
            state = "silent" if quiet < DEAD or running else "presumed dead"
        last = f"{quiet:.1f} s ago" if quiet is not None and quiet < 3600 else ""
        rows.append(ProcessRow(str(process.pid or "-"), "+".join(process.sides), state, last, process.path))
    return tuple(rows)


def plotted(snapshot: Snapshot, judged: Judgement) -> tuple[SeriesView, ...]:
    """Every series a person may want to see over the run: seconds since its start, or reading numbers where there are no times."""
    breach = next((v.first for v in judged.verdicts if v.state is State.BROKEN and v.first is not None), None)
    return tuple(_series(series, breach, snapshot) for series in snapshot.of(*PLOTTED) if len(series) > 1)


def _series(series: Series, breach: First | None, snapshot: Snapshot) -> SeriesView:
    start = snapshot.first_time
    timed = start is not None and not any(math.isnan(t) for t in series.times)
    at = tuple(t - start for t in series.times) if timed and start is not None else tuple(float(o) for o in series.orders)
    where = next(
        (a for a, line in zip(at, series.lines, strict=True) if breach is not None and breach.path == series.path and line >= breach.line),
        None,
    )
    step = max(1, len(at) // 2000)
    unit = series.key.unit.value if series.key.unit is not Unit.SAMPLE else ""
    return SeriesView(series.name, unit, at[::step], tuple(series.values)[::step], where)


def _word(verdict: Verdict) -> str:
    return {State.HOLDS: "ok", State.UNDECIDED: "undecided", State.BROKEN: verdict.severity.value}[verdict.state]
