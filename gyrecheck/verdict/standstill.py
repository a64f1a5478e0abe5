"""A run that prints and does not move: every running total stays as it is, line after line, and nobody says that the run ended."""

from __future__ import annotations

from itertools import pairwise

from gyrecheck.model.finding import Severity, State
from gyrecheck.verdict.flows import Flow
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.view import View, last_move

LEAST = 20
"""Readings at one value from which a log with one counter of samples, and nothing that is taken, is said to stand still."""
_AXES = ("step", "trainer_version", "policy_version", "published", "loaded", "progress_done", "episodes")


def judge_standstill(run: View, docket: Docket) -> None:
    """Enter the verdict; silent where another verdict on waiting has said it."""
    t, snapshot = docket.rules.thresholds, run.snapshot
    if not snapshot.ordered or any(v.code in {"GYR515", "GYR503", "GYR520"} and v.state is State.BROKEN for v in docket.verdicts):
        return
    if snapshot.marked("trainer_finished", "sampler_finished"):
        return
    account = run.main
    flows = [f for f in (*(account.flows if account else ()), *run.counted) if len(f.orders) > 2]
    counters = [f for f in flows if f.term not in {"left", "in_flight"}]
    if not counters:
        _alone(run, docket)
        return
    if not any(f.last > 0 for f in flows):
        return
    moved = max([last_move(f) for f in flows] + [_last_change(run)])
    told = sorted({order for f in counters for order in f.orders})
    after = [order for order in told if order > moved]
    if len(after) < t.stuck_readings or any(f.orders[-1] <= moved for f in counters):
        return
    held = next((f for f in flows if f.term in {"in_flight", "left"} and f.last > 0), None)
    name: Flow = held or max(counters, key=lambda f: f.last)
    start = max(counters, key=last_move).place_at(moved)
    last = max((f.last_place for f in flows), key=lambda p: p.line)
    seconds = None if start.time is None or last.time is None else last.time - start.time
    long = seconds is not None and seconds >= t.stuck_seconds and seconds >= _longest_wait(counters, moved)
    if not long and (len(after) < 2 * t.stuck_readings or len(after) * 10 < len(told)):
        return
    full = [m for m in snapshot.marked("throttled") if m.order > moved]
    why = "; the producer is held back by a full buffer that nobody empties" if full else ""
    docket.add(
        "GYR515",
        State.BROKEN,
        f"no counter moves after line {start.line}, in {len(after)} more lines: `{name.name}` stays at {count(name.last)}{why}",
        quantity=name.name.replace(" ", "_"),
        value=name.last,
        first=start,
        because=[Because(start, "last progress"), Because(last, "last line")],
        hint="look at what the side waits for that should move first; a longer timeout only hides it",
        at_most=None if long or full else Severity.WARNING,
    )


def _alone(run: View, docket: Docket) -> None:
    """A log that only counts what is sampled: that total, every position and every version stay as they are to its end."""
    counted = [s for s in run.series("sampled") if s.key.cumulative == "yes" and len(s) > LEAST and s.last > 0]
    if not counted:
        return
    moved = _last_change(run)
    stands = [(s, next((i for i in range(len(s) - 1, 0, -1) if s.values[i] != s.values[i - 1]), 0)) for s in counted]
    series, at = max(stands, key=lambda stand: stand[0].orders[stand[1]])
    after = sum(order > max(moved, series.orders[at]) for order in series.orders) * series.thinned
    if after < LEAST or after * 10 < series.count or any(s.orders[-1] <= moved for s, _ in stands):
        return
    start = series.place(at)
    docket.add(
        "GYR515",
        State.BROKEN,
        f"no counter moves after line {start.line}, in {after} more lines: `{series.name}` stays at {count(series.last)}",
        quantity=series.name.replace(" ", "_"),
        value=series.last,
        first=start,
        because=[Because(start, "last progress"), Because(series.last_place, "last line")],
        hint="look at what the side waits for that should move first; a longer timeout only hides it",
        at_most=Severity.WARNING,
    )


def _longest_wait(flows: list[Flow], moved: int) -> float:
    """Three times the longest time that these counters ever took to move before, in seconds."""
    times = sorted(
        time
        for f in flows
        for s in f.series
        for order, time in zip(s.orders, s.times, strict=True)
        if order <= moved and time == time  # noqa: PLR0124
    )
    return 3.0 * max((b - a for a, b in pairwise(times)), default=0.0)


def _last_change(run: View) -> int:
    """The order at which a position or a version last changed."""
    moved = 0
    for series in run.series(*_AXES):
        at = next((i for i in range(len(series) - 1, 0, -1) if series.values[i] != series.values[i - 1]), 0)
        moved = max(moved, series.orders[at])
    return moved
