"""CSV and TSV with a header line: numbers, true and false, empty cells (None), lists in brackets; everything else is text."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gyrecheck.handoff.columns import ABSENT
from gyrecheck.handoff.readers.jsonl import decode
from gyrecheck.handoff.rows import MAX_KEYS, batch_of_records
from gyrecheck.handoff.source import MAX_LINE, open_bytes, unreadable
from gyrecheck.model.errors import GyreError
from gyrecheck.model.fields import RecordBatch
from gyrecheck.rulebook.contract import Contract

BLOCK = 8192
WORDS: dict[str, Any] = {
    "true": True,
    "false": False,
    "": None,
    "none": None,
    "null": None,
    "nan": math.nan,
    "inf": math.inf,
    "-inf": -math.inf,
}


def read(path: Path, contract: Contract, notes: list[str]) -> Iterator[RecordBatch]:
    """Batches of the file's rows; row 1 is the line after the header.

    Raises:
        GyreError: no header, a column name twice, or a row of another width.
    """
    del notes
    csv.field_size_limit(MAX_LINE)
    try:
        with io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", errors="replace", newline="") as text:
            yield from _rows(path, text, contract)
    except csv.Error as error:
        raise GyreError(f"{path}: is no CSV table: {error}") from error
    except (OSError, EOFError) as error:
        raise unreadable(path, error) from error


def _rows(path: Path, text: io.TextIOWrapper, contract: Contract) -> Iterator[RecordBatch]:
    first = text.readline(1 << 20)
    mark = max("\t,;", key=first.count)
    names = next(csv.reader([first], delimiter=mark), [])
    if not names or not all(name.strip() for name in names) or all(_is_number(name) for name in names):
        raise GyreError(f"{path}: has no header line with the fields' names")
    names = [name.strip() for name in names]
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice or len(names) > MAX_KEYS:
        raise GyreError(
            f"{path}: the column `{twice}` stands twice" if twice else f"{path}: has {len(names):,} columns, expected at most {MAX_KEYS:,}"
        )
    records: list[dict[str, Any]] = []
    number = 0
    start = 1
    for row in csv.reader(text, delimiter=mark):
        if not row:
            continue
        number += 1
        if len(row) != len(names):
            raise GyreError(f"{path}: row {number} has {len(row)} cells, the header {len(names)}")
        records.append({name: value for name, cell in zip(names, row, strict=True) if (value := _value(cell)) is not ABSENT})
        if len(records) >= BLOCK:
            yield batch_of_records(str(path), records, np.arange(start, number + 1), contract.opened)
            records, start = [], number + 1
    if records:
        yield batch_of_records(str(path), records, np.arange(start, number + 1), contract.opened)


def _value(cell: str) -> Any:  # noqa: ANN401 - a scalar or a list of them
    try:
        return int(cell) if len(cell) < 19 else float(cell)
    except ValueError:
        pass
    try:
        return float(cell)
    except ValueError:
        pass
    word = cell.strip().lower()
    if word in WORDS:
        return WORDS[word]
    if cell[:1] == "[" and cell[-1:] == "]":
        try:
            return decode(cell.encode())
        except (ValueError, RecursionError):
            return cell
    return cell


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
