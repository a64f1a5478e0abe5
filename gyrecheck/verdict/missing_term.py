"""A balance that cannot be judged: which term the log does not give, what it would need to be, and how to give it.

Undecided and at most a warning, except where the given terms alone are already more than was sampled.
"""

from __future__ import annotations

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Place, Snapshot
from gyrecheck.verdict.accounts import Account
from gyrecheck.verdict.balance import Balance, equation
from gyrecheck.verdict.flows import Flow
from gyrecheck.verdict.residual_shape import adds_up
from gyrecheck.verdict.ruling import Docket, count

CODE, TWICE = "GYR507", "GYR510"


def left_missing(snapshot: Snapshot, found: Balance, docket: Docket) -> None:
    """Enter that the buffer's level is not logged, and how the residual that it would explain has run."""
    values = [r for _, r in found.rows]
    half = values[len(values) // 2 :]
    constant = len(half) > 2 and max(half) - min(half) <= found.tolerance
    shape = (
        f", constant since line {found.account.sampled.place_at(found.rows[len(values) // 2][0]).line}"
        if constant and found.account.sampled
        else ""
    )
    grows = len(values) >= 6 and adds_up(values) and not constant
    undecided(
        found, "left", found.residual, docket, snapshot, shape + (" and growing: a buffer that only fills, or a loss" if grows else "")
    )


def term_missing(snapshot: Snapshot, found: Balance, docket: Docket) -> None:
    """Enter that sampled or taken is not logged; where the given terms alone are more than sampled, that they are."""
    term = "sampled" if found.account.sampled is None else "taken"
    need = -found.residual if term == "sampled" else found.residual
    if term == "taken" and need < -found.tolerance and found.account.sampled is not None:
        place = found.account.sampled.last_place
        what = f"dropped and left together are {count(-need)} more than sampled: {count(found.account.sampled.last)} - ({equation(found)})"
        docket.add(
            TWICE, State.BROKEN, what, quantity="unaccounted", value=need, unit=found.account.unit.value, first=place, because=[place]
        )
        return
    undecided(found, term, need, docket, snapshot)


def undecided(found: Balance, term: str, need: float, docket: Docket, snapshot: Snapshot, shape: str = "") -> None:
    """Enter that `term` is not logged and would need to be `need`, once per log."""
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


def suppressed(snapshot: Snapshot, found: Balance, docket: Docket) -> None:
    """Enter that the console left lines out, so that no balance can be told."""
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


def not_told_apart(flow: Flow, account: Account, docket: Docket) -> None:
    """Enter that several processes print a running total under one name, so that its sum is not known."""
    docket.add(
        CODE,
        State.UNDECIDED,
        f"conservation: `{flow.name}` goes up and down as running totals of several processes do, and the log does not tell them apart: "
        "what they add up to is not known",
        quantity=flow.term,
        value=None,
        unit=account.unit.value,
        because=[flow.first_place, flow.last_place],
        hint="print `pid=N` on each line, or give each process's own log",
        at_most=Severity.WARNING,
    )
