"""What alike lines look like, and their numbers as columns; the second half of `jsonl_block`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gyrecheck.model.fields import Column, Kind, Shape, State

MAX_EXACT = 2.0**53
"""Whole numbers from here on are not exact as float64."""
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Plan:
    """What the first line looks like: keys with the kind of their value, and the order of all strings."""

    keys: tuple[str, ...]
    kinds: tuple[str, ...]
    """number, flag, text, list"""
    strings: tuple[tuple[bytes, bool], ...]
    """Each string of the line: its bytes, and whether it is a key."""


def plan_of(record: Any) -> Plan | None:  # noqa: ANN401 - decoded JSON
    """The plan for lines like `record`, or None when they cannot go the fast way."""
    if type(record) is not dict or not 0 < len(record) <= 64:
        return None
    kinds: list[str] = []
    strings: list[tuple[bytes, bool]] = []
    for key, value in record.items():
        if "true" in key or "false" in key:
            return None
        strings.append((key.encode(), True))
        kind = type(value)
        if kind is bool:
            kinds.append("flag")
        elif kind in {int, float}:
            kinds.append("number")
        elif kind is str:
            kinds.append("text")
            strings.append((b"", False))
        elif kind is list:
            kinds.append("list")
        else:
            return None
    return Plan(tuple(record), tuple(kinds), tuple(strings))


def columns_of(
    block: bytes,
    values: npt.NDArray[np.float64],
    counts: Ints,
    fractions: Ints,
    shapes: dict[int, tuple[tuple[Shape, ...], npt.NDArray[np.int32]]],
    table: Ints,
    plan: Plan,
) -> dict[str, Column] | None:
    """One column a key from all numbers of the block in document order, `counts` [rows, keys] of them each; None where one is not exact."""
    rows, keys = counts.shape
    state = np.full(rows, int(State.PRESENT), np.int8)
    zeros8, zeros32 = np.zeros(rows, np.int8), np.zeros(rows, np.int32)
    width = counts.sum(axis=1)
    even = bool((counts == counts[0]).all())
    grid = values.reshape(rows, int(width[0])) if even else values
    key_of = None if even else np.repeat(np.tile(np.arange(keys, dtype=np.int8), rows), counts.reshape(-1))
    offset = np.concatenate(([0], np.cumsum(counts[0])))
    columns: dict[str, Column] = {}
    texts_in_line = [at for at, (_, is_key) in enumerate(plan.strings) if not is_key]
    text_at = dict(zip([at for at, kind in enumerate(plan.kinds) if kind == "text"], texts_in_line, strict=True))
    for at, key in enumerate(plan.keys):
        kind = plan.kinds[at]
        if kind == "text":
            where = table[:, [2 * text_at[at], 2 * text_at[at] + 1]].tolist()
            try:
                texts = tuple(block[a + 1 : b].decode() for a, b in where)
            except UnicodeDecodeError:
                return None
            columns[key] = Column(
                key,
                Kind.TEXT,
                "text",
                rows,
                state,
                zeros32,
                ((),),
                np.ones(rows, np.int64),
                np.full(rows, np.nan),
                zeros8,
                (Kind.TEXT,),
                texts,
            )
            continue
        flat: npt.NDArray[Any] = grid[:, offset[at] : offset[at + 1]].reshape(-1) if key_of is None else values[key_of == at]
        own_shapes, which = shapes.get(at, (((),), zeros32))
        kinds: tuple[Kind, ...] = (Kind.FLOAT,)
        kind_of = zeros8
        with_fraction = fractions[:, at] > 0
        if kind == "flag":
            if fractions[:, at].any() or ((flat != 0) & (flat != 1)).any():
                return None
            flat, kinds = flat != 0, (Kind.BOOL,)
        elif not with_fraction.any():
            if np.abs(flat).max(initial=0.0) >= MAX_EXACT:
                return None
            flat, kinds = flat.astype(np.int64), (Kind.INT,)
        elif (fractions[:, at] < counts[:, at]).any():
            kinds, kind_of = (Kind.INT, Kind.FLOAT), with_fraction.astype(np.int8)
        whole = kinds[0] if len(kinds) == 1 else Kind.FLOAT
        columns[key] = Column(
            key,
            whole,
            whole.value,
            rows,
            state,
            which,
            own_shapes,
            np.ascontiguousarray(counts[:, at]),
            np.ascontiguousarray(flat),
            kind_of,
            kinds,
        )
    return columns
