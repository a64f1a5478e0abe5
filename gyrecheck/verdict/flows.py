"""Series of one quantity, put together: processes added up or continued, running totals told from counts per step, resets bridged.

A `Flow` is a step function over the run's readings: how much of a term had been counted (or lay there) after each of them.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from gyrecheck.model.events import Unit
from gyrecheck.model.snapshot import Place, Series
from gyrecheck.verdict.running_totals import Evidence, anew, decide, growth_of, usual_step

ROUNDS = frozenset(("trainer_version", "policy_version", "published", "update"))
"""What rises once for each round of training."""
EACH_ROUND = frozenset(("taken", "sampled"))
"""What each round of training moves on."""


@dataclass(frozen=True, slots=True)
class Flow:
    """One quantity over the run. `values[i]` holds from `orders[i]` on; counters are totals, levels are what lies there."""

    name: str
    term: str
    unit: Unit
    reason: str
    stream: str
    cumulative: bool
    why: str
    """How it is known that it is a running total, or a count per step."""
    orders: Sequence[int]
    values: Sequence[float]
    resets: tuple[int, ...]
    """Orders at which a running total began anew or went back."""
    series: tuple[Series, ...]
    part: bool = False
    sure: bool = True
    exact: bool = True
    """False when some readings were thinned out."""

    @property
    def way(self) -> str:
        """How things left by this flow, in a word: the reason, or the term."""
        return self.reason or {"dropped_stale": "stale", "dropped_other": "other"}.get(self.term, self.term)

    @property
    def last(self) -> float:
        """The total, or the level, at the end."""
        return self.values[-1]

    @property
    def first_order(self) -> int:
        """The first reading that told it."""
        return self.orders[0]

    def at(self, order: int) -> float | None:
        """The value after reading `order`; None before the first."""
        index = bisect_right(self.orders, order) - 1
        return self.values[index] if index >= 0 else None

    def after(self, orders: Sequence[int]) -> Sequence[float]:
        """The values after each of the orders, which rise; 0 before its first."""
        if list(self.orders) == list(orders):
            return self.values
        known = dict(zip(self.orders, self.values, strict=True))
        before = self.at(orders[0] - 1) if orders else None
        value = before or 0.0
        return [value := known.get(order, value) for order in orders]

    def place_at(self, order: int) -> Place:
        """Where the value that holds at `order` was read."""
        best: tuple[int, Place] | None = None
        for series in self.series:
            index = series.index(order)
            if index >= 0 and (best is None or series.orders[index] > best[0]):
                best = (series.orders[index], series.place(index))
        return best[1] if best else self.series[0].first_place

    @property
    def last_place(self) -> Place:
        """Where it was read last."""
        return max(self.series, key=lambda s: s.orders[-1]).last_place

    @property
    def first_place(self) -> Place:
        """Where it was read first."""
        return min(self.series, key=lambda s: s.orders[0]).first_place

    def within(self, low: int, high: int) -> Flow | None:
        """The part of the run after `low` up to `high`; None when it tells nothing there."""
        kept = [i for i, order in enumerate(self.orders) if low < order <= high]
        if not kept:
            return None
        start, stop = kept[0], kept[-1] + 1
        base = self._base_before(start)
        values = [value - base for value in self.values[start:stop]]
        resets = tuple(order for order in self.resets if low < order <= high and order != self.orders[start])
        return Flow(
            self.name, self.term, self.unit, self.reason, self.stream, self.cumulative, self.why, self.orders[start:stop], values, resets,
            self.series, self.part, self.sure, self.exact,
        )  # fmt: skip

    def _base_before(self, start: int) -> float:
        """What earlier segments had counted."""
        if start == 0 or self.term in {"left", "in_flight"}:
            return 0.0
        return self.values[start - 1] if not self.cumulative or self.orders[start] in self.resets else 0.0


def build_flows(series: Iterable[Series], terms: frozenset[str], levels: frozenset[str], restarts: Sequence[int]) -> tuple[Flow, ...]:
    """One flow per key (and per-process key) among `terms`."""
    series = tuple(series)
    by_key: dict[tuple[str, str, str, str], list[Series]] = {}
    for one in series:
        if one.key.term in terms:
            by_key.setdefault((one.key.name, one.key.term, one.key.reason, one.key.stream), []).append(one)
    groups: dict[tuple[str, int], Evidence] = {}
    growth: dict[int, int] = {}
    rounds = [one for one in series if one.key.term in ROUNDS and one.falls <= len(restarts)]
    for members in by_key.values():
        if members[0].key.term in levels or members[0].key.cumulative != "detect":
            continue
        for one in members:
            evidence = groups.setdefault((one.path, one.first_place.line), Evidence())
            turns = _rounds(one, rounds) if one.key.term in EACH_ROUND and one.rises < one.count / 4 else 0
            verdict = growth[id(one)] = growth_of(one, restarts, turns)
            evidence.grows += verdict > 0
            evidence.falls += verdict < 0
    flows = []
    backs = _went_back(series_of for members in by_key.values() for series_of in members if growth.get(id(series_of)) == 1)
    for members in by_key.values():
        key = members[0].key
        if key.term not in levels and (twice := _told_twice(members, growth)):
            flows.append(twice)
            continue
        if key.term in levels:
            cumulative, why = True, "a level"
        elif key.cumulative != "detect":
            cumulative = key.cumulative == "yes"
            why = "declared a running total" if cumulative else "declared per step"
        else:
            cumulative, why = decide(members, groups, [growth[id(one)] for one in members])
        flows.append(_flow(members, cumulative=cumulative, why=why, level=key.term in levels, backs=backs))
    return tuple(flows)


def _rounds(one: Series, rounds: Sequence[Series]) -> int:
    """How often a version or a train step rises that stands on the lines of a counter."""
    own = set(one.orders)
    beside = (axis for axis in rounds if axis.path == one.path and len(own.intersection(axis.orders)) >= 0.9 * max(len(own), len(axis)))
    return max((axis.rises for axis in beside), default=0)


def _told_twice(members: list[Series], growth: dict[int, int]) -> Flow | None:
    """One quantity told both as what each line adds and as a running total, on different lines: only the totals count.

    Where the two do not agree they are of different things, each counted in its own way.
    """
    totals = [one for one in members if one.key.cumulative == "yes" or growth.get(id(one)) == 1]
    steps = [one for one in members if one.count > 1 and one not in totals]
    if not totals or not steps or len(totals) + len(steps) < len(members):
        return None
    if not any(growth.get(id(one)) == -1 or one.key.cumulative == "no" or one.high <= one.total / 3 for one in steps):
        return None
    whole = _flow(totals, cumulative=True, why="a running total; what each line adds is told elsewhere", level=False)
    parts = _flow(steps, cumulative=False, why="per step", level=False)
    if abs(whole.last - parts.last) <= max(one.high for one in steps) + 1e-6 * abs(whole.last):
        return whole
    orders = sorted({*whole.orders, *parts.orders})
    values = [a + b for a, b in zip(whole.after(orders), parts.after(orders), strict=True)]
    return replace(whole, orders=orders, values=values, series=(*whole.series, *parts.series), exact=whole.exact and parts.exact)


def _went_back(totals: Iterable[Series]) -> frozenset[int]:
    """Where some running total fell to a value that it had before: the run went on from a saved state there, whatever else fell to zero."""
    found = set()
    for one in totals:
        step = usual_step(one.values)
        for order, before, value in zip(one.orders[1:], one.values, one.values[1:], strict=False):
            if value < before and not anew(before, value, step):
                found.add(order)
    return frozenset(found)


def _flow(members: list[Series], *, cumulative: bool, why: str, level: bool, backs: frozenset[int] = frozenset()) -> Flow:
    members = sorted(members, key=lambda s: s.orders[0])
    chains: list[list[Series]] = []
    for one in members:  # a process that began after another ended goes on with its counter
        chain = next((c for c in chains if c[-1].orders[-1] < one.orders[0]), None)
        if chain is None:
            chains.append([one])
        else:
            chain.append(one)
    curves = [_curve(chain, cumulative=cumulative, level=level, backs=backs) for chain in chains]
    if len(curves) > 1 and cumulative and _same_counter(members):
        curves = curves[:1]
        why += "; printed alike by several processes, counted once"
    orders, values = _sum(curves)
    key = members[0].key
    resets = tuple(sorted({order for _, _, found in curves for order in found}))
    exact = all(one.thinned == 1 for one in members)
    return Flow(
        key.name,
        key.term,
        key.unit,
        key.reason,
        key.stream,
        cumulative,
        why,
        orders,
        values,
        resets,
        tuple(members),
        key.part,
        key.sure,
        exact,
    )


def _same_counter(members: list[Series]) -> bool:
    """Every rank printing one global counter: the same values, reading by reading."""
    first = members[0]
    return all(one.values[:64] == first.values[:64] and one.count > 1 for one in members[1:])


Curve = tuple[list[int], list[float], list[int]]


def _curve(chain: list[Series], *, cumulative: bool, level: bool, backs: frozenset[int]) -> Curve:
    orders: list[int] = []
    values: list[float] = []
    resets: list[int] = []
    base, previous, summed = 0.0, -math.inf, 0.0
    step = usual_step(chain[0].values) if cumulative and not level else 0.0
    for one in chain:
        orders.extend(one.orders)
        if level:
            values.extend(one.values)
        elif not cumulative:
            values.extend([summed + total for total in one.totals])
            summed += one.total
        else:
            for order, value in zip(one.orders, one.values, strict=True):
                if value < previous:
                    resets.append(order)
                    if anew(previous, value, step) and order not in backs:
                        base += previous
                previous = value
                values.append(base + value)
    return orders, values, resets


def _sum(curves: list[Curve]) -> tuple[list[int], list[float]]:
    if len(curves) == 1:
        return curves[0][0], curves[0][1]
    changes = sorted(
        (order, which, value) for which, (orders, values, _) in enumerate(curves) for order, value in zip(orders, values, strict=True)
    )
    now = [0.0] * len(curves)
    out_orders: list[int] = []
    out_values: list[float] = []
    for order, which, value in changes:
        now[which] = value
        if out_orders and out_orders[-1] == order:
            out_values[-1] = sum(now)
        else:
            out_orders.append(order)
            out_values.append(sum(now))
    return out_orders, out_values


def last_move(flow: Flow) -> int:
    """The order of the last reading at which a flow changed."""
    for at in range(len(flow.orders) - 1, 0, -1):
        if flow.values[at] != flow.values[at - 1]:
            return flow.orders[at]
    return flow.orders[0]


def most_between(events: Sequence[int], edges: Sequence[int]) -> int:
    """The largest number of `events` that lie between two neighbouring `edges` (both sorted); 0 with less than two edges."""
    marks = [bisect_right(events, edge) for edge in edges]
    return max((b - a for a, b in pairwise(marks)), default=0)
