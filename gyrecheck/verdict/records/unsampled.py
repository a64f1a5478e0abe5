"""Tokens that a mask counts although their log-prob is a fill value: prompt, tool answer, or an end token that was put there.

A confident policy also gives log-probs that round to 0, and then it gives small ones beside them; so runs of exact zeros in the middle
of an answer, or a single one at its end, count only in files that hold no small log-prob at all.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.finding import Finding, Severity
from gyrecheck.rulebook.record_limits import load_record_limits
from gyrecheck.verdict.records.question import Case
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import Bools, Floats, Ints, View

CENT = 0.01
"""Nats: the step of a file that keeps two decimals."""
READ = 20_000
"""Records of a batch that are looked at one by one."""


class UnsampledRuns:
    """Runs of exact zeros that the mask counts, by where they stand."""

    def __init__(self) -> None:
        self.edge = Ranges()
        self.middle = Ranges()
        self.last = Ranges()
        self.seen: dict[str, list[tuple[int, str]]] = {}
        self.small = 0
        self.cents = 0
        """Counted values of at most two hundredths."""
        self.fine = False
        """Some value has more than two decimals."""

    def read(self, view: View, zero: Bools, on: Bools, value: Floats, counts: Ints, candidate: Bools) -> None:
        """`zero`, `on`, `value` are [tokens]; `candidate` [rows] has zeros and real log-probs among the tokens counted."""
        self.small += int((on & ~zero & (np.abs(value) < load_record_limits().certain)).sum())
        real = value[on & ~zero]
        self.cents += int((np.abs(real) <= 2.0 * CENT + 1e-9).sum())
        self.fine = self.fine or bool((np.abs(real / CENT - np.round(real / CENT)) > 1e-6).any())
        start = np.cumsum(counts) - counts
        for at in np.flatnonzero(candidate)[:READ].tolist():
            part = zero[start[at] : start[at] + counts[at]] & on[start[at] : start[at] + counts[at]]
            fill = zero[start[at] : start[at] + counts[at]]
            head = int(np.argmin(fill))
            tail = int(np.argmin(fill[::-1]))
            if int(part.sum()) >= 2 and head + tail >= 2 and int(fill.sum()) == head + tail:
                place = "start" if head >= tail else "end"
                self._add(view, at, "edge", f"mask 1 on {max(head, tail)} tokens at the {place} with log-prob exactly 0")
                continue
            edges = np.flatnonzero(np.diff(np.concatenate(([0], part.astype(np.int8), [0]))))
            runs = edges[1::2] - edges[::2]
            if runs.max() >= 2 and int(part.sum()) == int(runs[runs >= 2].sum()):
                self._add(view, at, "middle", f"mask 1 on {int(runs.max())} tokens in a row with log-prob exactly 0")
            elif int(part.sum()) == 1 and part[-1]:
                self._add(view, at, "last", "mask 1 on the last token, whose log-prob is exactly 0")

    def _add(self, view: View, at: int, place: str, text: str) -> None:
        where: Ranges = getattr(self, place)
        where.add(view.path, view.records[at : at + 1])
        seen = self.seen.setdefault(place, [])
        if len(seen) < 5:
            seen.append((int(view.records[at]), text))

    def answer(self, case: Case, rows: int) -> Iterator[Finding]:
        """One finding a place; the middle and the last token only where the policy is never certain."""
        if self.cents and not self.fine:
            return  # two decimals round a likely token's log-prob to 0
        key = case.roles.key("mask")
        what = {
            "edge": "counts tokens that were not sampled",
            "middle": "counts tokens inside the answer that were not sampled, such as a tool's or an environment's",
            "last": "counts a last token that was not sampled, such as an end token put there afterwards",
        }
        for place, words in what.items():
            where: Ranges = getattr(self, place)
            if not where or (place != "edge" and self.small) or (place == "last" and (where.rows < 4 or where.rows < 0.5 * rows)):
                continue
            seen = self.seen[place]
            text = f"`{key}` {words}, at {where.rows} of {rows} records: {seen[0][1]}"
            yield case.finding("GYR334", text, where=where, role="mask", evidence=seen, severity=Severity.WARNING)
