"""Lists of one record that must have one length: tokens, log-probs, masks, or the steps of a trajectory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.fields import Kind, State
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.rulebook.field_names import leaf, spelling
from gyrecheck.verdict.records.presence import without_logprobs
from gyrecheck.verdict.records.question import Case, Question
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.shapes import PER_STEP, PER_TOKEN
from gyrecheck.verdict.records.trained_tokens import lies_with_trainer
from gyrecheck.verdict.records.view import Bools, Floats, Ints, View, lead, per_row, rank

WHOLE = ("reward", "advantage", "value", "return", "temperature")
"""Roles of which an answer may have one value as a whole."""


class Lengths(Question):
    """Lists of one record that must be of one length: tokens, log-probs, masks; or the steps of a trajectory."""

    about = "lengths inside a record"
    needs = (
        ("tokens",),
        ("logprob", "mask"),
        ("obs", "reward"),
        ("action", "reward"),
        ("reward", "logprob"),
        ("logprob", "replay_logprob"),
    )

    def __init__(self) -> None:
        self.gaps: dict[tuple[str, str], dict[int, int]] = {}
        self.kept: dict[tuple[str, str], list[tuple[str, Ints, Ints, Ints]]] = {}
        self.declared: Ranges = Ranges()
        self.declared_text: list[tuple[int, str]] = []
        self.stored = 0
        self.spans: dict[tuple[str, str], Ranges] = {}
        """Records in which a field is as long as all tokens, or as the answer alone, where the two differ."""
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
            if base == "tokens" and role in WHOLE:  # [1] is a scalar with an axis too many, another question's finding
                rows &= lead(other) != 1
            if role in {"logprob", "replay_logprob"} and excused is not None:
                rows &= ~excused
            if role == "logprob" and base == "tokens" and rank(other) == 0 and not (ranks >= 1).any():
                continue
            if base == "tokens" and (trained := view.column("train_tokens")) is not None and lies_with_trainer(view, other):
                self._keep(view, ("train_tokens", role), rows & (lead(trained) >= 0), lead(trained), lead(other))
                continue
            self._keep(view, (base, role), rows, length, lead(other))
        if base == "tokens":
            self._nameless(view, length)
        self._declared(view, length)

    def _nameless(self, view: View, length: Ints) -> None:
        """Further masks and log-probs that play no role: held against the tokens where most rows that have any have one for each token."""
        for key, column in view.batch.columns.items():
            if key in view.roles.roles or column.kind not in {Kind.BOOL, Kind.INT, Kind.FLOAT} or rank(column) != 1:
                continue
            if not {"mask", "masks", "logprob", "logprobs"} & set(spelling(leaf(key)).split("_")):
                continue
            own = lead(column)
            rows = (np.asarray(column.state) == int(State.PRESENT)) & (length >= 0) & (own > 0)  # none where it does not apply
            if int((rows & (own == length)).sum()) * 2 > int(rows.sum()):
                self._keep(view, ("tokens", key), rows, length, own)

    @staticmethod
    def _base(view: View) -> str:
        for role in ("tokens", "logprob", "action", "reward", "obs"):
            column = view.column(role)
            if column is not None and column.kind not in {Kind.TEXT, Kind.OBJECT, Kind.NONE} and rank(column) >= 1:
                if role in {"action", "obs"} and not any(
                    (c := view.column(r)) is not None and rank(c) >= 1 for r in ("reward", "logprob", "value", "terminated", "done", "mask")
                ):
                    continue
                return role
        return ""

    def _keep(self, view: View, pair: tuple[str, str], rows: np.ndarray[tuple[int], np.dtype[np.bool_]], length: Ints, other: Ints) -> None:
        prompt = view.number("prompt_length")
        gap = other - length
        if prompt is not None and pair[1] != "obs":
            gap = np.where(other == length - np.nan_to_num(prompt), 0, gap)
        before = view.column("prompt_tokens")
        if pair[1] in {"mask", "attention_mask"} and pair[0] == "tokens" and before is not None and before.kind is Kind.INT:
            gap = np.where(other == length + np.asarray(before.counts), 0, gap)  # over prompt and answer, each in a field of its own
        answer = view.number("length")
        if answer is not None and pair[0] == "tokens":
            apart = rows & (length != np.nan_to_num(answer, nan=-1)) & (other > 0)
            for name, hit in (("whole", apart & (other == length)), ("answer", apart & (other == np.nan_to_num(answer, nan=-1)))):
                self.spans.setdefault((pair[1], name), Ranges()).add(view.path, view.records[hit])
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
            off &= ~_padded(view, said, length)
        if off.any():
            at = int(off.argmax())
            self.declared.add(view.path, view.records[off])
            self.declared_text.append((int(view.records[at]), f"says {int(said[at])}, holds {int(length[at])}"))

    def answer(self, case: Case) -> Iterator[Finding]:
        """Each pair that disagrees; a gap that is the same in all records is a convention, and said as a note at most."""
        yield from self._base_is_wrong(case)
        yield from self._two_spans(case)
        for (base, role), gaps in self.gaps.items():
            if (base, role) in self.merged:
                continue
            total = sum(gaps.values())
            if set(gaps) == {0} or not total:
                continue
            if role == "policy_version" and gaps.get(0, 0) * 2 <= total:
                continue  # one version a part that was sampled in one go
            usual = max(gaps, key=lambda gap: (gaps[gap], gap == 0))
            if usual != 0 and len(gaps) == 1:
                alone = role == "mask" and set(self.gaps.get((base, "logprob"), {})) == {0}
                if (abs(usual) > 1 or alone) and not self._others_agree(base, role, gaps) and role not in {"policy_version", "temperature"}:
                    yield self._apart(case, base, role, total)
                continue
            if usual != 0 and gaps[usual] < total * 0.8 and self._others_agree(base, role, gaps):
                continue
            where = Ranges()
            evidence: list[tuple[int, str]] = []
            empty = 0
            key, base_key = case.roles.key(role) or role, case.roles.key(base)
            for path, records, length, other in self.kept.get((base, role), ()):
                wrong = (other - length != usual) | (other == 0)
                where.add(path, records[wrong])
                empty += int(((other == 0) & (length > 0)).sum())
                for number, one, two in list(zip(records[wrong].tolist(), length[wrong].tolist(), other[wrong].tolist(), strict=True))[
                    : 5 - len(evidence)
                ]:
                    evidence.append((number, f"{two} in `{key}` for {one} in `{base_key}`"))
            if not where.rows:
                continue
            there = total - where.rows
            if empty == where.rows:
                beside = f", while {there} other records carry it whole" if there else ""
                text = (
                    f"`{key}` is there and empty at {where.rows} of {total} records: {evidence[0][1]}; an empty list is not a value{beside}"
                )
            else:
                text = f"`{key}` and `{base_key}` disagree in length at {where.rows} of {total} records: {evidence[0][1]}"
            severity = (
                Severity.WARNING
                if (role in {"attention_mask", "policy_version", "temperature"} or (empty == where.rows and not there))
                else None
            )
            yield case.finding("GYR324", text, where=where, field=key, evidence=evidence, severity=severity)
        if self.declared:
            yield case.finding(
                "GYR324",
                f"`{case.roles.key('length')}` is not the length of any list in {self.declared.rows} records: {self.declared_text[0][1]}",
                where=self.declared,
                role="length",
                evidence=self.declared_text,
                severity=Severity.WARNING,
            )

    def _two_spans(self, case: Case) -> Iterator[Finding]:
        """A field that is as long as prompt and answer in a few records, and as the answer in the others, or the other way round."""
        for role in dict.fromkeys(role for role, _ in self.spans):
            whole, answer = self.spans[role, "whole"], self.spans[role, "answer"]
            few, many = (whole, answer) if whole.rows < answer.rows else (answer, whole)
            if not few or few.rows * 2 > many.rows:
                continue
            said, usual = ("all tokens", "the answer alone") if few is whole else ("the answer alone", "all tokens")
            text = f"`{case.roles.key(role)}` is as long as {said} at {few.rows} of {few.rows + many.rows} records, and as {usual} in the others"
            yield case.finding("GYR324", text, where=few, role=role)

    def _apart(self, case: Case, base: str, role: str, total: int) -> Finding:
        """The same gap in all records: perhaps one covers the prompt too; nothing in the file says so."""
        where = Ranges()
        for path, records, _, _ in self.kept[base, role]:
            where.add(path, records)
        _, records, length, other = self.kept[base, role][0]
        key, base_key = case.roles.key(role), case.roles.key(base)
        text = f"`{key}` and `{base_key}` differ in length by the same number in all {total} records: {other[0]} and {length[0]}"
        evidence = ((int(records[0]), f"{other[0]} in `{key}` for {length[0]} in `{base_key}`"),)
        return case.finding("GYR324", text, where=where, role=role, evidence=evidence, severity=Severity.WARNING)

    def _base_is_wrong(self, case: Case) -> Iterator[Finding]:
        """Where several fields disagree with the first in the same records and agree with each other, the first is wrong."""
        by_base: dict[tuple[str, str], list[str]] = {}
        for (base, role), parts in self.kept.items():
            told = ";".join(f"{path}:{records.tolist()}:{length.tolist()}:{other.tolist()}" for path, records, length, other in parts)
            by_base.setdefault((base, told), []).append(role)
        for (base, _), roles in by_base.items():
            if len(roles) < 2:
                continue
            if any(self.gaps[base, role].get(0, 0) < sum(self.gaps[base, role].values()) / 2 for role in roles):
                continue
            if base == "tokens" and len(roles) < 3:
                continue
            where = Ranges()
            evidence: list[tuple[int, str]] = []
            key = case.roles.key(base)
            others = ", ".join(f"`{case.roles.key(role) or role}`" for role in roles)
            for path, records, length, other in self.kept[base, roles[0]]:
                where.add(path, records)
                evidence += [
                    (n, f"{a} in `{key}`, {b} in {others}")
                    for n, a, b in zip(records.tolist(), length.tolist(), other.tolist(), strict=True)
                ][: 5 - len(evidence)]
            self.merged |= {(base, role) for role in roles}
            total = sum(self.gaps[base, roles[0]].values())
            yield case.finding(
                "GYR324",
                f"`{key}` and the other fields disagree in length at {where.rows} of {total} records: {evidence[0][1]}",
                where=where,
                role=base,
                evidence=evidence,
            )

    def _others_agree(self, base: str, role: str, gaps: dict[int, int]) -> bool:
        """Whether another field shows the same varying gaps: both then cover a part of the tokens, such as the answer alone."""
        if 0 in gaps or min(gaps) < 0 < max(gaps):
            return False
        return any(other == gaps for (first, second), other in self.gaps.items() if first == base and second != role) and not self._empties(
            base, role
        )

    def _empties(self, base: str, role: str) -> bool:
        return any(bool((other == 0).any()) for _, _, _, other in self.kept.get((base, role), ()))


def _padded(view: View, said: Floats, length: Ints) -> Bools:
    """[rows] longer lists whose rest is padding: the mask counts nothing of it, or without a mask it is one token throughout."""
    padded = np.isfinite(said) & (said < length)
    tokens, mask = view.column("tokens"), view.column("mask")
    column = mask if mask is not None and np.array_equal(lead(mask), length) else tokens
    if column is None or column.texts is not None or not np.array_equal(np.asarray(column.counts), np.maximum(length, 0)):
        return np.zeros(view.rows, np.bool_)
    counts = np.asarray(column.counts)
    position = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    beyond = position >= np.repeat(np.nan_to_num(said), counts)
    if column is mask:
        return np.asarray(padded & (per_row(beyond & view.counted("mask"), counts) == 0))
    rest = np.asarray(column.flat)[beyond & np.repeat(padded, counts)]
    return padded if len(rest) and rest.min() == rest.max() else np.zeros(view.rows, np.bool_)
