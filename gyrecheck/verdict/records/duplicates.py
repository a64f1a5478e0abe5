"""The same sample written twice, by its name: inside a batch, under two groups, or a late result beside the retry that replaced it.

Rows that no loss counts (mask 0 throughout, refused) take no part: a copy that fills up a batch and weighs nothing is no second sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gyrecheck.model.finding import Finding
from gyrecheck.rulebook.field_names import leaf, normal
from gyrecheck.verdict.records.contents import KEPT, Sums, first_equal, labels, marks_named, marks_of, together
from gyrecheck.verdict.records.question import Case, Question
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import Bools, Ints, View, rank

FEW = 0.34
"""Share of rows up to which names that come again elsewhere are told as an accident."""


@dataclass(frozen=True, slots=True, eq=False)
class _Names:
    """[N] rows that have a name: 64-bit marks of name, group, batch, content and attempt (0 where the record has none)."""

    record: Ints
    name: Sums
    group: Sums
    batch: Sums
    content: Sums
    attempt: Sums
    file: Ints


class Duplicates(Question):
    """The same sample written twice, by its name."""

    about = "duplicates"
    needs = (("sample_id",), ("trajectory_id",), ("obs", "action"))

    def __init__(self) -> None:
        self.parts: list[_Names] = []
        self.paths: list[str] = []
        self.words: dict[tuple[int, int], str] = {}
        """Name of each (file, record), as far as a sentence may need it."""
        self.kept = 0
        self.rows = 0
        self.unique_key = ""
        self.grouped = False
        self.tried = False
        self.told = False

    def feed(self, view: View) -> None:
        """Read one batch."""
        role = "sample_id" if view.has("sample_id") else "trajectory_id" if view.has("trajectory_id") and not view.has("step") else ""
        if role == "" and view.has("trajectory_id"):
            reward = view.column("reward")
            role = "trajectory_id" if reward is not None and rank(reward) >= 1 else ""
        drawn = view.contract.words.get("drawn", frozenset())
        if not role or self.kept > KEPT or any(normal(leaf(key)) in drawn for key in view.batch.columns):
            return
        names = view.labels(role)
        if names is None:
            return
        self.unique_key = view.roles.key(role)
        take = np.array([name is not None for name in names], np.bool_) & ~view.idle()
        self.rows += int(take.sum())
        if view.path not in self.paths:
            self.paths.append(view.path)
        file = len(self.paths) - 1
        self.grouped |= view.labels("group_id") is not None
        self.tried |= view.labels("attempt") is not None
        self._keep(view, role, take, file)
        self.words.update({(file, int(view.records[at])): str(names[at]) for at in np.flatnonzero(take).tolist()})

    def _keep(self, view: View, role: str, take: Bools, file: int) -> None:
        self.told |= view.has("tokens") or view.has("logprob")
        content = together((marks_of(view, "tokens"), marks_of(view, "logprob")))
        marks = [labels(view, role) for role in (role, "group_id", "batch_id", "attempt")]
        self.parts.append(
            _Names(
                record=view.records[take],
                name=together((marks[0], marks_named(view, "passes")))[take],
                group=marks[1][take],
                batch=marks[2][take],
                content=content[take],
                attempt=marks[3][take],
                file=np.full(int(take.sum()), file, np.int64),
            )
        )
        self.kept += int(take.sum())

    def answer(self, case: Case) -> Iterator[Finding]:
        """Names that come again; a name that is never unique is no sample's name."""
        if not self.kept:
            return
        columns = (np.concatenate([getattr(part, name) for part in self.parts]) for name in _Names.__slots__)
        rows = _Names(*columns)
        alone = together((rows.name, rows.batch))
        inside = together((rows.name, rows.group, rows.batch))
        _, members = np.unique(rows.group, return_counts=True)
        counts_on = len(np.unique(alone)) > 2 * int(members.max())
        first, twice = _again(rows, inside)
        other, across = _again(rows, alone)
        if counts_on and across.sum() > twice.sum() and across.sum() <= FEW * self.rows:
            yield self._finding(case, rows, other, across, ", in another group")
            return
        late_first, late = self._late(rows, len(np.unique(rows.name)) > 2 * int(members.max()))
        if late.any() and (twice | late).sum() <= FEW * self.rows:
            yield self._finding(case, rows, np.where(twice, first, late_first), twice | late, "")
        elif twice.any() and twice.sum() <= 0.5 * self.rows:
            yield self._finding(case, rows, first, twice, "")

    def _late(self, rows: _Names, counts_on: bool) -> tuple[Ints, Bools]:
        """Names that come again in another batch with other tokens: another attempt, or some of a group whose rest does not come again."""
        nothing = np.zeros(len(rows.name), np.bool_)
        member = together((rows.name, rows.group))
        first, again = _again(rows, member)
        again &= (rows.batch != rows.batch[first]) & (rows.content != rows.content[first])
        if self.tried:  # the file itself says that this is another attempt at the same
            return first, again & (rows.attempt != rows.attempt[first])
        if not (counts_on and self.grouped and self.told and again.any()):
            return first, nothing
        groups, of = np.unique(rows.group, return_inverse=True)
        names = np.bincount(of[np.unique(member, return_index=True)[1]], minlength=len(groups))
        repeated = np.bincount(of[again], minlength=len(groups))
        return first, again & (names[of] > repeated[of])  # a group that comes again as a whole is the next epoch's

    def _finding(self, case: Case, rows: _Names, first: Ints, twice: Bools, more: str) -> Finding:
        """One sentence; two results of one member of a group: nothing says which of them is meant, so both are named."""
        at = np.flatnonzero(twice)
        retried = (rows.attempt[at] != rows.attempt[first[at]]) | ((rows.group[at] == rows.group[first[at]]) & self.grouped)
        unlike = at[(rows.content[at] != rows.content[first[at]]) & retried]
        shown = np.unique(np.concatenate((at, first[unlike])))
        where = Ranges()
        for file, path in enumerate(self.paths):
            where.add(path, np.sort(rows.record[shown[rows.file[shown] == file]]))
        texts = [
            (int(rows.record[n]), f"{self.unique_key} {self._word(rows, n)} stands at record {rows.record[first[n]]} already{more}")
            for n in at[:5].tolist()
        ]
        kinds = ""
        if len(unlike):
            kinds = f" with other tokens at {len(unlike)} of them: a late result beside the retry that replaced it, or one name given twice"
        text = f"duplicate samples: `{self.unique_key}` comes again at {len(at)} of {self.rows} records{kinds}: {texts[0][1]}"
        return case.finding("GYR337", text, where=where, field=self.unique_key, evidence=texts)

    def _word(self, rows: _Names, at: int) -> str:
        return self.words.get((int(rows.file[at]), int(rows.record[at])), "")


def _again(rows: _Names, marks: Sums) -> tuple[Ints, Bools]:
    """[N] the first row that has the same mark, and whether that one is another record."""
    first = first_equal(marks)
    return first, np.asarray((rows.record[first] != rows.record) | (rows.file[first] != rows.file))
