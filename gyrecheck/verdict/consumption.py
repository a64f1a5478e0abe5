"""What becomes of what was sampled: nothing consumed, more made than used, used more often than said, a side that stops or is held back."""

from __future__ import annotations

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Place
from gyrecheck.verdict.accounts import Account
from gyrecheck.verdict.dropped import announced, drops, drops_of_handled
from gyrecheck.verdict.flows import build_flows, most_between
from gyrecheck.verdict.ruling import Because, Docket, count, share
from gyrecheck.verdict.view import View, last_move


def judge_consumption(run: View, docket: Docket) -> None:
    """Enter the verdicts on use and waste."""
    for account in run.accounts:
        if account.sampled is None:
            drops_of_handled(account, docket)
            continue
        drops(run, account, docket)
        if account is run.accounts[0]:
            _outrun(run, account, docket)
    _turnover(run, docket)
    announced(run, docket)
    _zero(run, docket)
    _stopped(run, docket)
    _throttled(run, docket)


def _zero(run: View, docket: Docket) -> None:
    """Nothing is reported as trained."""
    sampled, taken = run.sampled, run.taken
    if sampled is None or taken is None or sampled.last <= 0 or taken.last > 0 or len(sampled.orders) < 2:
        return
    account = run.accounts[0]
    dropped = account.dropped()
    if dropped >= docket.rules.thresholds.filter_all * sampled.last:
        return  # the filter's verdict says more
    updates = run.updates
    learner = [s for s in run.series("loss", "grad_norm", least=2) if s.high != s.low]
    readings = sum(s.count for s in taken.series)
    what = f"0 of {count(sampled.last)} sampled are reported as consumed: `{taken.name}` is 0 in all {readings} readings"
    places = [Because(taken.last_place, "last reading"), Because(taken.first_place, "first reading")]
    if updates is not None and updates.last > 0:
        docket.add(
            "GYR503",
            State.BROKEN,
            f"{what}, though {count(updates.last)} updates are counted: the counter is not wired, or updates run on other data",
            quantity=taken.name,
            value=0,
            unit=taken.unit.value,
            first=taken.first_place,
            because=places,
            hint="count what the update really took",
            at_most=Severity.WARNING,
        )
    elif updates is not None or run.series("left"):
        docket.add(
            "GYR503",
            State.BROKEN,
            f"{what}: nothing is trained",
            quantity=taken.name,
            value=0,
            unit=taken.unit.value,
            first=taken.first_place,
            because=places,
            hint="follow the diagnosis below in its order; a longer timeout only hides it",
        )
    else:
        tell = " although losses move" if learner else " and no learner statistics are in the log"
        docket.add(
            "GYR503",
            State.BROKEN,
            f"{what}{tell}: either no learning takes place or the counter is not wired; the log alone cannot tell",
            quantity=taken.name,
            value=0,
            unit=taken.unit.value,
            first=taken.first_place,
            because=places,
            hint="log the learner's own step count, or run it under `gyrecheck run`",
            at_most=Severity.WARNING,
        )


