"""Shapes that change from record to record, or that do not fit each other inside one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.fields import Column, Kind, Shape
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.question import Case, Question
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import View, lead, rank

FIXED = ("obs", "next_obs", "final_obs", "action", "reward", "return", "value", "advantage", "logprob", "terminated", "truncated", "done")
"""Roles whose shape may only change along the first axis, and only where the file's other fields are lists too."""
PER_TOKEN = ("logprob", "replay_logprob", "proximal_logprob", "ref_logprob", "mask", "attention_mask", "entropy", "ratio")
PER_STEP = (
    "action",
    "reward",
    "return",
    "advantage",
    "value",
    "logprob",
    "replay_logprob",
    "terminated",
    "truncated",
    "done",
    "step",
    "next_obs",
    "entropy",
)
BROADCAST = ("value", "return", "reward", "advantage", "logprob", "replay_logprob")


class ShapeJump(Question):
    """Rank or dimension that changes between records."""

    about = "shapes"

    def __init__(self) -> None:
        self.usual: dict[str, tuple[Shape, int]] = {}
        self.jumps: dict[str, Ranges] = {}
        self.text: dict[str, tuple[int, Shape]] = {}
        self.unequal: dict[tuple[str, str], Ranges] = {}
        self.unequal_text: dict[tuple[str, str], tuple[int, Shape, Shape]] = {}

    def feed(self, view: View) -> None:
        """Read one batch."""
        for role in FIXED:
            column = view.column(role)
            if column is None or column.kind in {Kind.TEXT, Kind.OBJECT, Kind.NONE}:
                continue
            self._jump(view, role, column)
        for key, role in view.roles.parts.items():
            column = view.batch.columns.get(key)
            if column is not None and role in FIXED and column.kind not in {Kind.TEXT, Kind.OBJECT, Kind.NONE}:
                self._jump(view, key, column)
        for at, first in enumerate(BROADCAST):
            for second in BROADCAST[at + 1 :]:
                self._ranks(view, first, second)

    def _jump(self, view: View, role: str, column: Column) -> None:
        of = np.asarray(column.shape_of)
        if len(column.shapes) > 1:
            values, first = np.unique(of, return_index=True)
            order = [int(values[at]) for at in np.argsort(first) if values[at] >= 0]
        else:
            order = [0] if (of >= 0).any() else []
        vary: bool | None = None
        for which in order:
            shape = column.shapes[which]
            if 0 in shape or (role in self.usual and shape == self.usual[role][0]):
                continue
            if role in self.usual and len(shape) == len(self.usual[role][0]) and shape[1:] == self.usual[role][0][1:] and len(shape) >= 1:
                vary = self._lists_may_vary(view, role, column) if vary is None else vary
                if vary:
                    continue
            if _ragged(shape) and role in self.usual and _alike(shape, self.usual[role][0]):
                continue
            rows = of == which
            if role in self.usual and _ragged(self.usual[role][0]) and _alike(self.usual[role][0], shape):
                continue
            if role not in self.usual:
                self.usual[role] = (shape, int(view.records[int(rows.argmax())]))
                continue
            self.jumps.setdefault(role, Ranges()).add(view.path, view.records[rows])
            self.text.setdefault(role, (int(view.records[int(rows.argmax())]), shape))

    @staticmethod
    def _lists_may_vary(view: View, role: str, mine: Column) -> bool:
        """Whether the first axis is time: another field that has one value a step is a list about as long in most rows.

        Single records in which the two differ are another question's finding (lengths).
        """
        own = lead(mine)
        for other in ("reward", "logprob", "value", "terminated", "truncated", "done", "mask", "tokens", "return", "advantage"):
            column = view.column(other)
            if other == role or column is None or rank(column) == 0:
                continue
            theirs = lead(column)
            both = (own > 0) & (theirs > 0)
            if both.any() and float((np.abs(own - theirs)[both] <= 1).mean()) > 0.5:
                return True
        for other in ("action", "obs"):  # of step records these are vectors, so only lengths that vary together count
            column = view.column(other)
            if other == role or column is None or rank(column) == 0:
                continue
            theirs = lead(column)
            if len(np.unique(own[own > 0])) > 2 and float((own == theirs)[own > 0].mean()) > 0.9:
                return True
        for key, column in view.batch.columns.items():  # a list of tokens under a name that nobody knows
            if key in view.roles.roles or column.kind in {Kind.OBJECT, Kind.NONE} or rank(column) != 1 or rank(mine) != 1:
                continue
            theirs = lead(column)
            if len(np.unique(theirs[theirs > 0])) > 1 and float((np.abs(own - theirs)[own > 0] <= 1).mean()) > 0.5:
                return True
        return False

    def _ranks(self, view: View, first: str, second: str) -> None:
        a, b = view.column(first), view.column(second)
        if a is None or b is None or rank(a) == rank(b) == 0:
            return
        if not {abs(m - n) for m in {len(s) for s in a.shapes} for n in {len(s) for s in b.shapes}} & {1}:
            return
        of_a, of_b = np.asarray(a.shape_of).astype(np.int64), np.asarray(b.shape_of).astype(np.int64)
        both = (of_a >= 0) & (of_b >= 0)
        for code in np.unique(of_a[both] * len(b.shapes) + of_b[both]).tolist():
            i, j = divmod(code, len(b.shapes))
            left, right = a.shapes[i], b.shapes[j]
            if abs(len(left) - len(right)) != 1 or not left or not right or left[0] != right[0] or left[0] < 2:
                continue
            longer, shorter = (left, right) if len(left) > len(right) else (right, left)
            if longer[: len(shorter)] == shorter and longer[-1] == 1:
                rows = (of_a == i) & (of_b == j)
                self.unequal.setdefault((first, second), Ranges()).add(view.path, view.records[rows])
                self.unequal_text.setdefault((first, second), (int(view.records[int(rows.argmax())]), left, right))

    def answer(self, case: Case) -> Iterator[Finding]:
        """Jumps, and fields of one record that would broadcast against each other."""
        for role, where in self.jumps.items():
            key = case.roles.key(role) or role
            usual, first = self.usual[role]
            at, shape = self.text[role]
            disagree = [other for pair in self.unequal if role in pair for other in pair if other != role]
            beside = (
                f"; within these records `{case.roles.key(disagree[0])}` has another rank, so the two broadcast to [{shape[0]}, {shape[0]}]"
                if disagree and shape
                else ""
            )
            evidence = ((first, f"{key} {list(usual)}"), (at, f"{key} {list(shape)}"))
            yield case.finding(
                "GYR307",
                f"shape of `{key}` jumps from {list(usual)} to {list(shape)} at record {at}{beside}",
                where=where,
                field=key,
                evidence=evidence,
            )
        for (one, two), where in self.unequal.items():
            if one in self.jumps or two in self.jumps:
                continue
            at, left, right = self.unequal_text[one, two]
            keys = case.roles.key(one), case.roles.key(two)
            text = (
                f"`{keys[0]}` {list(left)} and `{keys[1]}` {list(right)} differ in rank: their difference broadcasts to "
                f"[{left[0]}, {left[0]}]"
            )
            severity = Severity.WARNING if where.rows >= case.rows * 0.95 else Severity.ERROR
            yield case.finding(
                "GYR323",
                text,
                where=where,
                role=one,
                evidence=((at, f"{keys[0]} {list(left)}, {keys[1]} {list(right)}"),),
                severity=severity,
            )


