"""A running total that begins anew at a restart while the run's position goes on: what is a function of it begins anew too.

Judged at equal positions: work done again from an older checkpoint stands where it stood there, a counter that was not restored stands
near zero. Without a restart in the log, or where the position begins anew too, it is another run or a count per step.
"""

from __future__ import annotations

from itertools import pairwise

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Mark, Series
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.running_totals import anew, usual_step
from gyrecheck.verdict.view import View

_COUNTERS = ("sampled", "taken", "episodes", "drawn", "done", "update")
_AXES = ("step", "trainer_version", "policy_version", "update")


def judge_began_anew(run: View, docket: Docket) -> None:
    """Enter the verdict on the first counter that was not restored."""
    for series in run.series(*_COUNTERS, least=6):
        if not series.falls or series.rises < 4 * series.falls or series.key.cumulative == "no":
            continue
        step = usual_step(series.values)
        for at, (before, after) in enumerate(pairwise(series.values), 1):
            restart = _between(run.restarts, series.orders[at - 1], series.orders[at])
            if restart is None or not anew(before, after, step):
                continue
            told = _due(run, series, at)
            if told is None or told[1] < 5 * max(after, step) or before < told[1] / 2:
                continue
            axis, due, was, now = told
            stops = [s for s in run.snapshot.of("total_steps") if series.name.lower() in s.name.lower()]
            place = series.place(at)
            docket.add(
                "GYR523",
                State.BROKEN,
                f"`{series.name}` begins anew at line {place.line}, after the restart: {count(after)} where about {count(due)} is due, while "
                f"`{axis.name}` is kept ({count(was)}, then {count(now)}); what is a function of it (schedules, exploration, the stop) begins anew too",
                quantity=series.name,
                value=after,
                first=place,
                because=[Because(series.place(at - 1), "before"), Because(place, "after"), Because(restart.place, "restart")],
                hint="put the step counters into the checkpoint, and restore them with the weights",
                at_most=None if stops else Severity.WARNING,
            )
            return


def _between(marks: tuple[Mark, ...], low: int, high: int) -> Mark | None:
    return next((mark for mark in marks if low < mark.order <= high), None)


def _due(run: View, series: Series, at: int) -> tuple[Series, float, float, float] | None:
    """A position that goes on over the restart, what the counter was at that position, and the position before and after."""
    for axis in run.series(*_AXES, least=6):
        if axis is series or axis.path != series.path or axis.high > 1e9 or axis.rises < 0.8 * (axis.count - 1):  # a time is no position
            continue
        old, new = axis.index(series.orders[at - 1]), axis.index(series.orders[at])
        if not 0 <= old < new:
            continue
        was, now = axis.values[old], axis.values[new]
        if now < 0.5 * was or was < 3:
            continue
        known = [v for o, v in zip(series.orders[:at], series.values, strict=False) if axis.values[max(axis.index(o), 0)] <= now]
        if known:
            return axis, max(known), was, now
    return None
