"""Which flow stands for a term of a balance, where several are logged: no quantity twice, parts added up, groups told from members."""

from __future__ import annotations

import re

from gyrecheck.model.events import Unit
from gyrecheck.model.snapshot import Snapshot
from gyrecheck.verdict.flows import Flow, build_flows

SINKS = ("dropped_stale", "dropped_other", "dropped")
_TOTAL_WORD = re.compile(r"(?i)[\W_]*(total|cum|cumulative|lifetime|overall|sum)[\W_]*")
_MEMBERS = re.compile(r"(?i)samples?|rows?|completions?|responses?|answers?|rollouts?|sequences?|traj")


LEAST_TOLD_TWICE = 10
"""Two smaller counts of drops may end alike by chance."""


def once(flows: list[Flow]) -> list[Flow]:
    """One flow a quantity: where `taken` and `taken_total` are both logged, the running total stands for both.

    So it is with drops whose totals are the same to the last one, told at each event and as a running total.
    """
    whole = {f.last for f in flows if f.term in SINKS and f.cumulative and f.last >= LEAST_TOLD_TWICE}
    flows = [f for f in flows if f.term not in SINKS or f.cumulative or f.last not in whole]
    totals = {
        (f.term, f.reason, f.stream, _TOTAL_WORD.sub("", f.name).lower()) for f in flows if _TOTAL_WORD.search(f.name) and f.cumulative
    }
    return [f for f in flows if _TOTAL_WORD.search(f.name) or (f.term, f.reason, f.stream, f.name.lower()) not in totals]


def flow_of(flows: list[Flow], term: str) -> Flow | None:
    """The flow that stands for a term: declared before understood, then the one told most often; parts are added up."""
    found = [f for f in flows if f.term == term]
    if not found:
        return None
    parts = [f for f in found if f.part]
    if len(parts) > 1:
        return added(parts)
    return max(found, key=lambda f: (f.sure, len(f.orders), -f.first_order))


def added(parts: list[Flow]) -> Flow:
    """Parts of one term as one flow."""
    orders = sorted({order for part in parts for order in part.orders})
    values = [sum(part.at(order) or 0.0 for part in parts) for order in orders]
    first = parts[0]
    resets = tuple(sorted({r for part in parts for r in part.resets}))
    return Flow(
        " + ".join(p.name for p in parts), first.term, first.unit, first.reason, first.stream, first.cumulative, first.why, orders, values,
        resets, tuple(s for p in parts for s in p.series), True, all(p.sure for p in parts), all(p.exact for p in parts),
    )  # fmt: skip


def sinks(flows: list[Flow]) -> tuple[Flow, ...]:
    """The sinks, none counted twice: a total beside its parts stands alone."""
    found = [f for f in flows if f.term in SINKS]
    for total in sorted(found, key=lambda f: -f.last):
        rest = [f for f in found if f is not total]
        if len(rest) > 1 and total.last > 0 and abs(total.last - sum(f.last for f in rest)) < 1e-9:
            return tuple(rest) if total.term == "dropped" else (total,)
    whole = next((f for f in found if f.term == "dropped"), None)
    if whole is not None and len(found) == 2:
        other = next(f for f in found if f is not whole)
        if whole.last == other.last:
            return (other,)
    return tuple(found)


def group_members(sampled: Flow, taken: Flow, snapshot: Snapshot) -> int:
    """How many members a group has, where one number counts groups and the other clearly counts members; 0 elsewhere."""
    if sampled.unit is not Unit.GROUP or taken.unit is Unit.GROUP or not _MEMBERS.search(taken.name) or sampled.last <= 0:
        return 0
    ratio = taken.last / sampled.last
    told = next((s.last for s in snapshot.of("group_size") if s.low == s.high), 0.0)
    if told >= 2:
        return int(told) if ratio > 1.25 and ratio <= 1.25 * told else 0
    late = [(taken.at(o) or 0.0) / v for o, v in zip(sampled.orders, sampled.values, strict=True) if v > 0][1:]
    size = round(ratio)
    return size if size >= 2 and late and all(abs(r - size) < 0.02 * size for r in late) else 0


def fills_a_store(sampled: Flow, left: Flow) -> bool:
    """Whether the level follows what was sampled until it stays at its capacity, as a replay store does."""
    top = max(left.values)
    return all(v == top or abs((sampled.at(o) or 0.0) - v) <= 0.05 * max(v, 1.0) for o, v in zip(left.orders, left.values, strict=True))


def closes(sampled: Flow, done: Flow, left: Flow) -> bool:
    """Whether what is done and what is left make up what was sampled, nearly everywhere."""
    known = [(s, done.at(o), left.at(o)) for o, s in zip(sampled.orders, sampled.values, strict=True)]
    told = [(s, d, level) for s, d, level in known if d is not None and level is not None]
    return len(told) >= 4 and sum(abs(s - d - level) <= 1e-6 * max(s, 1.0) for s, d, level in told) >= 0.8 * len(told)


def step_axis(snapshot: Snapshot) -> Flow | None:
    """The step axis as a flow, for replay logs whose first number is the count of environment steps."""
    axes = [s for s in snapshot.of("step") if s.rises >= 1]
    if not axes:
        return None
    flows = build_flows(axes[:1], frozenset(("step",)), frozenset(), [m.order for m in snapshot.marked("restart")])
    return flows[0]
