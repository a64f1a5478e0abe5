"""Which flows belong in one balance: one unit, one stream, one run; never counts of different units.

An `Account` is what conservation is judged on. Where a log carries several units or streams it becomes several accounts; a number
whose unit is not said joins the only named unit, and that is said.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import pairwise

from gyrecheck.model.events import Unit
from gyrecheck.model.snapshot import Series, Snapshot
from gyrecheck.verdict.account_terms import SINKS, closes, fills_a_store, flow_of, group_members, once, sinks, step_axis
from gyrecheck.verdict.flows import Flow, build_flows

LEVELS = frozenset(("left", "in_flight"))
COUNTED = frozenset(("sampled", "taken", "drawn", "dropped", "dropped_stale", "dropped_other", "done", "written", "read")) | LEVELS
LEAST_TOLD = 4
"""Readings of a counter beside which a level that was told only before them is none of theirs."""
EVALUATION = frozenset(("eval", "evaluation", "validation", "val", "test"))


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


def counted_flows(snapshot: Snapshot, *, cumulative: bool | None = None) -> list[Flow]:
    """All flows that balances are made of; `cumulative` decides for every number whose name does not say which it is."""
    restarts = [mark.order for mark in snapshot.marked("restart")]
    series = snapshot.series
    if cumulative is not None:
        said = "yes" if cumulative else "no"
        series = tuple(replace(s, key=replace(s.key, cumulative=said)) if s.key.cumulative == "detect" else s for s in series)
    return once(_counting([f for f in build_flows(series, COUNTED, LEVELS, restarts) if f.stream not in EVALUATION]))


def _counting(flows: list[Flow]) -> list[Flow]:
    """The same without a number that a header told once, before the counter of the same term began: `trainer: 24 prompts a step`."""
    begun = {f.term: f.first_order for f in flows if len(f.orders) >= LEAST_TOLD}
    return [f for f in flows if len(f.orders) > 1 or f.orders[0] >= begun.get(f.term, 0)]


def accounts_of(flows: list[Flow], snapshot: Snapshot, left: float | None) -> tuple[Account, ...]:
    """The balances of these flows, the richest first; empty when they count nothing. `left` is the level that nobody logged."""
    if not any(f.term in {"sampled", "taken", "done", "left", "drawn"} for f in flows):
        return ()
    accounts: list[Account] = []
    for (unit, stream), members, notes in _parted(flows):
        account = _account(unit, stream, members, snapshot, notes, left)
        if account is not None:
            accounts.extend(_segments(account, snapshot))
    return tuple(sorted(accounts, key=lambda a: (-_richness(a), a.segment)))


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
        if not stream and len(streams) == 1 and not any(f.stream and _same_way(f, flow) for f in flows):
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


def _same_way(one: Flow, other: Flow) -> bool:
    """Whether two flows tell one quantity: drops for two reasons are two."""
    return one.term == other.term and (one.term not in SINKS or one.reason == other.reason)


def _account(unit: Unit, stream: str, flows: list[Flow], snapshot: Snapshot, notes: list[str], given: float | None) -> Account | None:
    sampled, taken = flow_of(flows, "sampled"), flow_of(flows, "taken")
    if sampled is not None and taken is not None and (size := group_members(sampled, taken, snapshot)):
        flows = [replace(f, values=[v * size for v in f.values], unit=Unit.SAMPLE) if f.unit is Unit.GROUP else f for f in flows]
        notes = [*notes, f"`{sampled.name}` counts groups, `{taken.name}` their members: {size} a group"]
        unit, sampled, taken = Unit.SAMPLE, flow_of(flows, "sampled"), flow_of(flows, "taken")
    left, in_flight = flow_of(flows, "left"), flow_of(flows, "in_flight")
    if left is not None and sampled is not None and len(sampled.orders) >= LEAST_TOLD and left.orders[-1] < sampled.orders[0]:
        left = None  # told before anything was counted and never again: a setting, or where the run began
    drops = sinks(flows)
    mode = _mode(snapshot, drops, taken, flow_of(flows, "drawn"))
    stand_in = ""
    if sampled is None and (done := flow_of(flows, "done")) and taken is not None:
        sampled, stand_in = done, f"`{done.name}` counts what was finished either way"
    if taken is None and sampled is not None and (in_flight or drops) and (done := flow_of(flows, "done")):
        taken, stand_in = done, f"`{done.name}` counts what was finished"
    if taken is None and sampled is not None and left is not None and (done := flow_of(flows, "done")) and closes(sampled, done, left):
        taken, stand_in = done, f"`{done.name}` counts what was handed on: with what is left it makes up what came in"
    if (
        sampled is None
        and taken is None
        and (put := flow_of(flows, "written"))
        and (got := flow_of(flows, "read"))
        and put.unit == got.unit
    ):
        taken = got  # a carrier on its own: what is written is read, lies there or is lost
    if sampled is None and (written := flow_of(flows, "written")) and taken is not None and written.unit == taken.unit:
        sampled, stand_in = written, f"`{written.name}` counts what sampling wrote"
    if sampled is None and drops and taken is not None and (drawn := flow_of(flows, "drawn")):
        sampled, stand_in, mode = drawn, f"`{drawn.name}` counts what was drawn from the data set", "queue"
    if sampled is None and left is not None and any(f.reason == "overwritten" for f in drops) and (axis := step_axis(snapshot)):
        sampled, stand_in = axis, f"`{axis.name}` counts the steps sampled"
        mode = "replay"
    if sum(f is not None for f in (sampled, taken, left)) + bool(drops) < 2:
        return None
    if taken is None and sampled is not None and left is not None and not drops and fills_a_store(sampled, left):
        return None  # a replay store that only fills, or is full: what is overwritten is not logged
    given = given if left is None else None
    return Account(unit, stream, mode, sampled, taken, drops, left, in_flight, given, notes=tuple(dict.fromkeys(notes)), stand_in=stand_in)


def _mode(snapshot: Snapshot, drops: tuple[Flow, ...], taken: Flow | None, drawn: Flow | None) -> str:
    declared = {file.mode for file in snapshot.files if file.mode != "auto"}
    if len(declared) == 1:
        return declared.pop()
    if drawn is not None or (taken is None and any(f.reason == "overwritten" for f in drops)):
        return "replay"
    return "queue"


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
