"""Does what was sampled equal what was taken, dropped and left? If not: since which line, how much, in which direction.

`sampled = taken + dropped_stale + dropped_other + left (+ in_flight)` in one unit, one stream, one run; in replay mode
`sampled = left + overwritten` (draws are another stream). The residual is sampled minus the rest: above 0 things were lost, below 0
they were used twice or a path is not counted. A missing term makes it undecided, with the value the term would need.
"""

from __future__ import annotations

from itertools import pairwise

from gyrecheck.model.events import Unit
from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Place, Snapshot
from gyrecheck.verdict.accounts import Account
from gyrecheck.verdict.balance import Balance, balance, equation, overstated
from gyrecheck.verdict.flows import Flow, last_move
from gyrecheck.verdict.ruling import Because, Docket, count

CODE, TWICE = "GYR507", "GYR510"


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
        if snapshot.suppressed:
            _suppressed(snapshot, found, docket)
        elif account.sampled is None or (account.taken is None and account.mode != "replay"):
            _term_missing(snapshot, found, docket)
        else:
            _full(snapshot, found, docket)
    return tuple(balances)


def _full(snapshot: Snapshot, found: Balance, docket: Docket) -> None:
    rows, limit = found.rows, docket.rules.thresholds.good_rows
    good = [at for at, row in enumerate(rows) if found.good(row)]
    last_good = good[-1] if good else -1
    if last_good == len(rows) - 1 or (good and _mid_cycle(found, last_good, good)):
        _holds(found, last_good, docket)
        return
    r = found.residual
    no_left = "left" in found.missing
    if r < -found.tolerance:
        _broken(snapshot, found, last_good + 1, docket)
    elif no_left and _stopped(found, last_good):
        _left_missing(snapshot, found, docket)
    elif (no_left and _over_capacity(snapshot, found)) or (
        len(good) >= (limit if no_left else 1) and (not no_left or len(good) * 2 >= last_good + 1)
    ):
        _broken(snapshot, found, last_good + 1, docket)
    elif no_left:
        _left_missing(snapshot, found, docket)
    elif _grows(_floor([r for _, r in rows])) or (len(rows) == 1 and "dropped" not in found.missing):
        _broken(snapshot, found, 0, docket)
    elif _steady_offset(found):
        _holds(found, len(rows) - 1, docket, offset=rows[0][1])
    elif "dropped" in found.missing and not good:
        _undecided(found, "dropped", r, docket, snapshot)
    elif found.account.in_flight is None:
        _undecided(found, "in_flight", r, docket, snapshot)
    else:
        _broken(snapshot, found, last_good + 1, docket)


def _mid_cycle(found: Balance, last_good: int, good: list[int]) -> bool:
    """Whether the log just ends between two lines that belong together: some term was not told again since it last closed."""
    if len(good) < 2:
        return False
    tail = found.rows[last_good + 1 :]
    longest = max((b - a for a, b in pairwise(good)), default=1)
    since = found.rows[last_good][0]
    main = [f for f in (found.account.sampled, found.account.taken, found.account.left) if f is not None]
    untold = any(f.orders[-1] <= since for f in main)
    # More used than sampled is half a cycle only in a log that has said uses before their samples in earlier cycles too.
    ahead = any(r < -found.tolerance for _, r in tail)
    was_ahead = any(r < -found.tolerance for _, r in found.rows[good[0] : last_good])
    return untold and len(tail) <= max(longest, 1) and (was_ahead or not ahead)


def _stopped(found: Balance, last_good: int) -> bool:
    """Whether consumption just ended where the balance last closed: the surplus waits, it need not be lost."""
    taken = found.account.taken
    return taken is not None and last_good >= 0 and last_move(taken) <= found.rows[last_good][0]


def _over_capacity(snapshot: Snapshot, found: Balance) -> bool:
    capacity = [s.last for s in snapshot.of("capacity")]
    return bool(capacity) and found.residual > max(capacity) * 1.0001 and found.account.mode == "queue"


def _grows(residuals: list[float]) -> bool:
    """A loss that adds up: it never falls back and ends well above where it began."""
    rises = sum(b > a for a, b in pairwise(residuals))
    falls = sum(b < a for a, b in pairwise(residuals))
    return rises >= 2 and falls == 0


def _floor(residuals: list[float]) -> list[float]:
    """The lowest residual of each cycle: what is still missing when all lines of a cycle have been read."""
    if len(residuals) < 8:
        return residuals
    ends = [*residuals[1:], residuals[-1]]
    lows = [r for before, r, after in zip([residuals[0], *residuals], residuals, ends, strict=False) if r <= before and r <= after]
    floors = [low for low, following in zip(lows, [*lows[1:], None], strict=True) if low != following]
    return floors if len(floors) >= 3 else residuals


