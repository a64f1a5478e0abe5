"""Numbers a run printed about itself that cannot all be meant: capacity below the learning start, minibatch above the batch."""

from __future__ import annotations

from dataclasses import dataclass

from gyrecheck.model.events import Unit
from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Series
from gyrecheck.verdict.account_terms import SINKS
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.view import View


@dataclass(frozen=True, slots=True)
class _Rule:
    """`small` must not be below (or above, for `above`) `large`."""

    small: str
    large: str
    text: str
    hint: str
    equal: bool = False


_RULES = (
    _Rule(
        "capacity",
        "learning_starts",
        (
            "{a} {x} is below the learning start {y} ({b}): what is collected first is overwritten before any update can "
            "use it, or learning never starts"
        ),
        "raise the capacity above the learning start, or start earlier",
    ),
    _Rule(
        "capacity",
        "batch_size",
        "{a} {x} is below one batch of {y} ({b}): the batch can never be filled",
        "raise the capacity or lower the batch",
    ),
    _Rule(
        "capacity",
        "minibatch_size",
        "{b} {y} is above all that {a} {x} can hold: no full minibatch can be cut from it",
        "lower the minibatch size, or collect more",
    ),
    _Rule(
        "batch_size",
        "minibatch_size",
        "{b} {y} is above the batch of {x} ({a}): no full minibatch can be cut from it",
        "lower the minibatch size",
    ),
    _Rule(
        "total_steps",
        "learning_starts",
        "{b} {y} is not before the end of the run at {x} ({a}): no update ever runs",
        "start earlier or run longer",
        equal=True,
    ),
    _Rule(
        "total_steps",
        "warmup_steps",
        "{b} {y} is not below the run's {x} steps ({a}): the learning rate never reaches its value",
        "shorten the warm-up",
        equal=True,
    ),
    _Rule(
        "batch_size",
        "group_size",
        "{b} {y} is above the batch of {x} ({a}): no group fits in whole",
        "raise the batch or lower the group size",
    ),
)


def judge_settings(run: View, docket: Docket) -> None:
    """Enter contradictions, and what was lost before the first update could use it."""
    agreed: dict[str, float] = {}
    before = len(docket.verdicts)
    for rule in _RULES:
        small, large = (_total_steps(run) if rule.small == "total_steps" else run.setting(rule.small)), run.setting(rule.large)
        if small is None or large is None or not _comparable(small, large) or small.last <= 0:
            continue
        agreed |= {small.name: small.last, large.name: large.last}
        queue = rule.small == "capacity" and "queue" in small.name.lower() and small.key.unit is Unit.SAMPLE
        if small.last < large.last or (rule.equal and small.last == large.last):
            what = rule.text.format(a=small.name, x=count(small.last), b=large.name, y=count(large.last))
            because = [Because(small.first_place, small.name)]
            if large.first_place.line != small.first_place.line:
                because.append(Because(large.first_place, large.name))
            docket.add(
                "GYR514",
                State.BROKEN,
                what,
                quantity=small.name,
                value=small.last,
                first=small.first_place,
                because=because,
                hint=rule.hint + (", unless it counts batches" if queue else ""),
                at_most=Severity.WARNING if queue and rule.large == "batch_size" else None,
            )
    if agreed and len(docket.verdicts) == before:
        docket.add("GYR514", State.HOLDS, "settings agree: " + ", ".join(f"{name} {count(value)}" for name, value in agreed.items()))
    _uneven_groups(run, docket)
    _queue_deeper_than_age(run, docket)
    _published_rarely(run, docket)
    _before_first_update(run, docket)


def _total_steps(run: View) -> Series | None:
    """The run's planned length; what the run's own steps have passed is another number (`num_iterations` over one batch)."""
    reached = max((s.high for s in run.series("step", "update", least=3)), default=0.0)
    return next((s for s in run.snapshot.of("total_steps") if s.low == s.high and s.last >= reached), None)