def _outrun(run: View, account: Account, docket: Docket) -> None:
    thresholds, sampled, taken = docket.rules.thresholds, account.sampled, account.taken
    if sampled is None or taken is None or taken.last <= 0 or account.mode == "replay":
        return
    stale = account.dropped("stale", "dropped_stale")
    seconds = run.snapshot.seconds
    per = f" ({sampled.last / seconds:.3g}/s in, {taken.last / seconds:.3g}/s out)" if seconds and seconds > 1 else ""
    least = thresholds.outrun_share if seconds and seconds >= 60 else thresholds.outrun_untimed
    if (
        stale > least * sampled.last
        and sampled.last > thresholds.outrun_rate * taken.last
        and stale <= thresholds.drops_high * sampled.last
    ):
        docket.add(
            "GYR508",
            State.BROKEN,
            (
                f"production outruns consumption{per}: {count(sampled.last)} sampled, {count(taken.last)} taken, "
                f"{share(stale, sampled.last)} dropped as stale"
            ),
            quantity="dropped_stale_share",
            value=round(stale / sampled.last, 4),
            because=[sampled.last_place, taken.last_place],
            hint="fewer samplers, or more consumption per version",
            at_most=Severity.WARNING if stale > thresholds.outrun_untimed * sampled.last else Severity.NOTE,  # a stall may have made it
        )
        return
    left = account.left
    if left is None or len(left.values) < 6 or run.snapshot.marked("throttled") or run.setting("capacity"):
        return
    rises = sum(b > a for a, b in zip(left.values, left.values[1:]))  # noqa: B905
    if (
        run.snapshot.of("max_age")
        and rises >= 0.7 * (len(left.values) - 1)
        and left.last > 3 * max(left.values[len(left.values) // 4], 1)
        and left.last > taken.last / max(len(taken.orders), 1) * 2
    ):
        docket.add(
            "GYR508",
            State.BROKEN,
            (
                f"the buffer only fills{per}: `{left.name}` {count(left.values[0])} to {count(left.last)}, "
                f"{count(sampled.last)} sampled, {count(taken.last)} taken"
            ),
            quantity=left.name,
            value=left.last,
            because=[left.last_place],
            hint="the surplus is never used: sample less, or bound the buffer",
            at_most=Severity.NOTE,
        )


def _turnover(run: View, docket: Docket) -> None:
    """Uses per thing against the declared reuse, where draws are logged."""
    drawn = next((f for f in run.snapshot.of("drawn")), None)
    declared = run.setting("declared_reuse")
    seen = run.sampled or next(iter(build_flows(run.series("sampled"), frozenset(("sampled",)), frozenset(), ())), None)
    if drawn is None or declared is None or seen is None or seen.last <= 0 or declared.last <= 0:
        return
    total = drawn.last if drawn.rises >= drawn.count - 1 else drawn.total
    measured = total / seen.last
    off = docket.rules.thresholds.turnover_off
    if measured > off * declared.last or measured * off < declared.last:
        docket.add(
            "GYR509",
            State.BROKEN,
            f"each is used {measured:.3g} times, {declared.name} says {count(declared.last)}",
            quantity="reuse",
            value=round(measured, 3),
            because=[drawn.last_place, declared.first_place],
            hint="compare the update's batch count with what was configured",
        )


def _stopped(run: View, docket: Docket) -> None:
    """Train steps or consumption that end while sampling goes on."""
    sampled = run.sampled
    if sampled is None or not run.snapshot.ordered:
        return
    for flow, word in ((run.updates, "train steps"), (run.taken, "consumption")):
        if flow is None or flow.last <= 0 or flow is sampled:
            continue
        stop = last_move(flow)
        moves = [o for o, a, b in zip(sampled.orders[1:], sampled.values, sampled.values[1:]) if b > a]  # noqa: B905
        after = [o for o in moves if o > stop]
        steps = [o for o, a, b in zip(flow.orders[1:], flow.values, flow.values[1:]) if b > a]  # noqa: B905
        if len(steps) < 2:
            continue
        usual = most_between(moves, steps)
        told = sum(o > stop for o in flow.orders)
        if len(after) < 5 or len(after) <= 3 * max(usual, 1) or len(after) * 5 < len(moves) or run.snapshot.marked("trainer_finished"):
            continue
        if told == 0 and len({s.path for s in flow.series} & {s.path for s in sampled.series}) == 0:
            continue
        place = flow.place_at(stop)
        more = sampled.last - (sampled.at(stop) or 0.0)
        docket.add(
            "GYR520",
            State.BROKEN,
            f"{word} stop at {count(flow.last)} (line {place.line}) while {count(more)} more are sampled",
            quantity=flow.name,
            value=flow.last,
            unit=flow.unit.value,
            first=place,
            because=[Because(place, "last progress"), Because(sampled.last_place, "sampling goes on")],
            hint="a live process is no live link: look at what the trainer waits for",
        )
        return


def _throttled(run: View, docket: Docket) -> None:
    marks = run.snapshot.marked("throttled")
    capacity, left = run.setting("capacity"), run.series("left")
    full = bool(capacity and left and left[0].count >= 3 and sum(v >= capacity.last for v in left[0].values) * 2 > len(left[0]))
    main = run.main
    if main is not None and main.mode == "replay":
        return
    if not any(f is not None and f.last > 0 for f in (run.taken, run.updates)):
        return  # a full buffer that nobody empties is another matter
    if len(marks) >= 2 or full:
        at: list[Because | Place] = [marks[0].place] if marks else [left[0].last_place]
        docket.add(
            "GYR519",
            State.HOLDS,
            "sampling is held back by a full buffer: training sets the pace, which is no fault",
            quantity="left",
            value=left[0].last if left else None,
            because=at,
            at_most=Severity.NOTE,
        )
