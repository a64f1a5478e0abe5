"""Do shapes stay the same from record to record, agree between fields, and lists inside a record have the same length?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.fields import Column, Kind, Shape, State
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.presence import without_logprobs
from gyrecheck.verdict.records.question import Case, Question
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import Ints, View, lead, rank

FIXED = ("obs", "next_obs", "final_obs", "action", "reward", "return", "value", "advantage", "logprob", "terminated", "truncated", "done")
"""Roles whose shape may only change along the first axis, and only where the file's other fields are lists too."""
PER_TOKEN = ("logprob", "replay_logprob", "proximal_logprob", "ref_logprob", "mask", "attention_mask", "entropy", "ratio")
PER_STEP = ("action", "reward", "return", "advantage", "value", "logprob", "replay_logprob", "terminated", "truncated", "done", "step", "next_obs", "entropy")
BROADCAST = ("value", "return", "reward", "advantage", "logprob", "replay_logprob")


class ShapeJump(Question):
    """Rank or dimension that changes between records."""

    about = "shapes"

    def __init__(self) -> None:
        self.usual: dict[str, tuple[Shape, int]] = {}
        self.jumps: dict[str, Ranges] = {}
        self.text: dict[str, tuple[int, Shape]] = {}
        self.lead_varies: dict[str, bool] = {}
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
        free = self._lists_may_vary(view, role, column) if len(order) > 1 or role in self.usual else False
        for which in order:
            shape = column.shapes[which]
            if 0 in shape or (role in self.usual and shape == self.usual[role][0]):
                continue
            if role in self.usual and free and len(shape) == len(self.usual[role][0]) and shape[1:] == self.usual[role][0][1:] and len(shape) >= 1:
                continue
            rows = of == which
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
            if both.any() and float((np.abs(own - theirs)[both] <= 1).mean()) > 0.5:  # noqa: PLR2004
                return True
        for other in ("action", "obs"):  # of step records these are vectors, so only lengths that vary together count
            column = view.column(other)
            if other == role or column is None or rank(column) == 0:
                continue
            theirs = lead(column)
            if len(np.unique(own[own > 0])) > 2 and float((own == theirs)[own > 0].mean()) > 0.9:  # noqa: PLR2004
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
            beside = f"; within these records `{case.roles.key(disagree[0])}` has another rank, so the two broadcast to [{shape[0]}, {shape[0]}]" if disagree and shape else ""
            evidence = ((first, f"{key} {list(usual)}"), (at, f"{key} {list(shape)}"))
            yield case.finding("GYR307", f"shape of `{key}` jumps from {list(usual)} to {list(shape)} at record {at}{beside}", where=where, field=key, evidence=evidence)
        for (one, two), where in self.unequal.items():
            if one in self.jumps or two in self.jumps:
                continue
            at, left, right = self.unequal_text[one, two]
            keys = case.roles.key(one), case.roles.key(two)
            text = f"`{keys[0]}` {list(left)} and `{keys[1]}` {list(right)} differ in rank: their difference broadcasts to [{left[0]}, {left[0]}]"
            severity = Severity.WARNING if where.rows >= case.rows * 0.95 else Severity.ERROR
            yield case.finding("GYR323", text, where=where, role=one, evidence=((at, f"{keys[0]} {list(left)}, {keys[1]} {list(right)}"),), severity=severity)


class SwappedAxes(Question):
    """Fields of one record whose first two axes stand in different order."""

    about = "axis order"
    needs = (("obs", "reward"), ("obs", "action"), ("action", "reward"), ("obs", "logprob"))

    def __init__(self) -> None:
        self.found: dict[str, Ranges] = {}
        self.text: dict[str, str] = {}

    def feed(self, view: View) -> None:
        """Read one batch."""
        base = next((role for role in ("reward", "logprob", "action") if (c := view.column(role)) is not None and rank(c) == 2), "")  # noqa: PLR2004
        if not base:
            return
        column = view.column(base)
        if column is None or len(column.shapes) != 1:
            return
        a, b = column.shapes[0]
        for role in PER_STEP + ("obs",):
            other = view.column(role)
            if other is None or role == base or len(other.shapes) != 1 or len(other.shapes[0]) < 2:
                continue
            c, d = other.shapes[0][:2]
            if (a, b) == (d, c) and a != b and min(a, b) > 1:
                self.found.setdefault(role, Ranges()).add(view.path, view.records)
                self.text[role] = f"`{view.roles.key(role)}` {list(other.shapes[0])} has its first two axes in the other order than `{view.roles.key(base)}` {[a, b]}"

    def answer(self, case: Case) -> Iterator[Finding]:
        """Each field that stands the other way round."""
        for role, where in self.found.items():
            yield case.finding("GYR306", self.text[role], where=where, role=role)