def _comparable(a: Series, b: Series) -> bool:
    """Counts of two named units are never compared; groups and their members neither."""
    units = {a.key.unit, b.key.unit} - {Unit.SAMPLE}
    return len(units) < 2 or {a.key.term, b.key.term} == {"batch_size", "group_size"}


def _uneven_groups(run: View, docket: Docket) -> None:
    """A batch of members that is no whole number of groups: the last group of each batch is cut."""
    batch, group = run.setting("batch_size"), run.setting("group_size")
    if batch is None or group is None or group.last < 2 or batch.last <= group.last or batch.key.unit is Unit.GROUP:
        return
    rest = batch.last % group.last
    if rest:
        docket.add(
            "GYR514",
            State.BROKEN,
            f"{batch.name} {count(batch.last)} is no whole number of groups of {count(group.last)} ({group.name}): {count(rest)} of each "
            "batch belong to a group that is cut",
            quantity=batch.name,
            value=batch.last,
            first=batch.first_place,
            because=[Because(batch.first_place, batch.name), Because(group.first_place, group.name)],
            hint="make the batch a multiple of the group size",
            at_most=Severity.WARNING,
        )


def _queue_deeper_than_age(run: View, docket: Docket) -> None:
    capacity, batch, limit = run.setting("capacity"), run.setting("batch_size"), run.setting("max_age")
    main = run.main
    if capacity is None or batch is None or limit is None or batch.last <= 0 or not _comparable(capacity, batch):
        return
    depth = capacity.last / batch.last
    if depth > limit.last + 1 and (main is None or main.mode == "queue"):
        docket.add(
            "GYR514",
            State.BROKEN,
            (
                f"{capacity.name} {count(capacity.last)} holds {depth:.3g} batches, {limit.name} is {count(limit.last)}: "
                "what waits behind a full queue is too old when its turn comes"
            ),
            quantity=limit.name,
            value=limit.last,
            first=limit.first_place,
            because=[capacity.first_place, limit.first_place],
            hint="bound the queue at (limit + 1) batches",
            at_most=Severity.WARNING,
        )


def _published_rarely(run: View, docket: Docket) -> None:
    """Weights that are published less often than the data may be old, both in train steps: the steps to the next publication have no data."""
    every, limit = run.setting("publish_interval"), run.setting("max_age")
    if every is None or limit is None or not (limit.key.unit is Unit.STEP or "step" in limit.name.lower()) or every.last - 1 <= limit.last:
        return
    docket.add(
        "GYR514",
        State.BROKEN,
        f"weights are published every {count(every.last)} train steps ({every.name}), data may be at most {count(limit.last)} steps old "
        f"({limit.name}): after {count(limit.last + 1)} steps all data is too old, and the next publication is never reached",
        quantity=limit.name,
        value=limit.last,
        first=limit.first_place,
        because=[Because(every.first_place, every.name), Because(limit.first_place, limit.name)],
        hint="publish at least every (limit + 1) steps, or raise the limit",
    )


def _before_first_update(run: View, docket: Docket) -> None:
    """Things gone before any update ran."""
    updates, main = run.updates, run.main
    if updates is None or main is None or updates.values[0] > 0 or len(updates.orders) < 2:
        return
    idle = max((o for o, v in zip(updates.orders, updates.values, strict=True) if v == 0), default=None)
    if idle is None:
        return
    sampled = main.sampled
    for flow in main.drops:
        gone = flow.at(idle) or 0.0
        of = sampled.at(idle) if sampled else None
        if gone <= 0 or flow.reason == "cancelled" or flow.term not in SINKS or not of:
            continue
        part = gone / of
        if part < 0.05:
            continue
        place = flow.place_at(idle)
        docket.add(
            "GYR513",
            State.BROKEN,
            f"{count(gone)} of the first {count(of)} are {flow.reason or 'dropped'} before the first update could use them",
            quantity=f"{flow.reason or 'dropped'}_before_first_update",
            value=gone,
            unit=main.unit.value,
            first=place,
            because=[Because(place, "last line without an update")],
            hint="raise the capacity above the learning start, or start learning earlier",
            at_most=None if part >= 0.2 else Severity.WARNING,
        )
