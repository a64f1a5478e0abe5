"""Indices that stand for nothing: -1 where no action was taken, a negative token id where no token is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.fields import Kind
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.question import Case, Question
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import View, rank


class PlaceholderAction(Question):
    """Actions of -1: not judged where -1, 0 and 1 may be all the actions there are, unless they only stand at ends."""

    about = "placeholder actions"
    needs = (("action",),)

    def __init__(self) -> None:
        self.found = Ranges()
        self.highest = -1
        self.rows = 0
        self.inside = 0
        self.ends = 0
        self.other = False

    def feed(self, view: View) -> None:
        """Read one batch."""
        column = view.column("action")
        if column is None or column.kind is not Kind.INT or rank(column) != 0 or column.texts is not None:
            self.other |= column is not None
            return
        value, there = view.integer("action") or (np.zeros(view.rows, np.int64), np.zeros(view.rows, np.bool_))
        if not there.any():
            return
        self.rows += int(there.sum())
        self.other |= bool((value[there] < -1).any())
        self.highest = max(self.highest, int(value[there].max()))
        hit = there & (value == -1)
        flags = [flag for role in ("terminated", "truncated", "done") if (flag := view.flag(role)) is not None]
        ended = np.any(flags, axis=0) if flags else np.zeros(view.rows, np.bool_)
        self.ends += int(ended.sum())
        self.inside += int((hit & ~ended).sum())
        self.found.add(view.path, view.records[hit])

    def answer(self, case: Case) -> Iterator[Finding]:
        """-1 among indices, or at ends alone."""
        few = 0 < self.found.rows <= 0.34 * self.rows
        at_ends = self.found.rows >= 2 and not self.inside and self.found.rows * 2 >= self.ends
        if self.other or not few or not (self.highest >= 2 or at_ends):
            return
        place = " and only where an episode ends" if at_ends else ""
        text = (
            f"`{case.roles.key('action')}` is -1 at {self.found.rows} of {self.rows} records{place}, all others are 0 to {self.highest}: a "
            "placeholder, no action was taken there"
        )
        yield case.finding("GYR336", text, where=self.found, role="action", severity=Severity.WARNING)


class PlaceholderToken(Question):
    """Negative token ids, such as the -100 of ignored labels, at positions that the mask counts."""

    about = "placeholder tokens"
    needs = (("tokens",),)

    def __init__(self) -> None:
        self.found = Ranges()
        self.seen: list[tuple[int, str]] = []
        self.rows = 0

    def feed(self, view: View) -> None:
        """Read one batch."""
        column = view.column("tokens")
        if column is None or column.kind is not Kind.INT or rank(column) != 1:
            return
        self.rows += view.rows
        flat = np.asarray(column.flat)
        if not len(flat) or flat.min() >= 0:
            return
        below = flat < 0
        counts = np.asarray(column.counts)
        for role in ("mask", "attention_mask"):
            mask = view.column(role)
            if mask is not None and np.array_equal(np.asarray(mask.counts), counts):
                below = below & view.counted(role)
        if not below.any():
            return
        row = np.repeat(np.arange(view.rows), counts)[below]
        self.found.add(view.path, view.records[np.unique(row)])
        self.seen.append((int(view.records[row[0]]), f"token id {int(np.asarray(column.flat)[below][0])}"))

    def answer(self, case: Case) -> Iterator[Finding]:
        """Where a negative id counts as a token."""
        if self.found:
            key = case.roles.key("tokens")
            text = f"`{key}` holds negative ids at {self.found.rows} of {self.rows} records, where nothing masks them: {self.seen[0][1]}"
            yield case.finding("GYR322", text, where=self.found, role="tokens", evidence=self.seen, severity=Severity.WARNING)
