"""An index of -1 where no action was taken, among actions that are indices from 0 on."""

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
