"""What a restart repeats or loses: a cursor that stands still, work that is done again, runs that share one log."""

from __future__ import annotations

from itertools import pairwise

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Series
from gyrecheck.verdict.flows import Flow, build_flows
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.view import View


def judge_resume(run: View, docket: Docket) -> None:
    """Enter the verdicts on resuming."""
    again = run.flow("used_again")
    repeated = again.last if again is not None else 0.0
    handled = _handled(run)
    if handled is not None and _pinned(run, handled, again, docket):
        return
    if _rewound(run, handled, docket):
        return
    _jumped_ahead(run, docket)
    resumed = run.series("resumed_at")
    if handled is not None and resumed:
        _jump(run, handled, resumed[0], repeated, docket)
    elif again is not None and repeated > 0:
        at = again.place_at(next(o for o, v in zip(again.orders, again.values, strict=True) if v > 0))
        restart = next(iter(run.restarts), None)
        because = [Because(again.last_place, again.name), *([Because(restart.place, "restart")] if restart else [])]
        docket.add(
            "GYR510",
            State.BROKEN,
            f"{count(repeated)} are used a second time (`{again.name}`), first at line {at.line}"
            + (", after the restart" if restart and restart.place.line <= at.line else ""),
            quantity=again.name,
            value=repeated,
            first=at,
            because=because,
            hint="make the id of what is consumed part of the checkpoint, and skip what is known",
        )


def _handled(run: View) -> Flow | None:
    """What is finished for good: trained and discarded together, else what was taken, else what was sampled."""
    account = run.main
    if account is None:
        return next(
            iter(build_flows(run.series("taken", "done"), frozenset(("taken", "done")), frozenset(), [m.order for m in run.restarts])), None
        )
    if account.stand_in and account.sampled is not None and account.mode == "queue":
        return account.sampled
    parts = [f for f in (account.taken, *account.drops) if f is not None]
    if account.taken is None:
        return account.sampled
    orders = sorted({o for f in parts for o in f.orders})
    values = [sum(row) for row in zip(*(f.after(orders) for f in parts), strict=True)]
    first = account.taken
    return Flow(
        "trained and discarded",
        "done",
        first.unit,
        "",
        first.stream,
        True,
        "",
        orders,
        values,
        (),
        tuple(s for f in parts for s in f.series),
    )


def _pinned(run: View, handled: Flow, again: Flow | None, docket: Docket) -> bool:
    for cursor in run.series("cursor"):
        moves = [i for i in range(1, len(cursor)) if cursor.values[i] != cursor.values[i - 1]]
        since = moves[-1] if moves else 0
        stand = cursor.values[since]
        steps = [o for o, a, b in zip(handled.orders[1:], handled.values, handled.values[1:]) if b > a]  # noqa: B905
        told = list(cursor.orders[since:])
        during = [o for o in steps if told[0] < o <= told[-1]]
        done = max((v for o, v in zip(handled.orders, handled.values, strict=True) if o <= told[-1]), default=0.0)
        if len(told) < 4 or len(during) < 3 or done <= stand:
            continue
        gaps = [b - a for a, b in pairwise(moves)]
        if gaps and len(told) <= 3 * max(gaps):
            continue
        resumed = next((s for s in run.series("resumed_at") if s.last == stand), None)
        repeated = again.last if again is not None else 0.0
        place = cursor.place(since)
        because = [Because(place, "cursor"), Because(cursor.place(len(cursor) - 1), "still there")]
        if resumed is not None:
            because.append(Because(resumed.first_place, "resumed from it"))
        if repeated and again is not None:
            because.append(Because(again.first_place, again.name))
        what = (
            f"`{cursor.name}` stands at {count(stand)} from line {place.line} on while {count(done)} are done: a resume "
            f"repeats {count(done - stand)}"
        )
        what += f"; after the restart {count(repeated)} are trained a second time" if repeated else ""
        docket.add(
            "GYR512",
            State.BROKEN,
            what,
            quantity=cursor.name.replace(" ", "_"),
            value=stand,
            unit=handled.unit.value,
            first=place,
            because=because,
            hint="move the cursor past what was trained and what was discarded alike",
            at_most=None if resumed is not None or repeated else Severity.WARNING,
        )
        return True
    return False


def _rewound(run: View, handled: Flow | None, docket: Docket) -> bool:
    """A cursor that goes back at a restart while what is done goes on; at the end of a data set it begins anew without one."""
    for cursor in run.series("cursor", least=3):
        for at in range(1, len(cursor)):
            before, after = cursor.values[at - 1], cursor.values[at]
            low, high = cursor.orders[at - 1], cursor.orders[at]
            restart = next((m for m in run.restarts if low < m.order <= high), None)
            if after >= before or restart is None or _next_epoch(run, low, high):
                continue
            went_on = _went_on(run, cursor, at) if handled is None else _is_done(handled, low, high, before - after)
            if not went_on:
                continue
            place = cursor.place(at)
            docket.add(
                "GYR512",
                State.BROKEN,
                f"`{cursor.name}` goes back from {count(before)} to {count(after)} at the restart, line {place.line}, while {went_on}: "
                f"{count(before - after)} are repeated",
                quantity=cursor.name.replace(" ", "_"),
                value=after,
                unit=handled.unit.value if handled is not None else cursor.key.unit.value,
                first=place,
                because=[Because(cursor.place(at - 1), "before"), Because(place, "after"), Because(restart.place, "restart")],
                hint="save the cursor with what it counts, and restore it",
            )
            return True
        crossed = [m for m in run.restarts if cursor.orders[0] < m.order < cursor.orders[-1]]
        if crossed and not cursor.falls:
            text = f"`{cursor.name}` goes on over {'the restart' if len(crossed) == 1 else f'{len(crossed)} restarts'}"
            docket.add("GYR512", State.HOLDS, text, quantity=cursor.name.replace(" ", "_"), value=cursor.last)
            return False
    return False