def _steady_offset(found: Balance) -> bool:
    """A log that begins in the middle of a run: the same offset on every line, nothing lost within the log."""
    values = [r for _, r in found.rows]
    sampled = found.account.sampled
    if len(values) < 4 or max(values) - min(values) > found.tolerance or sampled is None or not sampled.cumulative:
        return False
    return sampled.values[0] > 3.0 * (sampled.values[1] - sampled.values[0]) > 0


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
    place = moved.place_at(order) if moved else account.sampled.place_at(order)
    since = f"since line {place.line}" if place.line else "at the end"
    name = f" {account.things}" if account.things else ""
    name += f" (run {account.segment} of {account.segments})" if account.segments > 1 else ""
    unit = account.unit.value
    k = overstated(account.sampled, account.taken, docket.rules.thresholds.overstate) if r < 0 and account.taken is not None else None
    if k is not None and account.taken is not None:
        what = (
            f"`{account.taken.name}` is {count(k)} times `{account.sampled.name}` on every line "
            f"({count(account.taken.last)} of {count(account.sampled.last)}): it counts each epoch, minibatch or rank, "
            f"not each {unit} once"
        )
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
        docket.add(CODE, State.BROKEN, what, quantity="unaccounted", value=r, unit=unit, first=place, because=because, hint=hint)
        return
    what = f"{count(-r)}{name} more left than came in, {since}: {sum_of}{how}: used twice, or a use that no counter of sampling names"
    hint = "give each trajectory an id and take it once; or, if reuse is meant, log draws apart from first uses"
    docket.add(TWICE, State.BROKEN, what, quantity="unaccounted", value=r, unit=unit, first=place, because=because, hint=hint)


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


def _left_missing(snapshot: Snapshot, found: Balance, docket: Docket) -> None:
    values = [r for _, r in found.rows]
    half = values[len(values) // 2 :]
    constant = len(half) > 2 and max(half) - min(half) <= found.tolerance
    shape = (
        f", constant since line {found.account.sampled.place_at(found.rows[len(values) // 2][0]).line}"
        if constant and found.account.sampled
        else ""
    )
    grows = len(values) >= 6 and _grows(values) and not constant
    _undecided(
        found, "left", found.residual, docket, snapshot, shape + (" and growing: a buffer that only fills, or a loss" if grows else "")
    )


def _term_missing(snapshot: Snapshot, found: Balance, docket: Docket) -> None:
    term = "sampled" if found.account.sampled is None else "taken"
    need = -found.residual if term == "sampled" else found.residual
    if term == "taken" and need < -found.tolerance and found.account.sampled is not None:
        place = found.account.sampled.last_place
        what = f"dropped and left together are {count(-need)} more than sampled: {count(found.account.sampled.last)} - ({equation(found)})"
        docket.add(
            TWICE, State.BROKEN, what, quantity="unaccounted", value=need, unit=found.account.unit.value, first=place, because=[place]
        )
        return
    _undecided(found, term, need, docket, snapshot)


def _undecided(found: Balance, term: str, need: float, docket: Docket, snapshot: Snapshot, shape: str = "") -> None:
    account = found.account
    if any(v.code == CODE and v.state is State.UNDECIDED and v.quantity == term for v in docket.verdicts):
        return  # another unit or stream of the same log lacks the same term
    names = {
        "left": "what is left in the buffer",
        "taken": "what training took",
        "sampled": "what was sampled",
        "dropped": "what was dropped",
        "in_flight": "what is in flight",
    }
    lacks = next((f.lacks[term] for f in snapshot.files if term in f.lacks), "")
    option = ", or pass --left N" if term == "left" else f", or name the key with --map {term}=KEY"
    terms = " · ".join(
        [f"{n} {count(f.last)}" for n, f in (("sampled", account.sampled), ("taken", account.taken)) if f is not None]
        + [f"{f.reason or f.term} {count(f.last)}" for f in account.drops]
        + ([f"left {count(account.left.last)}"] if account.left is not None else [])
    )
    label = f" ({account.label})" if account.label else ""
    message = (
        f"conservation{label}: the log has no count of {names[term]}{_also(found, term)}; {terms} · {_needs(found, term, need)}{shape}"
    )
    place: Place | None = account.sampled.last_place if account.sampled else account.flows[0].last_place
    hint = (lacks or {"left": "log the buffer's size at exit"}.get(term, f"log {names[term]}")) + option
    docket.add(
        CODE,
        State.UNDECIDED,
        message,
        quantity=term,
        value=need,
        unit=account.unit.value,
        because=[place] if place else [],
        hint=hint,
        at_most=Severity.WARNING,
    )


def _open_terms(found: Balance, term: str) -> list[str]:
    """The other terms that the log does not give."""
    return [other for other in found.missing if other != term]


def _also(found: Balance, term: str) -> str:
    names = {"taken": "what training took", "left": "what is left", "dropped": "what was dropped", "sampled": "what was sampled"}
    others = [names[other] for other in _open_terms(found, term)]
    return f", nor of {' or '.join(others)}" if others else ""


def _needs(found: Balance, term: str, need: float) -> str:
    """What the missing terms would need to be; several can only be told together."""
    others = _open_terms(found, term)
    if not others:
        return f"{term} would need to be {count(need)}"
    if found.account.sampled is None:
        return f"sampled less {' and '.join(other for other in others if other != 'sampled')} would need to be {count(need)}"
    return f"{', '.join([term, *others[:-1]])} and {others[-1]} together would need to be {count(need)}"


def _suppressed(snapshot: Snapshot, found: Balance, docket: Docket) -> None:
    message = (
        f"conservation: incomplete, the console left out {count(snapshot.suppressed)} lines like those it shows "
        "(`[repeated Nx across cluster]`)"
    )
    at = [snapshot.suppressed_at] if snapshot.suppressed_at else []
    hint = "set RAY_DEDUP_LOGS=0, or give the workers' own log files"
    docket.add(
        CODE,
        State.UNDECIDED,
        message,
        quantity="unaccounted",
        value=None,
        unit=found.account.unit.value,
        because=at,
        hint=hint,
        at_most=Severity.WARNING,
    )
