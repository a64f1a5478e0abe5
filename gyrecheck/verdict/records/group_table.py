"""Which rows form which group, and under which file and record each row stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gyrecheck.verdict.records.contents import Sums
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import Ints


@dataclass(frozen=True, slots=True)
class GroupTable:
    """All groups of all files; a group's rows may lie apart."""

    names: list[Any]
    """What each group is called."""
    members: list[Ints]
    """The rows of each group."""
    records: Ints
    """[rows] the record of each row within its file."""
    files: Ints
    """[rows] the file of each row, an index into `paths`."""
    paths: list[str]
    batches: Sums
    """[rows] one mark for each row's training batch, 0 where it names none."""
    declared: bool = False
    """Whether each record holds a whole group and says how many answers that has."""

    def add(self, where: Ranges, rows: Ints) -> None:
        """Put rows' records into `where`, each under its own file."""
        rows = np.sort(rows)
        for at in np.unique(self.files[rows]).tolist():
            where.add(self.paths[at], self.records[rows[self.files[rows] == at]])

    def where(self, chosen: Any) -> Ranges:  # noqa: ANN401 - a mask over groups
        """The records of all rows of the chosen groups."""
        where = Ranges()
        rows = np.concatenate([self.members[i] for i in np.flatnonzero(chosen).tolist()])
        self.add(where, rows)
        return where
