"""How old the data is that training uses: within the limit, growing, lying at the limit, or from the future.

Age of a use = trainer's version - behaviour version, as the log defines it (a format says how, and whether an age equal to the limit
is still used). Where no age is logged it is computed from versions that stand on one line.
"""

from __future__ import annotations

import re
from itertools import pairwise

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Place, Series
from gyrecheck.rulebook.age_units import load_age_units
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.view import View, quarters

_FIRST = re.compile(r"(?i)(?<![a-z])(first|head|oldest|begun|began|beginning|start(ed)?)(?![a-z])")
_LAST = re.compile(r"(?i)(?<![a-z])(last|tail|newest|final|finished|completed|ended)(?![a-z])")
_COUNTED_FROM = re.compile(
    r"(?i)(?<![a-z])(first|head|oldest|last|tail|newest|final)\W+(?:\w+\W+)?(?:token|segment|turn|chunk|fragment)s?\b"
)
_LYING = re.compile(r"(?i) - .*(?<![a-z])(oldest|min|tail|queued?|buffer(ed)?)(?![a-z])")
"""An age computed from the oldest version that lies there: it may still be dropped when it is taken."""


def judge_staleness(run: View, docket: Docket) -> None:
    """Enter the verdicts on age."""
    ages = _of_unit(run, run.series("age", "age_max"), docket)
    impossible = _negative(run, ages, docket)
    broken = impossible or _over_age(run, ages, docket)
    growing = _left_behind(run, ages, docket) or _growing(run, docket)
    if not broken and not growing:
        _within(run, ages, docket)


def _of_unit(run: View, ages: tuple[Series, ...], docket: Docket) -> tuple[Series, ...]:
    """The ages that a limit given by the user is about: those in its unit. A step of the trainer makes a version."""
    rules = docket.rules
    if rules.max_age is None:
        return ages
    declared = {file.path: file.lag_unit for file in run.snapshot.files}
    wanted = {"version", "step"} if rules.age_unit == "version" else {rules.age_unit}
    units = [load_age_units().named(series.name) or declared.get(series.path, "version") for series in ages]
    kept = tuple(series for series, unit in zip(ages, units, strict=True) if unit in wanted)
    if ages and not kept:
        docket.skip(f"staleness (--max-age is in {rules.age_unit}s, `{ages[0].name}` in {units[0]}s)")
    return kept


def _limit(run: View, docket: Docket) -> tuple[float, Place | None, str] | None:
    """The age limit: given by the user, or a setting in the log."""
    if docket.rules.max_age is not None:
        return docket.rules.max_age, None, "--max-age"
    found = run.setting("max_age")
    return (found.last, found.first_place, found.name) if found else None


def _strict(run: View) -> bool:
    """Whether an age equal to the limit is already too old."""
    return any(file.drops_when == ">=" for file in run.snapshot.files)


def _negative(run: View, ages: tuple[Series, ...], docket: Docket) -> bool:
    for series in ages:
        if series.low < -0.5:
            at = next(i for i, v in enumerate(series.values) if v < -0.5)
            docket.add(
                "GYR408",
                State.BROKEN,
                (
                    f"`{series.name}` is {count(series.values[at])}: the data's version is above the trainer's, so every "
                    "limit of the form age <= N is passed"
                ),
                quantity=series.name,
                value=series.low,
                first=series.place(at),
                because=[series.place(at)],
                hint="the trainer's version counter began anew, or two runs are mixed: carry the counter in the checkpoint",
            )
            return True
    pairs = _same_line(run, ("sample_version", "oldest_version"), ("trainer_version",)) or _same_line(
        run, ("sample_version",), ("published",)
    )
    for data, trainer, at, back in pairs:
        if data.values[at] > trainer.values[back] + 0.5:
            what = (
                f"`{data.name}` {count(data.values[at])} is above `{trainer.name}` {count(trainer.values[back])}: data "
                "from a version that the trainer has not reached"
            )
            docket.add(
                "GYR408",
                State.BROKEN,
                what,
                quantity=data.name,
                value=data.values[at],
                first=data.place(at),
                because=[data.place(at)],
                hint="the trainer's version counter began anew, or two runs are mixed: carry the counter in the checkpoint",
            )
            return True
    return False


def _same_line(run: View, left: tuple[str, ...], right: tuple[str, ...]) -> list[tuple[Series, Series, int, int]]:
    """Pairs of readings of two terms on one line."""
    out = []
    for a in run.series(*left):
        for b in run.series(*right):
            if a.path != b.path:
                continue
            where = {order: at for at, order in enumerate(b.orders)}
            out += [(a, b, at, where[order]) for at, order in enumerate(a.orders) if order in where]
    return out


