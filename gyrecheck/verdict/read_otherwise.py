"""What closes outranks what is called: where a balance does not close as its names suggest, another reading of the same numbers may.

Names do not say whether a number is a running total or a count per step, nor which of several counters stands for what was sampled, nor
that a number nobody took for a drop is one. If one other reading closes on nearly every line and the suggested one on few, it is the
true one: independent counters do not add up by chance. Where none closes the suggested reading stands, and so do its verdicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from gyrecheck.model.snapshot import Series, Snapshot
from gyrecheck.rulebook.log_formats import load_terms
from gyrecheck.verdict.account_terms import SINKS
from gyrecheck.verdict.accounts import Account, accounts_of, counted_flows
from gyrecheck.verdict.balance import Balance, balance
from gyrecheck.verdict.flows import Flow, build_flows

LEAST_ROWS = 4
CLOSES, HARDLY = 0.9, 0.5
"""Shares of lines that close: from the first on a reading is the true one, below the second the suggested reading is in doubt."""
MOST_SERIES = 64
"""More than these and a log is of many processes: another reading would cost more than a look may."""
STAND_INS = ("done", "written", "read", "drawn")


def closing_accounts(snapshot: Snapshot, *, left: float | None = None) -> tuple[Account, ...]:
    """The balances of a run, the richest first, read so that the first of them closes where any reading does."""
    flows = counted_flows(snapshot)
    suggested = accounts_of(flows, snapshot, left)
    share = _closing(suggested, snapshot)
    if share is None and suggested and suggested[0].sampled is None:
        return _let_in(suggested, flows, snapshot, left)
    if share is None or share >= HARDLY or len(snapshot.series) > MOST_SERIES:
        return suggested
    for told, others in _readings(snapshot, flows):
        found = accounts_of(others, snapshot, left)
        same = _name(suggested[0].taken) in {_name(found[0].taken), _name(found[0].sampled)} if found else False
        if (_closing(found, snapshot) or 0.0) >= CLOSES and same:
            return (replace(found[0], notes=(*found[0].notes, told)), *found[1:])
    return _with_sink(suggested, snapshot)


def _name(flow: Flow | None) -> str:
    return flow.name if flow is not None else ""


def _closing(accounts: tuple[Account, ...], snapshot: Snapshot) -> float | None:
    """The share of lines on which the first balance closes; None where it has too few of them or misses a term."""
    found = balance(accounts[0], snapshot) if accounts and accounts[0].sampled is not None else None
    if found is None or set(found.missing) - {"dropped"} or not _varied(found):
        return None
    return sum(found.good(row) for row in found.rows) / len(found.rows)


def _varied(found: Balance) -> bool:
    """Whether enough different numbers stand in a balance for its closing to say anything."""
    account = found.account
    if len(found.rows) < LEAST_ROWS or account.sampled is None:
        return False
    return len(set(account.sampled.values)) >= LEAST_ROWS and (account.taken is None or len(set(account.taken.values)) > 1)


def _readings(snapshot: Snapshot, flows: list[Flow]) -> Iterator[tuple[str, list[Flow]]]:
    """Other readings, the nearest first, each with a sentence that says what is read otherwise."""
    ways = [("", flows)]
    for cumulative, what in ((True, "running totals"), (False, "counts per step")):
        other = counted_flows(snapshot, cumulative=cumulative)
        if [f.values for f in other] != [f.values for f in flows]:
            ways.append((f"the counters are read as {what}: so they close on every line", other))
    yield from ways[1:]
    for told, some in ways:
        named = [f for f in some if f.term == "sampled"]
        for at in named if len(named) > 1 else ():
            yield told or f"`{at.name}` is what was sampled: with it the lines close", [f for f in some if f not in named or f is at]
        for at in some:
            if at.term in STAND_INS:
                rest = [f for f in some if f not in named and f is not at]
                yield told or f"`{at.name}` is what was sampled: with it the lines close", [replace(at, term="sampled"), *rest]
    for told, rest in _handed_on(flows):
        if _comes_in(rest, flows, snapshot):
            yield told, rest


def _comes_in(rest: list[Flow], flows: list[Flow], snapshot: Snapshot) -> bool:
    """Whether what was sampled is let in, in flight or turned away on nearly every line: else something is lost before it is let in."""
    let_in = next(f for f in rest if f.term == "sampled")
    before = [f for f in flows if f.term in {"sampled", "in_flight"}] + [replace(let_in, term="done")]
    ways = (before, [*before, *(f for f in flows if f.term in SINKS and f not in rest)])
    return any((_closing(accounts_of(way, snapshot, None), snapshot) or 0.0) >= CLOSES for way in ways)


def _handed_on(flows: list[Flow]) -> Iterator[tuple[str, list[Flow]]]:
    """With two counters of what was taken, one of them may be the other's source: what it turned away was never in it, or left it later."""
    for source in (f for f in flows if f.term == "taken" and f.cumulative):
        rest = [f for f in flows if f is not source and f.term not in {"sampled", "in_flight"}]
        if any(f.term == "taken" for f in rest):
            told = f"`{source.name}` is what was let in, and what is taken comes out of it: with it the lines close"
            yield told, [replace(source, term="sampled"), *rest]
            yield told, [replace(source, term="sampled"), *(f for f in rest if f.term not in SINKS)]


def _let_in(suggested: tuple[Account, ...], flows: list[Flow], snapshot: Snapshot, left: float | None) -> tuple[Account, ...]:
    """A log that does not count what was sampled: what was let in stands for it where the lines close with it."""
    for told, others in _handed_on(flows):
        found = accounts_of(others, snapshot, left)
        if (_closing(found, snapshot) or 0.0) >= CLOSES:
            return (replace(found[0], notes=(*found[0].notes, told)), *found[1:])
    return suggested


def _with_sink(accounts: tuple[Account, ...], snapshot: Snapshot) -> tuple[Account, ...]:
    """The same balances, the first one with another number as a drop, where that is exactly what is missing on nearly every line."""
    account = accounts[0]
    found = balance(account, snapshot)
    if found is None or len({r for _, r in found.rows}) < LEAST_ROWS or len({b - a for (_, a), (_, b) in pairwise(found.rows)}) < 2:
        return accounts  # an even loss looks like any number that is counted up
    terms = load_terms().terms
    ours = {id(s) for flow in account.flows for s in flow.series}
    orders = [order for order, _ in found.rows]
    paths = {s.path for flow in account.flows for s in flow.series}
    for series in snapshot.series:
        if id(series) in ours or series.path not in paths or series.low < 0 or terms[series.key.term].kind not in {"counter", "gauge"}:
            continue
        for flow in _both_ways(series):
            there = flow.after(orders)
            if sum(abs(r - n) <= found.tolerance for (_, r), n in zip(found.rows, there, strict=True)) >= CLOSES * len(orders):
                sink = replace(flow, term="dropped_other", reason=series.name)
                told = f"`{series.name}` is exactly what is missing on every line, so it is counted as dropped"
                return (replace(account, drops=(*account.drops, sink), notes=(*account.notes, told)), *accounts[1:])
    return accounts


def _both_ways(series: Series) -> Iterator[Flow]:
    """A number as a running total, and as a count per step."""
    for cumulative in ("yes", "no"):
        key = replace(series.key, term="dropped_other", cumulative=cumulative)
        yield from build_flows([replace(series, key=key)], frozenset(("dropped_other",)), frozenset(), ())
