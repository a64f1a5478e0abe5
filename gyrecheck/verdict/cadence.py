"""How often training runs, against what was configured: steps per update, updates before the learning start, a schedule begun anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from gyrecheck.model.events import Unit
from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Place, Series
from gyrecheck.verdict.flows import build_flows
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.view import View, lifetimes


def judge_cadence(run: View, docket: Docket) -> None:
    """Enter the verdicts on cadence."""
    steps = _env_steps(run)
    if steps is not None:
        _interval(run, steps, docket)
        _early(run, steps, docket)
    _anew(run, docket)


MOST_COPIES = 1024
"""Copies of an environment that one call may step."""


@dataclass(frozen=True, slots=True)
class _Steps:
    """Sampled steps as the log tells them."""

    name: str
    orders: Sequence[int]
    values: Sequence[float]
    place: Place

    def at(self, order: int) -> float | None:
        """Steps after a reading; None before the first."""
        known = [v for o, v in zip(self.orders, self.values, strict=True) if o <= order]
        return known[-1] if known else None


def _env_steps(run: View) -> _Steps | None:
    """Steps of the environment: counted as such, or the axis that a store's level follows; a train step is no such axis."""
    marks = [m.order for m in run.restarts]
    sampled = run.sampled or next(iter(build_flows(run.series("sampled", least=3), frozenset(("sampled",)), frozenset(), marks)), None)
    if sampled is not None and sampled.unit is Unit.STEP:
        return _Steps(sampled.name, sampled.orders, sampled.values, sampled.last_place)
    stored = next(iter(run.series("left", least=3)), None)
    if stored is None:
        return None
    for axis in run.series("step", least=3):
        same = dict(zip(axis.orders, axis.values, strict=True))
        if axis.rises and any(same.get(o) == v > 0 for o, v in zip(stored.orders, stored.values, strict=True)):
            return _Steps(axis.name, axis.orders, axis.values, axis.last_place)
    return None


def _interval(run: View, steps: _Steps, docket: Docket) -> None:
    declared, updates = run.setting("update_interval") or run.setting("updates_per_step"), run.updates
    if declared is None or updates is None or declared.last <= 0 or updates.last <= 0 or len(updates.orders) < 4:
        return
    half = len(updates.orders) // 2
    before, after = steps.at(updates.orders[half]), steps.at(updates.orders[-1])
    done = updates.values[-1] - updates.values[half]
    if before is None or after is None or after <= before or done <= 0:
        return
    measured = (after - before) / done
    off = docket.rules.thresholds.turnover_off
    each = run.setting("updates_per_call")
    meant = declared.last / (each.last if each is not None and each.last > 0 else 1.0)
    if declared.key.term == "updates_per_step":
        meant = 1.0 / declared.last
    if measured <= off * meant and meant <= off * measured:
        return
    copies = run.setting("env_copies")
    if copies is not None and declared.key.unit is not Unit.STEP and "step" not in declared.name.lower():
        calls = meant * copies.last
        if measured <= off * calls and calls <= off * measured:
            what = f"one update in {measured:.3g} sampled steps, as `{declared.name}` {count(declared.last)} says of calls of {count(copies.last)} environments"
            docket.add("GYR509", State.HOLDS, what, quantity=updates.name, value=updates.last)
            return
    times = measured / meant
    copied = (
        copies is None and 2 <= round(times) <= MOST_COPIES and abs(times - round(times)) <= 0.03 * times
    )  # as many copies step at once
    docket.add(
        "GYR509",
        State.BROKEN,
        f"one update in {measured:.3g} sampled steps, `{declared.name}` says {count(declared.last)}: the interval is counted in another "
        "unit than steps (calls of all environments, episodes), or updates are missing",
        quantity=updates.name,
        value=updates.last,
        because=[Because(declared.first_place, declared.name), Because(updates.last_place, updates.name)],
        first=declared.first_place,
        hint="multiply the gradient steps by the number of environments, or count the interval in steps",
        at_most=Severity.NOTE if copied else Severity.WARNING,
    )


