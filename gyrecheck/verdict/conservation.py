"""Does what was sampled equal what was taken, dropped and left? If not: since which line, how much, in which direction.

`sampled = taken + dropped_stale + dropped_other + left (+ in_flight)` in one unit, one stream, one run; in replay mode
`sampled = left + overwritten` (draws are another stream). The residual is sampled minus the rest: above 0 things were lost, below 0
they were used twice or a path is not counted. A missing term makes it undecided, with the value the term would need.
"""

from __future__ import annotations

from itertools import pairwise

from gyrecheck.model.events import Unit
from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Snapshot
from gyrecheck.verdict.accounts import Account
from gyrecheck.verdict.balance import Balance, balance, equation, overstated
from gyrecheck.verdict.bare_counts import BY_NAME
from gyrecheck.verdict.flows import Flow
from gyrecheck.verdict.interleaved import in_turns
from gyrecheck.verdict.missing_term import CODE, TWICE, left_missing, not_told_apart, suppressed, term_missing, undecided
from gyrecheck.verdict.residual_shape import (
    adds_up,
    closes_without_drops,
    floor,
    in_open_groups,
    in_other_things,
    mid_cycle,
    named_as,
    named_as_sum,
    over_capacity,
    steady_offset,
    stopped,
    unfinished,
    without_unfinished,
)
from gyrecheck.verdict.ruling import Because, Docket, count


def judge_conservation(snapshot: Snapshot, accounts: tuple[Account, ...], docket: Docket) -> tuple[Balance, ...]:
    """Enter one verdict per account; returns the balances for tables and figures."""
    balances = []
    for account in accounts:
        found = balance(account, snapshot)
        if found is None or not found.rows:
            continue
        if account is not accounts[0] and len(found.missing) > 1 and account.sampled is None:
            continue
        balances.append(found)
        if (mixed := in_turns(account)) is not None:
            not_told_apart(mixed, account, docket)
        elif snapshot.suppressed:
            suppressed(snapshot, found, docket)
        elif account.sampled is None or (account.taken is None and account.mode != "replay"):
            term_missing(snapshot, found, docket)
        else:
            _full(snapshot, found, docket)
    return tuple(balances)


def _full(snapshot: Snapshot, found: Balance, docket: Docket) -> None:
    rows, limit = found.rows, docket.rules.thresholds.good_rows
    good = [at for at, row in enumerate(rows) if found.good(row)]
    last_good = good[-1] if good else -1
    if last_good == len(rows) - 1 or (good and mid_cycle(found, last_good, good)):
        _holds(found, last_good, docket)
        return
    r = found.residual
    no_left = "left" in found.missing
    if r < -found.tolerance:
        _broken(snapshot, found, last_good + 1, docket)
    elif no_left and stopped(found, last_good):
        left_missing(snapshot, found, docket)
    elif (no_left and over_capacity(snapshot, found)) or (
        len(good) >= (limit if no_left else 1) and (not no_left or len(good) * 2 >= last_good + 1)
    ):
        _broken(snapshot, found, last_good + 1, docket)
    elif no_left:
        left_missing(snapshot, found, docket)
    elif adds_up(floor([r for _, r in rows])) or (len(rows) == 1 and "dropped" not in found.missing):
        _broken(snapshot, found, 0, docket)
    elif steady_offset(found):
        _holds(found, len(rows) - 1, docket, offset=rows[0][1])
    elif "dropped" in found.missing and not good:
        undecided(found, "dropped", r, docket, snapshot)
    elif found.account.in_flight is None:
        undecided(found, "in_flight", r, docket, snapshot)
    else:
        _broken(snapshot, found, last_good + 1, docket)


def _holds(found: Balance, at: int, docket: Docket, *, offset: float = 0.0) -> None:
    account = found.account
    assert account.sampled is not None  # noqa: S101 - judged only with it
    name = f" ({account.label})" if account.label else ""
    message = f"conservation holds{name}: {count(account.sampled.last)} sampled = {equation(found)}"
    if offset:
        message = (
            f"conservation holds within the log{name}; {count(abs(offset))} were "
            f"{'missing' if offset > 0 else 'too many'} before its first line"
        )
    elif at < len(found.rows) - 1:
        message += "; the log ends between two lines that belong together"
    if "left" in found.missing and account.mode == "queue":
        message += "; no buffer is logged and none is needed"
    docket.add(CODE, State.HOLDS, message, quantity="unaccounted", value=0, unit=account.unit.value)