def _over_age(run: View, ages: tuple[Series, ...], docket: Docket) -> bool:
    for flow in (run.flow("over_age"),):
        if flow is not None and flow.last > 0:
            docket.add(
                "GYR404",
                State.BROKEN,
                f"{count(flow.last)} were used although over the age limit (`{flow.name}`)",
                quantity=flow.name,
                value=flow.last,
                first=flow.first_place,
                because=[flow.last_place],
                hint="drop before use, with the same version that the loss will see",
            )
            return True
    limit = _limit(run, docket)
    if limit is None:
        return False
    if run.taken is not None and run.taken.last == 0:
        return False  # nothing was used
    bound, said, name = limit
    strict = _strict(run)
    stale = {order for s in run.series("dropped_stale") for order, v in zip(s.orders, s.values, strict=True) if v > 0}
    found: list[tuple[Series, list[int], bool]] = []
    other = {_end_of(s.name) for s in ages} - {""}
    told = _COUNTED_FROM.search(said.text) if said else None
    meant = _end_of(told[1]) if told else ""
    for series in ages:
        mean, end = series.key.term == "age", _end_of(series.name)
        if end and meant and end != meant:
            continue  # the limit is about the other end of a sample
        over = [
            i for i, v in enumerate(series.values)
            if (v >= bound if strict and bound > 0 else v > bound + 1e-9) and (mean or series.orders[i] not in stale)
        ]  # fmt: skip
        over = [i for i in over if series.orders[i] not in stale or run.series("taken")]
        if over and not _only_dropped(run, series, over):
            found.append((series, over, (len(other) > 1 and bool(end) and not meant) or bool(_LYING.search(series.name))))
    most = max((len(over) for _, over, _ in found), default=0)
    often = [item for item in found if 2 * len(item[1]) >= most]  # an average hides most of what is too old
    for series, over, open_end in sorted(often, key=_told_at_most)[:1]:
        at = over[0]
        restart = next((m for m in reversed(run.restarts) if series.orders[0] < m.order <= series.orders[at]), None)
        because = [Because(series.place(at), f"first of {len(over)} readings over the limit")]
        because += [Because(said, "the limit")] if said else []
        because += [Because(restart.place, "restart before it")] if restart else []
        what = (
            f"`{series.name}` reaches {count(series.high)}, the limit is {count(bound)} ({name}): {len(over)} of "
            f"{len(series)} readings are over it, from line {series.lines[at]} on"
        )
        what += "; it held before the restart" if restart else ""
        drops = run.series("dropped_stale", least=series.count)
        if drops and drops[0].high == 0:
            what += f"; `{drops[0].name}` stays 0, so the limit is not on the path of this data"
        if (low := next((s for s in ages if s.high <= bound), None)) is not None and low.key.term == series.key.term:
            what += f"; `{low.name}` says at most {count(low.high)}, it misses a part of the way"
        docket.add(
            "GYR404",
            State.BROKEN,
            what,
            quantity=series.name,
            value=series.high,
            first=series.place(at),
            because=because,
            hint="the path that takes these passes the age check by" + (": set the limit again on resume" if restart else ""),
            at_most=Severity.WARNING if open_end else None,
        )
        return True
    return False


def _told_at_most(item: tuple[Series, list[int], bool]) -> bool:
    """Sorts the oldest age before the average."""
    return item[0].key.term != "age_max" or item[2]


def _end_of(text: str) -> str:
    """Whether an age, or a limit's line, is about the `first` or the `last` token or version of a sample; empty when it does not say."""
    first, last = _FIRST.search(text), _LAST.search(text)
    return "" if bool(first) == bool(last) else "first" if first else "last"


def _only_dropped(run: View, series: Series, over: list[int]) -> bool:
    """Whether those ages stand only on lines that tell of drops, and nothing is taken there."""
    taken = {order for s in run.series("taken", "update") for order, v in zip(s.orders, s.values, strict=True) if v > 0}
    drops = {order for s in run.series("dropped_stale", "dropped") for order, v in zip(s.orders, s.values, strict=True) if v > 0}
    return all(series.orders[i] in drops and series.orders[i] not in taken for i in over)


