"""What a key must mean, given how it behaves: names alone cannot tell a buffer's size from a buffer's content.

A capacity that moves is a level; a level that is told once, on a line of settings, is a capacity. Ages that no line spells are computed
where the data's and the trainer's version stand on one line. Everything else stays as it was read.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import replace
from itertools import accumulate, pairwise

from gyrecheck.model.events import Key
from gyrecheck.model.snapshot import Series, Snapshot
from gyrecheck.rulebook.log_formats import load_terms
from gyrecheck.verdict.bare_counts import counted_is_sampled
from gyrecheck.verdict.first_mini import cycles

_CYCLING = frozenset(("step", "minibatch_size", "declared_reuse", "batch_size", "within"))
"""What may be a position within one update: `epoch 0 minibatch 3`."""

LEAST_MOVES = 4
"""Different values of a total from which on its closing is no chance."""
_SLOTS = re.compile(r"(?i)(?<![a-z])(slot|seat|permit|lease)s?(?![a-z])")


def as_meant(snapshot: Snapshot) -> Snapshot:
    """The snapshot with such keys understood by their behaviour. Pure; the same snapshot comes back when nothing changes."""
    kinds = {name: rule.kind for name, rule in load_terms().terms.items()}
    told_once = {(s.path, s.lines[0]) for s in snapshot.series if s.count == 1 and kinds[s.key.term] == "setting"}
    counters = {name for name, kind in kinds.items() if kind == "counter"}
    series = _flat_is_dropped(tuple(_meant(_total_alone(s, snapshot, counters), told_once) for s in snapshot.series))
    series = _passes(_slots_stand_in(counted_is_sampled(series)))
    if not any(s.key.term in {"age", "age_max"} for s in series):
        series += _ages(series, ("sample_version", "loaded"), "age", ("trainer_version", "policy_version"))
    series += _ages(series, ("oldest_version",), "age_max", ("trainer_version",))
    changed = len(series) != len(snapshot.series) or any(a is not b for a, b in zip(series, snapshot.series, strict=False))
    return replace(snapshot, series=series) if changed else snapshot


def _total_alone(series: Series, snapshot: Snapshot, counters: set[str]) -> Series:
    """One name for what a line adds and for the running total on other lines: where the two can be told apart, the total.

    They are told apart by what stands beside them: on the lines of another key the number only rises, elsewhere it stays far below.
    """
    if series.key.term not in counters or series.key.cumulative != "detect" or series.falls < 3 or series.thinned > 1:
        return series
    where: dict[int, int] = {}
    for other in snapshot.series:
        if (other.path, other.pid) != (series.path, series.pid) or not 3 <= other.count < series.count or other.thinned > 1:
            continue
        end = series.index(other.orders[-1])
        if end < 0 or series.orders[end] != other.orders[-1] or series.values[end] < series.high:
            continue  # a running total is never higher than at its end
        where = where or {order: at for at, order in enumerate(series.orders)}
        own = [where[order] for order in other.orders if order in where]
        inside = set(own)
        rest = [v for at, v in enumerate(series.values) if at not in inside]
        totals = [series.values[at] for at in own]
        if len(own) >= 3 and rest and all(b > a for a, b in pairwise(totals)) and 3 * max(rest) <= totals[-1]:
            return _part(series, own, replace(series.key, cumulative="yes"))
    return series


def _part(series: Series, own: list[int], key: Key) -> Series:
    """Some of a series' readings, under another key."""
    values = array("d", (series.values[at] for at in own))
    sums = array("d", accumulate(values))
    moves = list(pairwise(values))
    return Series(
        key, series.path, series.pid, series.side, len(own), sums[-1], values[0], values[-1], min(values), max(values),
        sum(b > a for a, b in moves), sum(b < a for a, b in moves), series.place(own[0]), series.place(own[-1]),
        array("q", (series.orders[at] for at in own)), array("q", (series.lines[at] for at in own)),
        array("d", (series.times[at] for at in own)), values, sums, series.thinned,
    )  # fmt: skip