def _early(run: View, steps: _Steps, docket: Docket) -> None:
    start, updates = run.setting("learning_starts"), run.updates
    if start is None or updates is None or start.key.unit not in {Unit.STEP, Unit.SAMPLE}:
        return
    early = [(o, v) for o, v in zip(updates.orders, updates.values, strict=True) if v > 0 and (steps.at(o) or start.last) < start.last]
    if len(early) < 2:
        return
    order, done = early[-1]
    docket.add(
        "GYR514",
        State.BROKEN,
        f"{count(done)} updates are counted by step {count(steps.at(order) or 0)}, before the learning start at {count(start.last)} "
        f"({start.name}): what is counted is no update, or the start is not kept",
        quantity=updates.name,
        value=done,
        first=updates.place_at(early[0][0]),
        because=[Because(updates.place_at(early[0][0]), "first update"), Because(start.first_place, start.name)],
        hint="count optimizer steps where they are made",
        at_most=Severity.WARNING,
    )


def _anew(run: View, docket: Docket) -> None:
    """A learning rate that begins anew at a restart although the run goes on."""
    t = docket.rules.thresholds
    for series in run.series("lr", least=6):
        parts = list(lifetimes(series, run.restarts))
        for (low, high, _), (start, end, opener) in pairwise(parts):
            old, new = series.values[low:high], series.values[start:end]
            if opener is None or len(old) < 3 or len(new) < 3 or old[-1] <= 0 or _went_on(run, series.orders[start]) is False:
                continue
            then = _rolled_back_to(run, series, low, start)
            was = old[then - low]
            if was <= 0:
                continue
            ramp = new[0] <= t.lr_anew * was and max(new) >= 2 * max(new[0], 1e-300) and new[1] > new[0]
            falls = was < 0.9 * old[0] and all(b <= a for a, b in pairwise(old[: then - low + 1]))
            jump = new[0] >= 0.9 * max(old) and (new[0] * t.lr_anew >= was or (falls and new[0] >= t.lr_back * was))
            if not ramp and not jump:
                continue
            place = series.place(start)
            docket.add(
                "GYR521",
                State.BROKEN,
                f"`{series.name}` is {new[0]:.3g} at line {place.line}, after the restart, and was {was:.3g} {_where(then, high)} it: the schedule "
                + ("warms up anew" if ramp else "begins anew")
                + " while the run goes on",
                quantity=series.name,
                value=new[0],
                first=place,
                because=[Because(series.place(then), "before"), Because(place, "after"), Because(opener.place, "restart")],
                hint="put the scheduler's state into the checkpoint, or set its last step from the run's",
            )
            return


_POSITIONS = ("step", "update", "sampled", "trainer_version")


def _went_on(run: View, order: int) -> bool | None:
    """Whether the run's position went on over a restart, or back to a checkpoint (False: it began anew; None: no position is logged)."""
    seen = None
    for series in run.series(*_POSITIONS):
        at = series.index(order)
        if 0 < at < len(series):
            first, was, now = series.values[0], series.values[at - 1], series.values[at]
            seen = now >= was or now - first > 0.5 * (was - first)
            if seen is False:
                return False
    return seen


def _rolled_back_to(run: View, series: Series, low: int, start: int) -> int:
    """Index of the reading, before the restart at `start`, at the position from which the run goes on; the last where none is done again."""
    for axis in run.series(*_POSITIONS):
        at = axis.index(series.orders[start])
        if not (0 < at < len(axis) and axis.values[at] < axis.values[at - 1]):
            continue
        back = [i for i in range(low, start) if (o := axis.index(series.orders[i])) >= 0 and axis.values[o] <= axis.values[at]]
        if back:
            return back[-1]
    return start - 1


def _where(then: int, high: int) -> str:
    """How to name the reading that the first one after a restart is compared with."""
    return "before" if then == high - 1 else "at the same position before"
