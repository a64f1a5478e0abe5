"""A run as the verdict functions look at it: the snapshot, its balances, and the few series that many of them ask for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from gyrecheck.model.snapshot import Mark, Place, Series, Snapshot
from gyrecheck.verdict.accounts import COUNTED, EVALUATION, LEVELS, Account
from gyrecheck.verdict.balance import Balance
from gyrecheck.verdict.flows import Flow, build_flows, last_move

CALLS = frozenset(("update", "sample_call", "update_call", "zero_grad", "used_again", "over_age", "episodes", "skipped_updates"))


@dataclass(frozen=True, slots=True)
class View:
    """One run, ready to be judged."""

    snapshot: Snapshot
    accounts: tuple[Account, ...]
    balances: tuple[Balance, ...]
    counted: tuple[Flow, ...]
    """Flows of calls, updates and the like."""

    @property
    def main(self) -> Account | None:
        """The richest account: its last segment."""
        if not self.accounts:
            return None
        first = self.accounts[0]
        return max((a for a in self.accounts if (a.unit, a.stream) == (first.unit, first.stream)), key=lambda a: a.segment)

    def flow(self, term: str) -> Flow | None:
        """The flow of a call-like counter."""
        found = [f for f in self.counted if f.term == term]
        return max(found, key=lambda f: (f.sure, len(f.orders))) if found else None

    @property
    def sampled(self) -> Flow | None:
        """What sampling produced, in the main account."""
        return next((a.sampled for a in self.accounts if a.sampled is not None), None)

    @property
    def taken(self) -> Flow | None:
        """What training consumed."""
        return next((a.taken for a in self.accounts if a.taken is not None), None)

    @property
    def updates(self) -> Flow | None:
        """Train steps; where they are not counted, calls of the update entry."""
        return self.flow("update") or self.flow("update_call")

    def series(self, *terms: str, least: int = 1) -> tuple[Series, ...]:
        """Series of training's own streams (evaluation apart) with at least `least` readings."""
        return tuple(s for s in self.snapshot.of(*terms) if s.count >= least and s.key.stream not in EVALUATION)

    def setting(self, term: str) -> Series | None:
        """A configured number; a key that moves during the run is no setting."""
        found = [s for s in self.snapshot.of(term) if s.low == s.high]
        return found[0] if found else None

    def between(self, low: int, high: int, *names: str) -> tuple[Mark, ...]:
        """Marks after reading `low` up to `high`."""
        return tuple(m for m in self.snapshot.marked(*names) if low < m.order <= high)

    @property
    def restarts(self) -> tuple[Mark, ...]:
        """Restarts after the run's first reading of a number."""
        first = min((s.orders[0] for s in self.snapshot.series), default=0)
        return tuple(m for m in self.snapshot.marked("restart") if m.order > first)


def view(snapshot: Snapshot, accounts: tuple[Account, ...], balances: tuple[Balance, ...]) -> View:
    """The view of a snapshot."""
    restarts = [mark.order for mark in snapshot.marked("restart")]
    return View(snapshot, accounts, balances, build_flows(snapshot.series, CALLS, frozenset(), restarts))


def quarters(values: list[float]) -> tuple[float, float, float, float]:
    """Means of the four quarters of a series of at least four values."""
    size = len(values)
    cuts = [0, size // 4, size // 2, 3 * size // 4, size]
    parts = [values[a:b] or [values[min(a, size - 1)]] for a, b in pairwise(cuts)]
    means = [sum(part) / len(part) for part in parts]
    return means[0], means[1], means[2], means[3]


def lifetimes(series: Series, marks: tuple[Mark, ...]) -> Iterator[tuple[int, int, Mark | None]]:
    """Index ranges of a series between restarts, each with the restart that opened it."""
    cuts: list[tuple[int, Mark]] = []
    for mark in marks:
        index = series.index(mark.order) + 1
        if 0 < index < len(series) and (not cuts or cuts[-1][0] != index):
            cuts.append((index, mark))
    edges = [0, *(c for c, _ in cuts), len(series)]
    openers: list[Mark | None] = [None, *(m for _, m in cuts)]
    for at, opener in enumerate(openers):
        yield edges[at], edges[at + 1], opener


def places(series: Series, *indices: int) -> tuple[Place, ...]:
    """Places of kept readings."""
    return tuple(series.place(i if i >= 0 else len(series) + i) for i in indices)


__all__ = ["COUNTED", "LEVELS", "View", "last_move", "lifetimes", "places", "quarters", "view"]
