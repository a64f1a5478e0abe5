"""Which flows belong in one balance: one unit, one stream, one run; never counts of different units.

An `Account` is what conservation is judged on. Where a log carries several units or streams it becomes several accounts; a number
whose unit is not said joins the only named unit, and that is said.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import pairwise

from gyrecheck.model.events import Unit
from gyrecheck.model.snapshot import Series, Snapshot
from gyrecheck.verdict.flows import Flow, build_flows

LEVELS = frozenset(("left", "in_flight"))
COUNTED = frozenset(("sampled", "taken", "drawn", "dropped", "dropped_stale", "dropped_other", "done", "written", "read")) | LEVELS
SINKS = ("dropped_stale", "dropped_other", "dropped")
EVALUATION = frozenset(("eval", "evaluation", "validation", "val", "test"))
SUPPLIED = "--left"


@dataclass(frozen=True, slots=True)
class Account:
    """One balance. `low < order <= high` is its part of the log; `segment` counts runs in one log from 1."""

    unit: Unit
    stream: str
    mode: str
    sampled: Flow | None
    taken: Flow | None
    drops: tuple[Flow, ...]
    left: Flow | None
    in_flight: Flow | None
    given_left: float | None = None
    low: int = 0
    high: int = 1 << 62
    segment: int = 1
    segments: int = 1
    notes: tuple[str, ...] = ()
    stand_in: str = ""
    """Why a key that is not called so stands for `sampled`."""

    @property
    def flows(self) -> tuple[Flow, ...]:
        """All flows of the balance."""
        return tuple(f for f in (self.sampled, self.taken, *self.drops, self.left, self.in_flight) if f is not None)

    @property
    def label(self) -> str:
        """How to name it beside others."""
        name = self.unit.value if self.unit is not Unit.SAMPLE else ""
        parts = [part for part in (self.stream, name) if part]
        if self.segments > 1:
            parts.append(f"run {self.segment} of {self.segments}")
        return " ".join(parts)

    @property
    def things(self) -> str:
        """The unit in the plural, for a count of it; empty when the log does not name it."""
        plural = {Unit.SAMPLE: "", Unit.TRAJECTORY: "trajectories", Unit.BATCH: "batches"}.get(self.unit, f"{self.unit.value}s")
        return " ".join(part for part in (self.stream, plural) if part)

    def dropped(self, *reasons: str) -> float:
        """How many left by drops; all, or those of the reasons."""
        return sum(f.last for f in self.drops if not reasons or f.way in reasons or f.term in reasons)


def open_accounts(snapshot: Snapshot, *, left: float | None = None) -> tuple[Account, ...]:
    """The balances of a run, the richest first; empty when the log counts nothing."""
    restarts = [mark.order for mark in snapshot.marked("restart")]
    flows = _once([f for f in build_flows(snapshot.series, COUNTED, LEVELS, restarts) if f.stream not in EVALUATION])
    if not any(f.term in {"sampled", "taken", "done", "left", "drawn"} for f in flows):
        return ()
    accounts: list[Account] = []
    for (unit, stream), members, notes in _parted(flows):
        account = _account(unit, stream, members, snapshot, notes, left)
        if account is not None:
            accounts.extend(_segments(account, snapshot))
    return tuple(sorted(accounts, key=lambda a: (-_richness(a), a.segment)))


_TOTAL_WORD = re.compile(r"(?i)[\W_]*(total|cum|cumulative|lifetime|overall|sum)[\W_]*")


def _once(flows: list[Flow]) -> list[Flow]:
    """One flow a quantity: where `taken` and `taken_total` are both logged, the running total stands for both."""
    totals = {
        (f.term, f.reason, f.stream, _TOTAL_WORD.sub("", f.name).lower()) for f in flows if _TOTAL_WORD.search(f.name) and f.cumulative
    }
    return [f for f in flows if _TOTAL_WORD.search(f.name) or (f.term, f.reason, f.stream, f.name.lower()) not in totals]


def _richness(account: Account) -> int:
    return (account.sampled is not None) * 4 + (account.taken is not None) * 3 + (account.left is not None) * 2 + bool(account.drops)


def _parted(flows: list[Flow]) -> list[tuple[tuple[Unit, str], list[Flow], list[str]]]:
    """Flows by unit and stream; those without a name of their own join the only one there is."""

    def parts(values: set[str]) -> set[str]:
        return {v for v in values if v}

    streams = parts({f.stream for f in flows})
    main = ("sampled", "taken", "done", "written")
    units = {f.unit for f in flows if f.unit is not Unit.SAMPLE and f.term in main} or {f.unit for f in flows if f.unit is not Unit.SAMPLE}
    groups: dict[tuple[Unit, str], list[Flow]] = {}
    notes: list[str] = []
    for flow in flows:
        unit, stream = flow.unit, flow.stream
        if unit is Unit.SAMPLE and len(units) == 1:
            unit = next(iter(units))
        elif unit is not Unit.SAMPLE and len(units) == 1 and unit not in units and flow.term not in main:
            notes.append(f"`{flow.name}` counts {unit.value}s, the balance is in {next(iter(units)).value}s: left out")
        if not stream and len(streams) == 1 and not any(f.term == flow.term and f.stream for f in flows):
            stream = next(iter(streams))
        elif stream and len(streams) == 1 and not any(f.term == flow.term and not f.stream for f in flows):
            stream = stream if any(f.stream for f in flows if f.term in main) else ""
        groups.setdefault((unit, stream), []).append(flow)
    loose = groups.get((Unit.SAMPLE, ""))
    if loose and len(units) > 1:
        notes.append(
            "units differ ("
            + ", ".join(sorted(u.value for u in units))
            + "): numbers without a unit are balanced on their own; --unit names it"
        )
    return [(name, members, notes) for name, members in groups.items()]


def _account(unit: Unit, stream: str, flows: list[Flow], snapshot: Snapshot, notes: list[str], given: float | None) -> Account | None:
    sampled, taken = _one(flows, "sampled"), _one(flows, "taken")
    if sampled is not None and taken is not None and (size := _members(sampled, taken, snapshot)):
        flows = [replace(f, values=[v * size for v in f.values], unit=Unit.SAMPLE) if f.unit is Unit.GROUP else f for f in flows]
        notes = [*notes, f"`{sampled.name}` counts groups, `{taken.name}` their members: {size} a group"]
        unit, sampled, taken = Unit.SAMPLE, _one(flows, "sampled"), _one(flows, "taken")
    left, in_flight = _one(flows, "left"), _one(flows, "in_flight")
    drops = _drops(flows)
    mode = _mode(snapshot, drops, taken, _one(flows, "drawn"))
    stand_in = ""
    if sampled is None and (done := _one(flows, "done")) and taken is not None:
        sampled, stand_in = done, f"`{done.name}` counts what was finished either way"
    if taken is None and sampled is not None and (in_flight or drops) and (done := _one(flows, "done")):
        taken, stand_in = done, f"`{done.name}` counts what was finished"
    if sampled is None and taken is None and (put := _one(flows, "written")) and (got := _one(flows, "read")) and put.unit == got.unit:
        taken = got  # a carrier on its own: what is written is read, lies there or is lost
    if sampled is None and (written := _one(flows, "written")) and taken is not None and written.unit == taken.unit:
        sampled, stand_in = written, f"`{written.name}` counts what sampling wrote"
    if sampled is None and drops and taken is not None and (drawn := _one(flows, "drawn")):
        sampled, stand_in, mode = drawn, f"`{drawn.name}` counts what was drawn from the data set", "queue"
    if sampled is None and left is not None and any(f.reason == "overwritten" for f in drops) and (axis := _axis(snapshot)):
        sampled, stand_in = axis, f"`{axis.name}` counts the steps sampled"
        mode = "replay"
    if sum(f is not None for f in (sampled, taken, left)) + bool(drops) < 2:
        return None
    if taken is None and sampled is not None and left is not None and not drops and _store(sampled, left):
        return None  # a replay store that only fills, or is full: what is overwritten is not logged
    return Account(unit, stream, mode, sampled, taken, drops, left, in_flight, given, notes=tuple(dict.fromkeys(notes)), stand_in=stand_in)


_MEMBERS = re.compile(r"(?i)samples?|rows?|completions?|responses?|answers?|rollouts?|sequences?|traj")


def _members(sampled: Flow, taken: Flow, snapshot: Snapshot) -> int:
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


def _one(flows: list[Flow], term: str) -> Flow | None:
    """The flow that stands for a term: declared before understood, then the one told most often; parts are added up."""
    found = [f for f in flows if f.term == term]
    if not found:
        return None
    parts = [f for f in found if f.part]
    if len(parts) > 1:
        return _added(parts)
    return max(found, key=lambda f: (f.sure, len(f.orders), -f.first_order))


def _added(parts: list[Flow]) -> Flow:
    orders = sorted({order for part in parts for order in part.orders})
    values = [sum(part.at(order) or 0.0 for part in parts) for order in orders]
    first = parts[0]
    resets = tuple(sorted({r for part in parts for r in part.resets}))
    return Flow(
        " + ".join(p.name for p in parts), first.term, first.unit, first.reason, first.stream, first.cumulative, first.why, orders, values,
        resets, tuple(s for p in parts for s in p.series), True, all(p.sure for p in parts), all(p.exact for p in parts),
    )  # fmt: skip


def _drops(flows: list[Flow]) -> tuple[Flow, ...]:
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


def _mode(snapshot: Snapshot, drops: tuple[Flow, ...], taken: Flow | None, drawn: Flow | None) -> str:
    declared = {file.mode for file in snapshot.files if file.mode != "auto"}
    if len(declared) == 1:
        return declared.pop()
    if drawn is not None or (taken is None and any(f.reason == "overwritten" for f in drops)):
        return "replay"
    return "queue"


def _store(sampled: Flow, left: Flow) -> bool:
    """Whether the level follows what was sampled until it stays at its capacity, as a replay store does."""
    top = max(left.values)
    return all(v == top or abs((sampled.at(o) or 0.0) - v) <= 0.05 * max(v, 1.0) for o, v in zip(left.orders, left.values, strict=True))


def _axis(snapshot: Snapshot) -> Flow | None:
    """The step axis as a flow, for replay logs whose first number is the count of environment steps."""
    axes = [s for s in snapshot.of("step") if s.rises >= 1]
    if not axes:
        return None
    flows = build_flows(axes[:1], frozenset(("step",)), frozenset(), [m.order for m in snapshot.marked("restart")])
    return flows[0]


def _segments(account: Account, snapshot: Snapshot) -> list[Account]:
    """One account per run in the log: where all running totals began anew together, a run ended and another began."""
    totals = [f for f in (account.sampled, account.taken, *account.drops) if f is not None and f.cumulative and max(f.values) > 0]
    axes = [s for s in snapshot.of("step", "update", "trainer_version", "policy_version", "published") if s.falls and s.count > 2]
    cuts: list[int] = []
    for reset in account.sampled.resets if account.sampled and account.sampled.cumulative else ():
        others = [f for f in totals if f is not account.sampled]
        together = all(any(abs(_position(f, r) - _position(f, reset)) <= 1 for r in f.resets) for f in others if f.orders[-1] >= reset)
        axis = any(_falls_near(s, reset) for s in axes)
        near_zero = account.sampled is not None and _reset_to_zero(account.sampled, reset)
        if near_zero and together and (others or axis):
            cuts.append(min([reset, *[r for f in others for r in f.resets if abs(_position(f, r) - _position(f, reset)) <= 1]]))
    if not cuts:
        return [account]
    edges = [0, *[cut - 1 for cut in sorted(set(cuts))], 1 << 62]
    out = []
    for at, (low, high) in enumerate(pairwise(edges), 1):
        clipped = {
            name: flow.within(low, high) if flow else None
            for name, flow in (
                ("sampled", account.sampled),
                ("taken", account.taken),
                ("left", account.left),
                ("in_flight", account.in_flight),
            )
        }
        drops = tuple(f for f in (d.within(low, high) for d in account.drops) if f is not None)
        given = account.given_left if high == 1 << 62 else None
        out.append(
            Account(
                account.unit,
                account.stream,
                account.mode,
                clipped["sampled"],
                clipped["taken"],
                drops,
                clipped["left"],
                clipped["in_flight"],
                given,
                low,
                high,
                at,
                len(edges) - 1,
                account.notes,
                account.stand_in,
            )
        )
    return out


def _position(flow: Flow, order: int) -> int:
    return bisect_right(flow.orders, order)


def _reset_to_zero(flow: Flow, order: int) -> bool:
    for series in flow.series:
        at = series.index(order)
        if at > 0 and series.orders[at] == order:
            return series.values[at] <= 0.5 * series.values[at - 1]
    return True


def _falls_near(series: Series, order: int) -> bool:
    at = series.index(order)
    return any(0 < i < len(series) and series.values[i] < series.values[i - 1] for i in (at, at + 1, at - 1))