def _left_behind(run: View, ages: tuple[Series, ...], docket: Docket) -> bool:
    """The age grows one for one with the trainer's version: what samples still acts with one old version."""
    t, limit = docket.rules.thresholds, _limit(run, docket)
    if (run.main is not None and run.main.mode == "replay") or run.series("drawn"):
        return False  # the oldest data of a store that fills is as old as the run
    versions = run.series("trainer_version", "policy_version", "published", least=t.behind_readings)
    for series in sorted(ages, key=lambda s: s.key.term != "age_max"):
        for version in versions:
            where = {order: at for at, order in enumerate(version.orders)}
            pairs = [(at, series.values[at], version.values[where[o]]) for at, o in enumerate(series.orders) if o in where]
            start = max((i for i in range(1, len(pairs)) if pairs[i][1] < pairs[i - 1][1]), default=0)
            tail = pairs[start:]
            if version.path != series.path or len(tail) < t.behind_readings or (limit is not None and series.high <= limit[0]):
                continue
            (at, age, low), (_, oldest, high) = tail[0], tail[-1]
            held = [made - old for _, old, made in tail]
            before = max((old for _, old, _ in pairs[:start]), default=0.0)
            grown = high - low
            if (
                grown < t.behind_readings
                or oldest - age < 0.9 * grown
                or max(held) - min(held) > max(2.0, 0.1 * grown)
                or grown < 3 * before
            ):
                continue
            others = [s for s in run.series("age", "age_min", least=t.behind_readings) if s is not series and s.path == series.path]
            if any(s.last - s.values[max(s.index(series.orders[at]), 0)] < 0.9 * grown for s in others):
                continue
            docket.add(
                "GYR406",
                State.BROKEN,
                f"`{series.name}` grows one for one with `{version.name}`, to {count(oldest)} at version {count(high)}: all that is trained "
                f"still comes from version {count(round(held[-1]))} or so, no newer weights reach sampling",
                quantity=series.name,
                value=oldest,
                first=series.place(at),
                because=[Because(series.place(at), "from here on"), Because(series.last_place, series.name)],
                hint="let the sampler load the newest version between rollouts; check that the load reaches the module that acts",
                at_most=None if others or series.key.term == "age" else Severity.WARNING,  # the oldest of a mixture may be one straggler
            )
            return True
    return False


def _growing(run: View, docket: Docket) -> bool:
    t = docket.rules.thresholds
    for series in run.series("age", "age_max", least=t.lag_readings):
        values = list(series.values)
        first, _, third, last = quarters(values)
        rises = sum(b > a for a, b in pairwise(values))
        falls = sum(b < a for a, b in pairwise(values))
        limit = _limit(run, docket)
        if limit is not None and series.high <= limit[0]:
            continue
        if (
            last < t.lag_growth * first
            or last < first + 2
            or last < third * 1.1 + 0.25
            or falls > 0.25 * len(values)
            or rises < 0.25 * len(values)
        ):
            continue
        start = next((i for i, v in enumerate(values) if v > first + 1), 0)
        bound = " although no limit is logged" if limit is None else f", limit {count(limit[0])}"
        docket.add(
            "GYR416",
            State.BROKEN,
            (
                f"`{series.name}` grows from {count(values[0])} to {count(values[-1])} and does not come back{bound}: "
                "sampling falls further behind with every version"
            ),
            quantity=series.name,
            value=values[-1],
            first=series.place(start),
            because=[series.place(0), series.place(len(series) - 1)],
            hint="look whether the sampler still loads new weights, and whether a queue grows",
        )
        return True
    return False


def _within(run: View, ages: tuple[Series, ...], docket: Docket) -> None:
    if not ages:
        if (run.sampled is not None or run.taken is not None) and not run.series("age", "age_max"):
            docket.skip("staleness (no age or version is logged beside the data)")
        return
    mean = next((s for s in ages if s.key.term == "age"), ages[0])
    top = max(s.high for s in ages)
    low = min(s.low for s in ages)
    limit = _limit(run, docket)
    average = sum(mean.values) / len(mean)
    text = f"staleness {count(low)} to {count(top)} (mean {average:.2f}"
    text += f", limit {count(limit[0])})" if limit else ", no limit logged)"
    if (
        limit
        and limit[0] > 0
        and quarters(list(mean.values) * (4 if len(mean) < 4 else 1))[3] >= docket.rules.thresholds.at_limit * limit[0]
    ):
        text += "; the mean lies at the limit: the limit also sets the depth of the queue"
    docket.add("GYR404", State.HOLDS, text, quantity=mean.name, value=round(average, 3), unit=docket.rules.age_unit)
