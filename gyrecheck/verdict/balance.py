"""The residual of an account after every reading: `sampled - taken - dropped - left (- in flight)`, and which terms are missing.

Work in flight is part of the balance only where it makes lines close: some logs count what was begun, others what was finished.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import sub

from gyrecheck.model.snapshot import Snapshot
from gyrecheck.verdict.accounts import Account
from gyrecheck.verdict.flows import Flow
from gyrecheck.verdict.ruling import count


@dataclass(frozen=True, slots=True)
class Balance:
    """The residual over one account. `rows` are (order, residual); `missing` the terms that the log does not give."""

    account: Account
    rows: tuple[tuple[int, float], ...]
    missing: tuple[str, ...]
    tolerance: float
    with_flight: bool = False

    @property
    def residual(self) -> float:
        """At the end."""
        return self.rows[-1][1]

    def good(self, row: tuple[int, float]) -> bool:
        """Whether a row closes."""
        return abs(row[1]) <= self.tolerance


def balance(account: Account, snapshot: Snapshot) -> Balance | None:
    """The residual after every reading that moved a term; None when less than two terms are known."""
    missing = [n for n, f in (("sampled", account.sampled), ("taken", account.taken), ("left", account.left)) if f is None]
    if account.mode == "replay" and "taken" in missing:
        missing.remove("taken")
    if account.in_flight is not None and account.taken is not None and account.taken.term == "done" and "left" in missing:
        missing.remove("left")  # what was begun is finished, lost or still in flight
    if account.given_left is not None and "left" in missing:
        missing.remove("left")
    if not account.drops and account.mode == "queue":
        missing.append("dropped")
    plain = _rows(account, snapshot, flight=False)
    if not plain:
        return None
    tolerance = _tolerance(account, snapshot)
    if account.in_flight is not None:
        flying = _rows(account, snapshot, flight=True)
        closes = [sum(abs(r) <= tolerance for _, r in rows) for rows in (plain, flying)]
        if flying and (closes[1] > closes[0] or (closes[0] == closes[1] and abs(flying[-1][1]) < abs(plain[-1][1]) and plain[-1][1] > 0)):
            return Balance(account, tuple(flying), tuple(missing), tolerance, with_flight=True)
    return Balance(account, tuple(plain), tuple(missing), tolerance)


def _rows(account: Account, snapshot: Snapshot, *, flight: bool) -> list[tuple[int, float]]:
    plus = [account.sampled] if account.sampled else []
    uses = [account.taken] if account.taken and account.mode != "replay" else []
    minus: list[Flow] = [*uses, *account.drops, *([account.left] if account.left else [])]
    if flight and account.in_flight:
        minus.append(account.in_flight)
    if not plus and len(minus) < 2:
        return []
    needed = [f for f in [*plus, *minus] if f not in account.drops]
    begin = max((f.first_order for f in needed), default=0)
    orders = sorted({order for f in [*plus, *minus] for order in f.orders if order >= begin})
    if not snapshot.ordered or not all(f.exact for f in [*plus, *minus]):
        orders = orders[-1:]
    extra = account.given_left or 0.0
    made, gone = ([sum(row) for row in zip(*(f.after(orders) for f in some), strict=True)] or [0.0] * len(orders) for some in (plus, minus))
    rows = list(zip(orders, map(sub, made, gone), strict=True))
    if rows and extra:
        rows[-1] = (rows[-1][0], rows[-1][1] - extra)
    if plus and rows and rows[0][1] < 0 and account.left is not None and not any(f.cumulative for f in [*plus, *uses]):
        carried = rows[0][1]  # a log that begins in the middle: what lay there at its first line came from before
        if account.left.at(rows[0][0]):
            rows = [(order, r - carried) for order, r in rows]
    return rows


def _tolerance(account: Account, snapshot: Snapshot) -> float:
    names = {s.path for f in account.flows for s in f.series}
    tolerance = 1e-6 * max(1.0, account.sampled.last if account.sampled else 1.0)
    for file in snapshot.files:
        if file.path in names:
            slack = sum(max((s.high for s in snapshot.of(term)), default=0.0) for term in file.tolerance_of)
            tolerance = max(tolerance, file.tolerance + slack)
    return tolerance


def equation(found: Balance) -> str:
    """The balance as a sentence's right-hand side: `41,984 taken + 5,120 stale + 1,216 left`."""
    account = found.account
    parts = [f"{count(account.taken.last)} taken"] if account.taken is not None and account.mode != "replay" else []
    parts += [f"{count(f.last)} {f.way}" for f in account.drops if f.last or len(account.drops) == 1]
    if account.left is not None:
        parts.append(f"{count(account.left.last)} left")
    elif account.given_left is not None:
        parts.append(f"{count(account.given_left)} left (given)")
    if found.with_flight and account.in_flight is not None:
        parts.append(f"{count(account.in_flight.last)} in flight")
    return " + ".join(parts) or "0"


def overstated(sampled: Flow, taken: Flow, factor: float) -> float | None:
    """The whole number k when consumption is k times production all along: a counter that counts epochs, minibatches or ranks."""
    by_sampled = zip(sampled.values, taken.after(sampled.orders), strict=True)
    by_taken = zip(sampled.after(taken.orders), taken.values, strict=True)
    found = [k for pairs in (by_sampled, by_taken) if (k := _multiple([t / s for s, t in pairs if s and t]))]
    best = min(found, key=lambda item: item[1], default=(0.0, 0.0))[0]
    return best if best >= max(2.0, factor) else None


def _multiple(ratios: list[float]) -> tuple[float, float] | None:
    """The whole number that all later ratios lie near, and how far the worst lies from it."""
    late = ratios[len(ratios) // 3 :]
    if len(ratios) < 3:
        return None
    k = float(round(late[-1]))
    worst = max(abs(r - k) for r in late)
    return (k, worst) if k >= 2 and worst <= 0.1 * k else None
