"""A project's own contract (`--schema`), held against the records."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.fields import Column, Kind, State
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.question import Case, Question, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import View, row_of_element


class DeclaredFields(Question):
    """A project's own contract (`--schema`): required fields, shapes, dtypes, ranges, nothing beside them when strict."""

    about = "the project's contract"

    def __init__(self) -> None:
        self.absent: dict[str, Ranges] = {}
        self.shape: dict[str, Ranges] = {}
        self.kind: dict[str, Ranges] = {}
        self.range: dict[str, Ranges] = {}
        self.text: dict[str, str] = {}
        self.extra: dict[str, Ranges] = {}
        self.rows = 0

    def feed(self, view: View) -> None:
        """Read one batch."""
        self.rows += view.rows
        wanted = view.contract.schema_roles
        if not wanted:
            return
        for role, spec in wanted.items():
            column = view.column(role)
            if column is None:
                if spec.required:
                    self.absent.setdefault(role, Ranges()).add(view.path, view.records)
                continue
            state = np.asarray(column.state)
            bad = state != int(State.PRESENT) if not spec.nullable else state == int(State.ABSENT)
            if spec.required and bad.any():
                self.absent.setdefault(role, Ranges()).add(view.path, view.records[bad])
            self._values(view, column, role)
        if view.contract.strict:
            for key in view.batch.columns:
                if view.roles.roles.get(key, "") not in wanted and not key.startswith("header."):
                    self.extra.setdefault(key, Ranges()).add(view.path, view.records)

    def _values(self, view: View, column: Column, role: str) -> None:
        spec = view.contract.schema_roles[role]
        of = np.asarray(column.shape_of)
        if spec.shape is not None:
            fits = np.array(
                [len(s) == len(spec.shape) and all(w in {-1, n} for n, w in zip(s, spec.shape, strict=True)) for s in column.shapes]
                + [True]
            )
            bad = ~fits[of]
            if bad.any():
                self.shape.setdefault(role, Ranges()).add(view.path, view.records[bad])
                self.text.setdefault(f"shape {role}", str(list(column.shapes[int(of[int(bad.argmax())])])))
        if spec.kinds or spec.dtype:
            allowed = [k in spec.kinds or (k is Kind.INT and Kind.FLOAT in spec.kinds) or not spec.kinds for k in column.kinds]
            bad = ~np.array(allowed)[np.asarray(column.kind_of)] & (np.asarray(column.counts) > 0)
            if spec.dtype and column.dtype not in {spec.dtype, *(kind.value for kind in Kind)}:
                bad = np.ones(view.rows, np.bool_)
            if bad.any():
                self.kind.setdefault(role, Ranges()).add(view.path, view.records[bad])
                self.text.setdefault(f"kind {role}", column.dtype)
        flat = np.asarray(column.flat)
        low, high = spec.minimum, spec.maximum
        if len(flat) and (low is not None or high is not None) and flat.dtype.kind != "b":
            bad_values = np.zeros(len(flat), np.bool_)
            bad_values |= flat < low if low is not None else False
            bad_values |= flat > high if high is not None else False
            if bad_values.any():
                rows = row_of_element(column)[bad_values]
                self.range.setdefault(role, Ranges()).add(view.path, view.records[np.unique(rows)])
                self.text.setdefault(f"range {role}", show(flat[bad_values][0]))

    def answer(self, case: Case) -> Iterator[Finding]:
        """What the schema asks for and the file does not hold."""
        for role, where in self.absent.items():
            known = ", ".join(sorted(case.roles.keys.values()))
            yield case.finding(
                "GYR303",
                f"required field `{role}` is absent at {where.rows} of {self.rows} records; known fields here: {known or 'none'}",
                where=where,
                field=role,
            )
        for role, where in self.shape.items():
            spec = case.contract.schema_roles[role]
            yield case.finding(
                "GYR307",
                f"`{case.roles.key(role)}` has shape {self.text[f'shape {role}']}, the schema says {list(spec.shape or ())}",
                where=where,
                role=role,
            )
        for role, where in self.kind.items():
            spec = case.contract.schema_roles[role]
            said = spec.dtype or " or ".join(kind.value for kind in spec.kinds)
            yield case.finding(
                "GYR321", f"`{case.roles.key(role)}` is {self.text[f'kind {role}']}, the schema says {said}", where=where, role=role
            )
        for role, where in self.range.items():
            spec = case.contract.schema_roles[role]
            limits = f"{spec.minimum if spec.minimum is not None else '-inf'} to {spec.maximum if spec.maximum is not None else 'inf'}"
            yield case.finding(
                "GYR322", f"`{case.roles.key(role)}` holds {self.text[f'range {role}']}, the schema allows {limits}", where=where, role=role
            )
        for key, where in self.extra.items():
            yield case.finding(
                "GYR305", f"`{key}` is not in the schema {case.contract.schema}", where=where, field=key, severity=Severity.WARNING
            )