def _meant(series: Series, settings: set[tuple[str, int]]) -> Series:
    key = series.key
    if key.sure:
        return series
    near = any((series.path, series.lines[0] + way) in settings for way in (0, -1, 1, -2, 2))
    if key.term in _CYCLING and cycles(series):
        return replace(series, key=replace(key, term="within"))
    if key.term == "left" and series.count == 1 and near:
        return replace(series, key=replace(key, term="capacity"))
    if key.term == "update" and series.count == 1 and (series.path, series.lines[0]) in settings:
        return replace(series, key=replace(key, term="updates_per_call"))
    if key.term == "logp_gap" and key.name.lower() == "gap" and series.high >= 1 and all(v == round(v) for v in series.values):
        return replace(series, key=replace(key, term="age"))
    if key.term == "max_age" and series.count >= 3 and series.low != series.high:
        return replace(series, key=replace(key, term="age_max"))
    if key.term == "capacity" and series.count >= 3 and series.low != series.high:
        return replace(series, key=replace(key, term="left", cumulative="yes"))
    return series


def _passes(series: tuple[Series, ...]) -> tuple[Series, ...]:
    """`num_iterations=2` beside an `iteration` that goes 1, 2, 1, 2: so often each batch is gone over, and no run's length."""
    tops = {one.high for one in series if one.key.term == "within" and one.high > 1 and "iter" in one.name.lower()}
    return tuple(
        replace(one, key=replace(one.key, term="declared_reuse"))
        if one.key.term == "total_steps" and not one.key.sure and one.last in tops and "iter" in one.name.lower()
        else one
        for one in series
    )


def _slots_stand_in(series: tuple[Series, ...]) -> tuple[Series, ...]:
    """Slots that are held tell what is in flight only where nothing else does."""
    flying = [one for one in series if one.key.term == "in_flight"]
    slots = [one for one in flying if _SLOTS.search(one.name)]
    return tuple(one for one in series if one not in slots) if 0 < len(slots) < len(flying) else series


def _flat_is_dropped(series: tuple[Series, ...]) -> tuple[Series, ...]:
    """Groups without spread, counted, that make up with what was trained the same number on every line, or what was sampled: left out."""
    taken = next((s for s in series if s.key.term == "taken" and s.count >= 4 and s.low != s.high), None)
    if taken is None:
        return series
    sampled = next((s for s in series if s.key.term == "sampled" and list(s.orders) == list(taken.orders)), None)

    def meant(one: Series) -> Series:
        if one.key.sure or one.key.term != "flat_groups" or one.high <= 1 or list(one.orders) != list(taken.orders):
            return one
        parts = [round(a + b, 6) for a, b in zip(one.values, taken.values, strict=True)]
        total = (
            sampled is not None and parts == [round(v, 6) for v in sampled.values] and not one.falls and len(set(one.values)) > LEAST_MOVES
        )
        if len(set(parts)) != 1 and not total:
            return one
        counting = "yes" if total else "no"
        return replace(
            one, key=replace(one.key, term="dropped_other", reason="filter", unit=taken.key.unit, part=True, cumulative=counting)
        )

    return tuple(meant(one) for one in series)


def _ages(series: tuple[Series, ...], sides: tuple[str, ...], term: str, trainers: tuple[str, ...]) -> tuple[Series, ...]:
    """The age that two versions on one line make, whatever age the log tells itself: a counter of ages may miss a part of the way."""
    data = next((s for side in sides for s in series if s.key.term == side and s.count > 1), None)
    own = [s for s in series if data and s is not data and (s.path, s.pid) == (data.path, data.pid)]
    trainer = next((s for side in trainers for s in own if s.key.term == side), None)
    if data is None or trainer is None:
        return ()
    where = {order: at for at, order in enumerate(trainer.orders)}
    pairs = [(at, where[order]) for at, order in enumerate(data.orders) if order in where]
    if len(pairs) < 2:
        return ()
    values = array("d", (trainer.values[b] - data.values[a] for a, b in pairs))
    if min(values) < 0:
        return ()  # which is judged from the versions themselves
    at = [a for a, _ in pairs]
    steps = list(pairwise(values))
    totals = array("d")
    for value in values:
        totals.append((totals[-1] if totals else 0.0) + value)
    key = Key(f"{trainer.name} - {data.name}", term, sure=False)
    return (
        Series(
            key, data.path, data.pid, "training", len(values), totals[-1], values[0], values[-1], min(values), max(values),
            sum(b > a for a, b in steps), sum(b < a for a, b in steps), data.place(at[0]), data.place(at[-1]),
            array("q", (data.orders[a] for a in at)), array("q", (data.lines[a] for a in at)), array("d", (data.times[a] for a in at)),
            values, totals, data.thinned,
        ),
    )  # fmt: skip