def _next_epoch(run: View, low: int, high: int) -> bool:
    """Whether the data set began anew there by itself: an epoch is counted up."""
    for axis in run.series("step", "within"):
        old, new = axis.index(low), axis.index(high)
        if "epoch" in axis.name.lower() and 0 <= old < new and axis.values[new] > axis.values[old]:
            return True
    return False


def _jumped_ahead(run: View, docket: Docket) -> None:
    """A cursor that skips part of the data at a restart: it moves there by several of the steps that it takes everywhere else."""
    for cursor in run.series("cursor", least=6):
        steps = [b - a for a, b in pairwise(cursor.values)]
        usual = sorted(steps)[len(steps) // 2]
        for at, step in enumerate(steps, 1):
            restart = next((m for m in run.restarts if cursor.orders[at - 1] < m.order <= cursor.orders[at]), None)
            rest = [s for i, s in enumerate(steps, 1) if i != at]
            if restart is None or usual <= 0 or step < 3 * usual or max(rest) > 1.5 * usual or min(rest) < 0:
                continue
            place = cursor.place(at)
            docket.add(
                "GYR507",
                State.BROKEN,
                f"`{cursor.name}` jumps from {count(cursor.values[at - 1])} to {count(cursor.values[at])} at the restart, line {place.line}, and "
                f"moves by {count(usual)} elsewhere: {count(step - usual)} are skipped and never trained",
                quantity=cursor.name.replace(" ", "_"),
                value=step - usual,
                unit=cursor.key.unit.value,
                first=place,
                because=[Because(cursor.place(at - 1), "before"), Because(place, "after"), Because(restart.place, "restart")],
                hint="resume the data from the position of the last trained batch, not from that of the last one fetched",
                at_most=Severity.WARNING,
            )
            return


def _is_done(handled: Flow, low: int, high: int, repeated: float) -> str:
    """What was finished before the cursor went back, in words; empty when it went back too, or never covered it."""
    done = handled.at(low)
    if any(low < reset <= high for reset in handled.resets) or done is None or handled.last <= done or done < repeated:
        return ""
    return f"{count(done)} are done"


def _went_on(run: View, cursor: Series, at: int) -> str:
    """The train steps or position that go on where the cursor goes back by more than one of its steps, in words; empty when none does."""
    steps = sorted(b - a for a, b in pairwise(cursor.values) if b > a)
    if not steps or cursor.values[at - 1] - cursor.values[at] <= steps[len(steps) // 2]:
        return ""
    low, high = cursor.orders[at - 1], cursor.orders[at]
    for axis in run.series("update", "step", "trainer_version", least=3):
        before, after = axis.index(low), axis.index(high)
        if 0 <= before < after and axis.values[after] > axis.values[before] and axis.falls == 0:
            return f"`{axis.name}` goes on from {count(axis.values[before])} to {count(axis.values[after])}"
    return ""


def _jump(run: View, handled: Flow, resumed: Series, repeated: float, docket: Docket) -> None:
    """A resume that begins before or after what was finished."""
    cursors = run.series("cursor")
    before = handled.at(resumed.orders[0])
    if before is None or not cursors:
        return
    if cursors[0].values[max(cursors[0].index(resumed.orders[0]), 0)] == resumed.first == before:
        return
    if resumed.first < before and repeated > 0:
        docket.add(
            "GYR512",
            State.BROKEN,
            (f"resumed at {count(resumed.first)} although {count(before)} were done: {count(before - resumed.first)} are repeated"),
            quantity=resumed.name.replace(" ", "_"),
            value=resumed.first,
            first=resumed.first_place,
            because=[resumed.first_place],
            hint="save the cursor with what it counts",
        )


def runs_in_log(run: View) -> tuple[str, ...]:
    """Sentences on segments: several runs in one log, what the earlier one left behind."""
    out = []
    for account in run.accounts:
        if account.segments > 1 and account.segment > 1 and account.sampled is not None:
            place = (
                account.sampled.place_at(account.low + 1)
                if account.sampled.orders[0] <= account.low + 1
                else account.sampled.place_at(account.sampled.orders[0])
            )
            before = next(
                (a for a in run.accounts if a.segment == account.segment - 1 and (a.unit, a.stream) == (account.unit, account.stream)), None
            )
            rest = (
                f"; the one before ended with {count(before.left.last)} left"
                if before is not None and before.left is not None and before.left.last
                else ""
            )
            out.append(
                f"All counters begin anew at line {place.line}: run {account.segment} of {account.segments} in this "
                f"log, balanced on its own{rest}."
            )
    if run.accounts and run.accounts[0].segments == 1:
        out += [
            f"`{flow.name}` begins anew or goes back at line {flow.place_at(order).line}: totals go on from there."
            for flow in run.accounts[0].flows
            for order in flow.resets[:1]
        ]
    return tuple(dict.fromkeys(out))
