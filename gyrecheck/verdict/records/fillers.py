"""Records with a mask that is 0 throughout because they only fill up a batch: they say so, or hold what a counted record holds.

They do what they are there for, so they are a note; a mask cleared by mistake is another question's warning.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.fields import Kind
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.contents import KEPT, Sums, marks_of
from gyrecheck.verdict.records.question import Case
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import Bools, Ints, View


class Fillers:
    """Remembers what counted records hold, up to `KEPT` rows, so that copies among the uncounted ones are told at the end."""

    def __init__(self) -> None:
        self.said = Ranges()
        self.counted: list[Sums] = []
        self.empty: list[tuple[str, Ints, Sums]] = []
        self.kept = 0

    def read(self, view: View, empty: Bools) -> Bools:
        """[rows] the `empty` rows (mask 0 throughout) that are neither said to be filler nor kept here to be compared."""
        flag = view.flag("filler")
        if flag is not None:
            self.said.add(view.path, view.records[empty & flag])
            empty = empty & ~flag
        tokens = view.column("tokens")
        if tokens is None or tokens.texts is not None or tokens.kind is not Kind.INT or self.kept > KEPT:
            return empty
        marks = marks_of(view, "tokens")
        self.kept += view.rows
        self.counted.append(marks[~view.idle()])
        if empty.any():
            self.empty.append((view.path, view.records[empty], marks[empty]))
        return np.zeros(view.rows, np.bool_)

    def alone(self) -> Iterator[tuple[str, Ints]]:
        """File and records of uncounted rows that are no copy of a counted one."""
        known = self._known()
        for path, records, marks in self.empty:
            yield path, records[~np.isin(marks, known)]

    def answer(self, case: Case, rows: int) -> Iterator[Finding]:
        """A note on what fills up."""
        known = self._known()
        where = Ranges()
        where.add_all(self.said)
        for path, records, marks in self.empty:
            where.add(path, records[np.isin(marks, known)])
        if where:
            text = (
                f"{where.rows} of {rows} records fill up the batch: `{case.roles.key('mask')}` is 0 everywhere in them and each is a copy "
                "of a counted record or says that it is filler; they count for nothing in the loss"
            )
            yield case.finding("GYR333", text, where=where, role="mask", severity=Severity.NOTE)

    def _known(self) -> Sums:
        return np.unique(np.concatenate(self.counted)) if self.empty and self.counted else np.zeros(0, np.uint64)
