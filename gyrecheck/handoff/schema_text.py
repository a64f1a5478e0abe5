"""A contract written from what a good file holds, as TOML for `--schema`."""

from __future__ import annotations

import json
from collections.abc import Iterable

from gyrecheck.model.fields import FieldSeen, Kind


def schema_text(name: str, fields: Iterable[FieldSeen]) -> str:
    """One role a field: required where every record has a value, its shape where there is one, -1 where lengths differ.

    Fields whose role is not known stand under their own key. Ranges are not written: a good file's extremes are no limits.
    """
    lines = [
        "# Written by `gyrecheck handoff show --write-schema` from files taken as good.",
        "# Check others with `gyrecheck handoff check FILE --schema THIS`.",
        "",
        f"name = {json.dumps(name)}",
        "strict = false",
    ]
    for field in fields:
        if field.key.startswith("header.") or field.kind is Kind.NONE:
            continue
        role = field.role or field.key.replace(".", "_")
        lines += ["", f"[roles.{json.dumps(role)}]", f"summary = {json.dumps(f'as in the file: {field.key}')}"]
        if role != field.key:
            lines.append(f"aliases = [{json.dumps(field.key)}]")
        lines.append(f"required = {str(field.absent == 0 and field.null == 0).lower()}")
        if field.null:
            lines.append("nullable = true")
        if field.kind not in {Kind.MIXED, Kind.OBJECT}:
            lines.append(f"kinds = [{json.dumps(field.kind.value)}]")
        shape = common_shape(field)
        if shape is not None:
            lines.append(f"shape = {list(shape)}")
        if field.dtype not in {kind.value for kind in Kind} and "/" not in field.dtype:
            lines.append(f"dtype = {json.dumps(field.dtype)}")
    return "\n".join(lines) + "\n"


def common_shape(field: FieldSeen) -> tuple[int, ...] | None:
    """The one shape of all records, -1 on axes that differ; None when even the rank differs."""
    shapes = [shape for shape, _, _ in field.shapes]
    if not shapes or len({len(shape) for shape in shapes}) > 1:
        return None
    return tuple(axis[0] if len(set(axis)) == 1 else -1 for axis in zip(*shapes, strict=True))