def _broken(snapshot: Snapshot, found: Balance, at: int, docket: Docket) -> None:
    account, r = found.account, found.residual
    assert account.sampled is not None  # noqa: S101 - judged only with it
    at = min(max(at, 0), len(found.rows) - 1)
    order = found.rows[at][0]
    moved, how = _moved(found, at)
    told = moved or next((f for f in account.flows if any(s.orders[max(s.index(order), 0)] == order for s in f.series)), account.sampled)
    place = told.place_at(order)
    since = f"since line {place.line}" if place.line else "at the end"
    name = f" {account.things}" if account.things else ""
    name += f" (run {account.segment} of {account.segments})" if account.segments > 1 else ""
    unit = account.unit.value
    k = overstated(account.sampled, account.taken, docket.rules.thresholds.overstate) if r < 0 and account.taken is not None else None
    if k is not None and account.taken is not None:
        passes = next((s for s in snapshot.of("declared_reuse") if s.low == s.high and s.last > 1), None)
        if passes is not None and abs(k - passes.last) <= 0.05 * k:
            what = f"`{account.taken.name}` counts each of the {count(k)} passes that `{passes.name}` declares"
            docket.add("GYR518", State.HOLDS, what, quantity=account.taken.name, value=account.taken.last)
            return
        what = (
            f"`{account.taken.name}` is {count(k)} times `{account.sampled.name}` on every line "
            f"({count(account.taken.last)} of {count(account.sampled.last)}): it counts each epoch, minibatch or rank, "
            f"not each {unit} once"
        )
        if passes is not None:
            what += f"; `{passes.name}` says {count(passes.last)}"
        docket.add(
            "GYR518",
            State.BROKEN,
            what,
            quantity=account.taken.name,
            value=account.taken.last,
            unit=unit,
            first=account.taken.first_place,
            because=[account.taken.last_place],
            hint="divide by what it counts, or log first uses and draws apart",
            at_most=Severity.WARNING,
        )
        return
    if r < 0 and at == 0 and account.unit is Unit.TOKEN and account.taken is not None and _more_than_sampled(account):
        _padded(account, docket)
        return
    k = in_other_things(found) if r > 0 else 0
    if k:
        how = f"; `{account.sampled.name}` is {count(k)} times all that the others name on every line: it counts other things (frames of a step, members of a group)"
        undecided(found, "taken", r, docket, snapshot, how)
        return
    other = named_as(snapshot, account.sampled.last_place.text, r)
    if other:
        undecided(found, "dropped", r, docket, snapshot, f"; `{other}` is as many, and is not known to be a part of it")
        return
    both = named_as_sum(snapshot, found) if r > 0 else None
    if both is not None:
        how = f"; `{both[0]}` and `{both[1]}` are together as many on the first line and the last, and are not known to be parts of it"
        undecided(found, "dropped", r, docket, snapshot, how)
        return
    holding = in_open_groups(snapshot, found) if r > 0 else ""
    if holding:
        undecided(found, "in_flight", r, docket, snapshot, f"; the groups of `{holding}` can hold as many, until they are full")
        return
    sum_of = f"{count(account.sampled.last)} {account.sampled.name} - ({equation(found)}) = {count(r)}"
    because = [Because(place, f"first line that does not close: {count(found.rows[at][1])}")]
    because += [
        Because(m.place, m.name) for m in snapshot.marked("restart", "restored") if at > 0 and found.rows[at - 1][0] <= m.order <= order
    ]
    if account.sampled.last_place.line != place.line:
        because.append(Because(account.sampled.last_place, "last total"))
    if r > 0:
        restart = any(b.label == "restart" for b in because)
        what = f"{count(r)}{name} unaccounted {since}: {sum_of}{how}"
        hint = (
            "the buffer's content was not carried over the restart: save and restore it with the cursor"
            if restart
            else "look for a path out of the buffer that no counter names"
        )
        most = Severity.WARNING if account.sampled.reason == BY_NAME else None
        docket.add(
            CODE, State.BROKEN, what, quantity="unaccounted", value=r, unit=unit, first=place, because=because, hint=hint, at_most=most
        )
        return
    kept = without_unfinished(snapshot, found)
    if kept is not None:
        how = "; what was cancelled before its end was never among what is counted, as far as the lines say"
        undecided(kept, "in_flight", kept.residual, docket, snapshot, how)
        return
    what = f"{count(-r)}{name} more left than came in, {since}: {sum_of}{how}: used twice, or a use that no counter of sampling names"
    hint = "give each trajectory an id and take it once; or, if reuse is meant, log draws apart from first uses"
    apart = closes_without_drops(snapshot, found)
    if apart:
        what += "; without what is dropped every line closes: it was never among them, or it is used all the same"
    docket.add(
        TWICE,
        State.BROKEN,
        what,
        quantity="unaccounted",
        value=r,
        unit=unit,
        first=place,
        because=because,
        hint=hint,
        at_most=(Severity.NOTE if unfinished(found) else Severity.WARNING) if apart else None,
    )


def _more_than_sampled(account: Account) -> bool:
    """Whether each step trains on more tokens than were sampled for it, from the first line on."""
    sampled, taken = account.sampled, account.taken
    if sampled is None or taken is None or account.left is not None:
        return False
    pairs = [(s, taken.at(o) or 0.0) for o, s in zip(sampled.orders, sampled.values, strict=True)]
    steps = [(s - a, t - b) for (a, b), (s, t) in pairwise([(0.0, 0.0), *pairs])]
    return len(steps) >= 3 and all(t > s > 0 for s, t in steps)


def _padded(account: Account, docket: Docket) -> None:
    sampled, taken = account.sampled, account.taken
    assert sampled is not None and taken is not None  # noqa: S101, PT018 - judged only with both
    docket.add(
        "GYR518",
        State.BROKEN,
        f"`{taken.name}` is {taken.last / sampled.last:.3g} times `{sampled.name}` ({count(taken.last)} of {count(sampled.last)}), more on every "
        "line from the first on: it counts padding or prompts too, so rates and schedules computed from it are too high",
        quantity=taken.name,
        value=taken.last,
        unit=account.unit.value,
        first=taken.first_place,
        because=[taken.last_place, sampled.last_place],
        hint="count the tokens that the loss mask selects",
        at_most=Severity.WARNING,
    )


def _moved(found: Balance, at: int) -> tuple[Flow | None, str]:
    """The term whose step made the residual leave its tolerance, when one stands out."""
    if at == 0:
        return None, ""
    before, after = found.rows[at - 1][0], found.rows[at][0]
    jump = found.rows[at][1] - found.rows[at - 1][1]
    steps = [(f, (f.at(after) or 0.0) - (f.at(before) or 0.0)) for f in found.account.flows]
    fell = [(f, d) for f, d in steps if d < 0]
    if jump > 0 and fell:
        flow, step = max(fell, key=lambda item: -item[1])
        return flow, f"; `{flow.name}` fell from {count(flow.at(before) or 0)} to {count(flow.at(after) or 0)}" if step else ""
    return None, ""
