"""The tables of `handoff show` and `handoff check`: one row a key, with what it holds, or with what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence

from gyrecheck.handoff.profile import shape_text
from gyrecheck.model.fields import FieldSeen
from gyrecheck.model.finding import Finding, Scalar, Severity, Table
from gyrecheck.rulebook.contract import Contract


def field_table(seen: Sequence[FieldSeen]) -> Table:
    """`show`'s table: one row a key."""
    rows = tuple((f.key, f.role, f"{f.dtype or f.kind.value}", shape_text(f), _range(f), _remarks(f), f.example) for f in seen)
    return Table(("key", "role", "dtype", "shape", "range", "remarks", "example"), rows)


def contract_table(contract: Contract, seen: Sequence[FieldSeen], findings: Sequence[Finding]) -> Table:
    """`check`'s table: the contract's fields that are there, each with `ok` or what is wrong with it."""
    wrong: dict[str, list[str]] = {}
    for finding in findings:
        if finding.field and finding.severity is not Severity.NOTE:
            wrong.setdefault(finding.field, []).append(
                f"{finding.code} {finding.name}" + (f" at {finding.records}" if finding.records else "")
            )
    rows: list[tuple[Scalar, ...]] = []
    for field in seen:
        role = field.role or ("" if field.key.startswith("header.") else "-")
        if not role:
            continue
        state = "; ".join(wrong.get(field.key, ())) or ("not judged" if role == "-" else "ok")
        rows.append((field.key, role, f"{field.dtype or field.kind.value} {shape_text(field)}", _range(field), state))
    for role, spec in contract.schema_roles.items():
        if spec.required and role not in {field.role for field in seen}:
            rows.append(("-", role, "", "", "MISSING"))
    return Table(("key", "role", "dtype and shape", "range", "contract"), tuple(rows))


def _range(field: FieldSeen) -> str:
    if field.minimum is None or field.maximum is None:
        return ""
    if field.minimum == field.maximum:
        return f"{field.minimum:.6g}"
    return f"{field.minimum:.6g} to {field.maximum:.6g}"


def _remarks(field: FieldSeen) -> str:
    said = []
    if field.absent:
        said.append(f"absent at {field.absent} of {field.rows}")
    if field.null:
        said.append(f"None at {field.null} of {field.rows}")
    if field.empty:
        said.append(f"empty at {field.empty}")
    if field.holes:
        said.append(f"{field.holes} None inside")
    if field.nan:
        said.append(f"{field.nan} NaN")
    if field.infinite:
        said.append(f"{field.infinite} infinite")
    if field.constant:
        said.append("constant")
    if len(field.shapes) > 1 and len({len(s) for s, _, _ in field.shapes}) > 1:
        shape, _, record = field.shapes[1]
        said.append(f"{list(shape)} from record {record}")
    return ", ".join(said)
