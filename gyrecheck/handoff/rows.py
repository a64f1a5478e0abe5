"""Decoded records (Python dicts) into a batch of rows: nested objects become dotted keys, opened lists become rows.

A record is one row, unless a list of objects stands under one of the contract's `opened` keys: then each object is a row with the
record's number, and the record's other values stand in each of its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gyrecheck.handoff.columns import ABSENT, column_of_values
from gyrecheck.handoff.group_records import members_as_rows
from gyrecheck.model.errors import GyreError
from gyrecheck.model.fields import Column, Kind, RecordBatch
from gyrecheck.model.finding import Scalar

MAX_KEYS = 4096
"""Distinct keys of a file; more is no table of fields."""
MAX_NEST = 8
"""Objects inside objects that become dotted keys; deeper ones stay objects."""
MAX_ITEM_KEYS = 16
"""Keys of the objects of a list that is not opened."""


def batch_of_records(
    path: str,
    records: list[dict[str, Any]],
    numbers: npt.NDArray[np.int64],
    opened: frozenset[str],
    header: Mapping[str, Scalar] | None = None,
    parts: frozenset[str] = frozenset(),
) -> RecordBatch:
    """The batch of `records`, whose 1-based numbers are `numbers`; `header` values become columns `header.<key>` too.

    `parts` are the words of keys that speak of parts of one answer, so that no record is taken for a group.

    Raises:
        GyreError: more than `MAX_KEYS` distinct keys.
    """
    names = dict.fromkeys(key for record in records for key in record)
    if len(names) > MAX_KEYS:
        raise GyreError(
            f"{path}: record {int(numbers[0])} and those after it hold over {MAX_KEYS:,} distinct keys; expected a fixed set of fields"
        )
    records, numbers = _open(records, numbers, [name for name in names if name in opened])
    if parts:
        records, numbers = members_as_rows(records, numbers, parts)
    columns: dict[str, Column] = {}
    _collect("", records, columns, path, 0)
    return with_header(RecordBatch(path, len(records), numbers, columns), header or {})


def with_header(batch: RecordBatch, header: Mapping[str, Scalar]) -> RecordBatch:
    """The batch with the values of its segment's header in every row, as columns `header.<key>`."""
    if not header:
        return batch
    columns = {f"header.{key}": column_of_values(f"header.{key}", [value] * batch.rows) for key, value in header.items()}
    return replace(
        batch, columns={**batch.columns, **{key: made for key, made in columns.items() if key not in batch.columns}}, header=dict(header)
    )


def _open(
    records: list[dict[str, Any]], numbers: npt.NDArray[np.int64], keys: list[str]
) -> tuple[list[dict[str, Any]], npt.NDArray[np.int64]]:
    for key in keys:
        if not any(_objects(record.get(key)) for record in records):
            continue
        rows: list[dict[str, Any]] = []
        of: list[int] = []
        for record, number in zip(records, numbers.tolist(), strict=True):
            inner = record.get(key)
            if not _objects(inner):
                rows.append(record)
                of.append(number)
                continue
            outer = {name: value for name, value in record.items() if name != key}
            for item in inner or ():
                rows.append(outer | item)
                of.append(number)
        records, numbers = rows, np.array(of, np.int64)
    return records, numbers


def _objects(value: object) -> bool:
    return type(value) is list and bool(value) and all(type(item) is dict for item in value)


def _collect(prefix: str, records: list[Any], columns: dict[str, Column], path: str, depth: int) -> None:
    names = dict.fromkeys(key for record in records if type(record) is dict for key in record)
    if len(columns) + len(names) > MAX_KEYS:
        raise GyreError(f"{path}: holds over {MAX_KEYS:,} distinct keys; expected a fixed set of fields")
    for name in names:
        key = f"{prefix}.{name}" if prefix else name
        try:
            values = [record[name] for record in records]
        except (KeyError, TypeError):
            values = [record.get(name, ABSENT) if type(record) is dict else ABSENT for record in records]
        if depth < MAX_NEST and dict in set(map(type, values)):
            _collect(key, values, columns, path, depth + 1)
            if all(type(value) is dict or value is ABSENT for value in values):
                continue
        column = column_of_values(key, values)
        columns[key] = replace(column, items=_items(values)) if column.kind in {Kind.OBJECT, Kind.MIXED} else column


def _items(values: list[Any]) -> Mapping[str, Column]:
    """The plain values inside lists of objects, one column a key: None where the row holds no such list, or an object lacks the key."""
    names = dict.fromkeys(name for value in values if _objects(value) for item in value for name in item)
    plain = list(names)[:MAX_ITEM_KEYS]
    return {
        name: column_of_values(name, [[item.get(name) for item in value] if _objects(value) else None for value in values])
        for name in plain
    }
