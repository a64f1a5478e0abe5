"""Values whose kind changes between records or files, or is not one that the field can have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from gyrecheck.model.fields import Column, Kind, State
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.question import Case, Question
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import View


class KindDrift(Question):
    """Values whose kind changes, or is not one the role can have."""

    about = "dtype drift"
    plain: ClassVar[frozenset[Kind]] = frozenset({Kind.BOOL, Kind.INT, Kind.FLOAT})
    whole: ClassVar[frozenset[str]] = frozenset({"action", "tokens", "policy_version", "trainer_version", "step"})
    """Roles whose values are indices when they are whole numbers: 1 and 1.0 are then two dtypes."""

    def __init__(self) -> None:
        self.kinds: dict[str, dict[Kind, tuple[int, int]]] = {}
        self.dtypes: dict[str, dict[str, tuple[int, int]]] = {}
        self.odd: dict[tuple[str, Kind], Ranges] = {}
        self.fraction: set[str] = set()

    def feed(self, view: View) -> None:
        """Read one batch."""
        for key, role in view.roles.roles.items():
            column = view.batch.columns.get(key)
            if column is None or column.kind is Kind.NONE:
                continue
            self._dtype(view, column)
            present = np.asarray(column.state) == int(State.PRESENT)
            filled = present & (np.asarray(column.counts) > 0)
            codes = np.asarray(column.kind_of)
            seen = self.kinds.setdefault(role, {})
            one = len(column.kinds) == 1
            if role in self.whole and role not in self.fraction and column.kind in {Kind.FLOAT, Kind.MIXED}:
                flat = np.asarray(column.flat)
                if flat.dtype.kind == "f" and bool((np.isfinite(flat) & (flat != np.round(flat))).any()):
                    self.fraction.add(role)
            if role in self.whole and role not in self.fraction and column.kind is not Kind.TEXT:
                pass
            elif one and column.kind is not Kind.TEXT and column.kind in seen and column.kind is not Kind.OBJECT:
                seen[column.kind] = (seen[column.kind][0] + int(np.count_nonzero(filled)), seen[column.kind][1])
                continue
            for at, kind in enumerate(column.kinds):
                rows = filled if one else filled & (codes == at)
                if kind is Kind.NONE or not rows.any():
                    continue
                count, first = seen.get(kind, (0, int(view.records[int(rows.argmax())])))
                seen[kind] = (count + int(rows.sum()), first)
                if kind in {Kind.TEXT, Kind.BOOL, Kind.OBJECT} or role in self.whole:
                    self.odd.setdefault((role, kind), Ranges()).add(view.path, view.records[rows])

    def _dtype(self, view: View, column: Column) -> None:
        if column.dtype not in {kind.value for kind in Kind}:
            count, first = self.dtypes.setdefault(column.key, {}).get(column.dtype, (0, int(view.records[0])))
            self.dtypes[column.key][column.dtype] = (count + view.rows, first)

    def answer(self, case: Case) -> Iterator[Finding]:
        """Text among numbers, flags as text, dtypes that change between files."""
        for role, seen in self.kinds.items():
            key = case.roles.key(role)
            allowed = case.contract.roles[role].kinds
            numeric = sum(count for kind, (count, _) in seen.items() if kind in self.plain)
            text = seen.get(Kind.TEXT)
            if text and numeric and role in self.whole and role not in self.fraction and Kind.FLOAT in seen and Kind.INT in seen:
                yield self._three_kinds(case, role, seen)
                continue
            if text and numeric and (allowed or role == "action"):
                where = self.odd[role, Kind.TEXT]
                yield case.finding(
                    "GYR321",
                    f"`{key}` is text at {text[0]} of {text[0] + numeric} records and a number in the others",
                    where=where,
                    role=role,
                )
            elif text and allowed and Kind.TEXT not in allowed and role in {"terminated", "truncated", "done", "mask", "reward", "logprob"}:
                why = ': a text such as "False" counts as true' if Kind.BOOL in allowed else ""
                yield case.finding(
                    "GYR321",
                    f"`{key}` is text in all records, expected {' or '.join(k.value for k in allowed)}{why}",
                    where=self.odd[role, Kind.TEXT],
                    role=role,
                )
            yield from self._index_as_float(case, role, seen)
            flag = seen.get(Kind.BOOL)
            if flag and numeric > flag[0] and role in {"terminated", "truncated", "done"}:
                where = self.odd[role, Kind.BOOL]
                yield case.finding(
                    "GYR321",
                    f"`{key}` is true/false at {flag[0]} records and a number at {numeric - flag[0]}",
                    where=where,
                    role=role,
                    severity=Severity.NOTE,
                )
        for key, dtypes in self.dtypes.items():
            if len(dtypes) > 1:
                told = ", ".join(f"{name} from record {first}" for name, (_, first) in dtypes.items())
                yield case.finding("GYR321", f"`{key}` changes its dtype between files: {told}", field=key, severity=Severity.WARNING)

    def _three_kinds(self, case: Case, role: str, seen: dict[Kind, tuple[int, int]]) -> Finding:
        """1, 1.0 and "1" in one file: every record that is not of the usual kind."""
        usual = max((kind for kind in seen if kind in {Kind.INT, Kind.FLOAT}), key=lambda kind: seen[kind][0])
        where = Ranges()
        for kind in seen:
            if kind is not usual and (role, kind) in self.odd:
                where.add_all(self.odd[role, kind])
        told = ", ".join(f"{kind.value} at {count} records (first {first})" for kind, (count, first) in seen.items())
        return case.finding("GYR321", f"`{case.roles.key(role)}` changes its kind between records: {told}", where=where, role=role)

    def _index_as_float(self, case: Case, role: str, seen: dict[Kind, tuple[int, int]]) -> Iterator[Finding]:
        """Whole numbers written as 1 in some records and as 1.0 in others: an index became a float on the way."""
        ints, floats = seen.get(Kind.INT), seen.get(Kind.FLOAT)
        if role not in self.whole or role in self.fraction or not ints or not floats:
            return
        kind = Kind.FLOAT if floats[1] >= ints[1] else Kind.INT
        yield case.finding(
            "GYR321",
            f"`{case.roles.key(role)}` is written as a whole number at {ints[0]} records and as a float without a fraction at {floats[0]}: "
            f"{kind.value} from record {seen[kind][1]}",
            where=self.odd.get((role, kind)),
            role=role,
            severity=Severity.WARNING,
        )