def _ragged(shape: Shape) -> bool:
    return -1 in shape


def _alike(ragged: Shape, shape: Shape) -> bool:
    """Whether lists of unlike lengths, -1 in `ragged`, have another record's lists of one length beside them: by chance, no jump."""
    return (
        len(ragged) == len(shape)
        and all(one in (-1, two) or two == -1 for one, two in zip(ragged[1:], shape[1:], strict=True))
        and ragged[0] == shape[0]
    )


class SwappedAxes(Question):
    """Fields of one record whose first two axes stand in different order."""

    about = "axis order"
    needs = (("obs", "reward"), ("obs", "action"), ("action", "reward"), ("obs", "logprob"))

    def __init__(self) -> None:
        self.found: dict[str, Ranges] = {}
        self.text: dict[str, str] = {}

    def feed(self, view: View) -> None:
        """Read one batch."""
        base = next((role for role in ("reward", "logprob", "action") if (c := view.column(role)) is not None and rank(c) == 2), "")
        if not base:
            return
        column = view.column(base)
        if column is None or len(column.shapes) != 1:
            return
        one, two = column.shapes[0]
        for role in (*PER_STEP, "obs"):
            other = view.column(role)
            if other is None or role == base or len(other.shapes) != 1 or len(other.shapes[0]) < 2:
                continue
            first, second = other.shapes[0][:2]
            if (one, two) == (second, first) and one != two and min(one, two) > 1:
                self.found.setdefault(role, Ranges()).add(view.path, view.records)
                self.text[role] = (
                    f"`{view.roles.key(role)}` {list(other.shapes[0])} has its first two axes in the other order than "
                    f"`{view.roles.key(base)}` {[one, two]}"
                )

    def answer(self, case: Case) -> Iterator[Finding]:
        """Each field that stands the other way round."""
        for role, where in self.found.items():
            yield case.finding("GYR306", self.text[role], where=where, role=role)
