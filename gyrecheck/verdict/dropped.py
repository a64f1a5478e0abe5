"""How much of what was sampled is dropped: all refused by a filter, much lost, or withdrawn at the announced end (GYR506, GYR511).

What a replay buffer overwrites is no waste, and what is cancelled at the end of the run no fault.
"""

from __future__ import annotations

from gyrecheck.model.finding import Severity, State
from gyrecheck.verdict.accounts import Account
from gyrecheck.verdict.ruling import Because, Docket, count, share
from gyrecheck.verdict.view import View, last_move

_ANNOUNCED = frozenset(("cancelled",))
_NO_WASTE = frozenset(("overwritten",))


def drops(run: View, account: Account, docket: Docket) -> None:
    """Enter each way out of the ledger that takes all, or much, of what was sampled."""
    thresholds, sampled = docket.rules.thresholds, account.sampled
    if sampled is None or sampled.last <= 0:
        return
    least = thresholds.drops_least
    for flow in account.drops:
        reason = flow.way
        part = flow.last / sampled.last
        if reason in _NO_WASTE and account.mode == "replay":
            continue
        if reason in _ANNOUNCED and (run.snapshot.marked("tail") or len(flow.orders) == 1):
            docket.add(
                "GYR511",
                State.HOLDS,
                f"{count(flow.last)} {reason} ({share(flow.last, sampled.last)}), announced at the end of the run",
                quantity=f"dropped_{reason}",
                value=flow.last,
                because=[flow.last_place],
                at_most=Severity.NOTE,
            )
            continue
        taken = account.taken.last if account.taken else None
        late_taken = account.taken is not None and last_move(account.taken) > flow.first_order and taken
        if part >= thresholds.filter_all and not late_taken and sampled.last >= least and account.taken is not None:
            age = run.series("age", "age_max")
            limit = run.setting("max_age")
            why = f"; {age[0].name} {count(age[0].low)} to {count(age[0].high)}" if age else ""
            why += f", limit {count(limit.last)}" if limit else ""
            docket.add(
                "GYR506",
                State.BROKEN,
                (
                    f"the consumer's filter refuses {share(flow.last, sampled.last)}: {count(flow.last)} of "
                    f"{count(sampled.last)} dropped as {reason}, {count(taken or 0)} taken{why}"
                ),
                quantity=f"dropped_{reason}_share",
                value=round(part, 4),
                first=flow.first_place,
                because=[Because(flow.last_place, f"{flow.name}"), Because(sampled.last_place, sampled.name)],
                hint=_filter_hint(reason),
            )
        elif part > thresholds.drops_high and (sampled.last >= least or len(flow.orders) >= 5):
            reward = next((s for s in run.series("reward", least=2) if 0 < s.high <= 1.0), None)
            solved = reward is not None and sum(reward.values) / len(reward) >= thresholds.reward_saturated
            closed = any(b.account is account and b.good(b.rows[-1]) for b in run.balances)
            tail = ", all accounted for" if closed else ""
            per = len(flow.orders)
            effective = (
                f"; a step trains on about {count(round((taken or 0) / per))} of {count(round(sampled.last / per))}"
                if taken and per > 1 and not sampled.cumulative
                else ""
            )
            text = (
                f"{share(flow.last, sampled.last)} of what is sampled is dropped ({flow.name}: {count(flow.last)} of "
                f"{count(sampled.last)}{tail}){effective}"
            )
            if solved and reward is not None:
                text += f"; {reward.name} is {reward.last:.3g}: the task is nearly solved"
            docket.add(
                "GYR511",
                State.BROKEN,
                text,
                quantity=f"dropped_{reason}_share",
                value=round(part, 4),
                first=flow.first_place,
                because=[Because(flow.last_place, flow.name)],
                hint="sample harder tasks, or count on the smaller batch"
                if reason == "filter"
                else "slow sampling down or train faster; dropping is no speed-up",
                at_most=Severity.WARNING,
            )


def drops_of_handled(account: Account, docket: Docket) -> None:
    """The same where what was sampled is not counted: of what was taken and dropped together."""
    thresholds, taken = docket.rules.thresholds, account.taken
    if taken is None or taken.last <= 0 or taken.term != "taken":
        return
    handled = taken.last + account.dropped()
    for flow in account.drops:
        if flow.reason in _ANNOUNCED | _NO_WASTE or flow.last <= thresholds.drops_high * handled or handled < thresholds.drops_least:
            continue
        docket.add(
            "GYR511",
            State.BROKEN,
            f"{share(flow.last, handled)} of what is taken or dropped is dropped ({flow.name}: {count(flow.last)} of {count(handled)})",
            quantity=f"dropped_{flow.way}_share",
            value=round(flow.last / handled, 4),
            first=flow.first_place,
            because=[Because(flow.last_place, flow.name), Because(taken.last_place, taken.name)],
            hint="look at why so much is dropped; dropping is no speed-up",
            at_most=Severity.WARNING,
        )


def announced(run: View, docket: Docket) -> None:
    """Work withdrawn at the announced end, in a log that balances nothing: said, and no fault."""
    if any(account.sampled is not None for account in run.accounts) or not run.snapshot.marked("tail"):
        return
    for series in run.series("dropped_other"):
        if series.key.reason in _ANNOUNCED and series.last > 0:
            what = f"{count(series.last)} {series.name} at the announced end of the run: no fault"
            at = [Because(series.last_place, series.name)]
            name = f"dropped_{series.key.reason}"
            docket.add("GYR511", State.HOLDS, what, quantity=name, value=series.last, because=at, at_most=Severity.NOTE)


def _filter_hint(reason: str) -> str:
    if reason == "stale":
        return "let the sampler load new versions, or raise the age limit"
    return "look at the filter's condition: what it refuses is everything"