class Lengths(Question):
    """Lists of one record that must be of one length: tokens, log-probs, masks; or the steps of a trajectory."""

    about = "lengths inside a record"
    needs = (("tokens",), ("logprob", "mask"), ("obs", "reward"), ("action", "reward"), ("reward", "logprob"), ("logprob", "replay_logprob"))

    def __init__(self) -> None:
        self.gaps: dict[tuple[str, str], dict[int, int]] = {}
        self.kept: dict[tuple[str, str], list[tuple[str, Ints, Ints, Ints]]] = {}
        self.declared: Ranges = Ranges()
        self.declared_text: list[tuple[int, str]] = []
        self.stored = 0
        self.merged: set[tuple[str, str]] = set()

    def feed(self, view: View) -> None:
        """Read one batch."""
        base = self._base(view)
        if not base:
            return
        column = view.column(base)
        if column is None:
            return
        length = lead(column)
        excused = without_logprobs(view)
        others = PER_TOKEN if base == "tokens" else (*PER_STEP, *PER_TOKEN)
        for role in dict.fromkeys((*others, "policy_version", "advantage", "value", "return", "reward", "temperature")):
            other = view.column(role)
            if role == base or other is None or other.kind in {Kind.TEXT, Kind.OBJECT, Kind.NONE}:
                continue
            present = np.asarray(other.state) == int(State.PRESENT)
            ranks = np.array([*(len(s) for s in other.shapes), 0])[np.asarray(other.shape_of)]
            rows = present & (length >= 0) & (ranks >= 1)
            if role in {"logprob", "replay_logprob"} and excused is not None:
                rows &= ~excused
            if role == "logprob" and base == "tokens" and rank(other) == 0 and not (ranks >= 1).any():
                continue
            self._keep(view, (base, role), rows, length, lead(other))
        self._declared(view, length)

    @staticmethod
    def _base(view: View) -> str:
        for role in ("tokens", "logprob", "action", "reward", "obs"):
            column = view.column(role)
            if column is not None and column.kind not in {Kind.TEXT, Kind.OBJECT, Kind.NONE} and rank(column) >= 1:
                if role in {"action", "obs"} and not any((c := view.column(r)) is not None and rank(c) >= 1 for r in ("reward", "logprob", "value", "terminated", "done", "mask")):
                    continue
                return role
        return ""

    def _keep(self, view: View, pair: tuple[str, str], rows: np.ndarray[tuple[int], np.dtype[np.bool_]], length: Ints, other: Ints) -> None:
        prompt = view.number("prompt_length")
        gap = other - length
        if prompt is not None and pair[1] != "obs":
            gap = np.where(other == length - np.nan_to_num(prompt), 0, gap)
        answer = view.number("length")
        if answer is not None and pair[0] == "tokens":
            gap = np.where((other == np.nan_to_num(answer, nan=-1)) & (other > 0), 0, gap)
        if pair[1] in {"obs", "value"}:  # one more for what follows the last step
            gap = np.where(gap == 1, 0, gap)
        values, counts = np.unique(gap[rows], return_counts=True)
        table = self.gaps.setdefault(pair, {})
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            table[value] = table.get(value, 0) + count
        off = rows & (gap != 0)
        if off.any() and self.stored < 200_000:
            self.stored += int(off.sum())
            self.kept.setdefault(pair, []).append((view.path, view.records[off], length[off], other[off]))

    def _declared(self, view: View, length: Ints) -> None:
        said = view.number("length")
        if said is None or view.has("prompt_tokens") or view.has("prompt_length"):
            return
        candidates = [length] + [lead(c) for role in PER_TOKEN + PER_STEP if (c := view.column(role)) is not None and rank(c) >= 1]
        there = np.isfinite(said) & (length >= 0)
        off = there & ~np.any([said == one for one in candidates], axis=0)
        if off.any():
            at = int(off.argmax())
            self.declared.add(view.path, view.records[off])
            self.declared_text.append((int(view.records[at]), f"says {int(said[at])}, holds {int(length[at])}"))

    def answer(self, case: Case) -> Iterator[Finding]:
        """Each pair that disagrees; a gap that is the same in all records is a convention, and said as a note at most."""
        yield from self._base_is_wrong(case)
        for (base, role), gaps in self.gaps.items():
            if (base, role) in self.merged:
                continue
            total = sum(gaps.values())
            if set(gaps) == {0} or not total:
                continue
            usual = max(gaps, key=lambda gap: (gaps[gap], gap == 0))
            if usual != 0 and len(gaps) == 1 and abs(usual) == 1:
                continue
            if usual != 0 and gaps[usual] < total * 0.8 and self._others_agree(base, role, gaps):
                continue
            where = Ranges()
            evidence: list[tuple[int, str]] = []
            empty = 0
            key, base_key = case.roles.key(role), case.roles.key(base)
            for path, records, length, other in self.kept.get((base, role), ()):
                wrong = (other - length != usual) | (other == 0)
                where.add(path, records[wrong])
                empty += int(((other == 0) & (length > 0)).sum())
                for number, one, two in list(zip(records[wrong].tolist(), length[wrong].tolist(), other[wrong].tolist(), strict=True))[: 5 - len(evidence)]:
                    evidence.append((number, f"{two} in `{key}` for {one} in `{base_key}`"))
            if not where.rows:
                continue
            there = total - where.rows
            if empty == where.rows:
                beside = f", while {there} other records carry it whole" if there else ""
                text = f"`{key}` is there and empty at {where.rows} of {total} records: {evidence[0][1]}; an empty list is not a value{beside}"
            else:
                text = f"`{key}` and `{base_key}` disagree in length at {where.rows} of {total} records: {evidence[0][1]}"
            severity = Severity.WARNING if (role in {"attention_mask", "policy_version", "temperature"} or (empty == where.rows and not there)) else None
            yield case.finding("GYR324", text, where=where, role=role, evidence=evidence, severity=severity)
        if self.declared:
            yield case.finding("GYR324", f"`{case.roles.key('length')}` is not the length of any list in {self.declared.rows} records: {self.declared_text[0][1]}", where=self.declared, role="length", evidence=self.declared_text, severity=Severity.WARNING)

    def _base_is_wrong(self, case: Case) -> Iterator[Finding]:
        """Where several fields disagree with the first in the same records and agree with each other, the first is the one that is wrong."""
        by_base: dict[tuple[str, str], list[str]] = {}
        for (base, role), parts in self.kept.items():
            told = ";".join(f"{path}:{records.tolist()}:{length.tolist()}:{other.tolist()}" for path, records, length, other in parts)
            by_base.setdefault((base, told), []).append(role)
        for (base, _), roles in by_base.items():
            if len(roles) < 2:  # noqa: PLR2004
                continue
            if any(self.gaps[base, role].get(0, 0) < sum(self.gaps[base, role].values()) / 2 for role in roles):
                continue
            if base == "tokens" and len(roles) < 3:  # noqa: PLR2004
                continue
            where, evidence = Ranges(), []
            key = case.roles.key(base)
            others = ", ".join(f"`{case.roles.key(role)}`" for role in roles)
            for path, records, length, other in self.kept[base, roles[0]]:
                where.add(path, records)
                evidence += [(n, f"{a} in `{key}`, {b} in {others}") for n, a, b in zip(records.tolist(), length.tolist(), other.tolist(), strict=True)][: 5 - len(evidence)]
            self.merged |= {(base, role) for role in roles}
            total = sum(self.gaps[base, roles[0]].values())
            yield case.finding("GYR324", f"`{key}` and the other fields disagree in length at {where.rows} of {total} records: {evidence[0][1]}", where=where, role=base, evidence=evidence)

    def _others_agree(self, base: str, role: str, gaps: dict[int, int]) -> bool:
        """Whether another field shows the same varying gaps: both then cover a part of the tokens, such as the answer alone."""
        if 0 in gaps or min(gaps) < 0 < max(gaps):
            return False
        return any(other == gaps for (first, second), other in self.gaps.items() if first == base and second != role) and not self._empties(base, role)

    def _empties(self, base: str, role: str) -> bool:
        return any(bool((other == 0).any()) for _, _, _, other in self.kept.get((base, role), ()))
