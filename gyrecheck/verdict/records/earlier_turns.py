"""Turns trained again: a record holds the whole of an earlier one in front, and its mask counts tokens there a second time (GYR337).

A conversation written turn by turn repeats what was said so far. The answers of earlier turns belong to their own records: with the mask on, they
are learnt from once a turn, the first ones most often.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.fields import Kind
from gyrecheck.model.finding import Finding
from gyrecheck.rulebook.record_limits import load_record_limits
from gyrecheck.verdict.records.contents import KEPT, prefix_sums, sums
from gyrecheck.verdict.records.question import Case, Question
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import Bools, View, per_row, rank

CELLS = 1 << 22
LEAST = 2
"""Records from which on it is a rule."""


class EarlierTurns(Question):
    """Looks for earlier records in front of later ones."""

    about = "turns trained again"
    yields = frozenset({"GYR337"})
    needs = (("tokens", "mask"),)

    def __init__(self) -> None:
        self.known: dict[int, int] = {}
        """Mark of each counted record's tokens to its number."""
        self.table = np.zeros(CELLS, np.bool_)
        """Cells of the marks known, so that most places need no look-up."""
        self.longer = self.again = self.counted = self.total = 0
        self.where = Ranges()
        self.seen: list[tuple[int, str]] = []

    def feed(self, view: View) -> None:
        """Read one batch."""
        tokens, mask = view.column("tokens"), view.column("mask")
        if tokens is None or mask is None or tokens.kind is not Kind.INT or rank(tokens) != 1 or mask.kind is Kind.TEXT:
            return
        counts = np.asarray(tokens.counts)
        if not np.array_equal(counts, np.asarray(mask.counts)) or len(self.known) > KEPT:
            return
        on = view.counted("mask")
        failed = view.failed()
        live = ~view.idle() if failed is None else ~view.idle() & ~failed
        whole, fronts = sums(tokens, view.rows), prefix_sums(tokens, view.rows)
        starts = np.cumsum(counts) - counts
        self.total += int(per_row(on, counts)[live].sum())
        least = load_record_limits().equal_tokens
        rows = np.flatnonzero(live & (counts >= least))
        self.table[whole[rows] % np.uint64(CELLS)] = True
        likely = self.table[fronts % np.uint64(CELLS)]
        for at in rows.tolist():
            start, size = int(starts[at]), int(counts[at])
            held = np.flatnonzero(likely[start + least - 1 : start + size - 1])[::-1] + start + least - 1
            front = next((k for k in held.tolist() if int(fronts[k]) in self.known), -1)
            if front >= 0 and _goes_on(on[front + 1 : start + size]):
                self._extends(view, at, on[start : front + 1], self.known[int(fronts[front])])
            self.known[int(whole[at])] = int(view.records[at])

    def _extends(self, view: View, at: int, counted: Bools, number: int) -> None:
        """One row that begins with the whole of record `number`; `counted` is the mask over that."""
        self.longer += 1
        repeats = int(counted.sum())
        if not repeats:
            return
        self.again += 1
        self.counted += repeats
        self.where.add(view.path, view.records[at : at + 1])
        if len(self.seen) < 5:
            self.seen.append((int(view.records[at]), f"begins with all of record {number} and counts {repeats} of its tokens again"))

    def answer(self, case: Case) -> Iterator[Finding]:
        """Where most records that hold an earlier one count it again."""
        if self.again < LEAST or self.again * 2 <= self.longer:
            return
        text = (
            f"duplicate samples: {self.again} records hold an earlier one whole, and `{case.roles.key('mask')}` counts its tokens again: "
            f"{self.counted} of {self.total} counted tokens are repeats, so early turns weigh more than late ones: record {self.seen[0][0]} "
            f"{self.seen[0][1]}"
        )
        yield case.finding("GYR337", text, where=self.where, role="mask", evidence=self.seen)


def _goes_on(rest: Bools) -> bool:
    """Whether what follows an earlier record is a later turn: words that are not learnt from, then counted ones; else it is another answer."""
    off = np.flatnonzero(~rest)
    return len(off) > 0 and bool(rest[off[0] :].any())
