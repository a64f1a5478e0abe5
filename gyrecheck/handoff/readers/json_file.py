"""One JSON document: a list of records, a table of columns, or one record. A file of many lines is read as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gyrecheck.handoff.columns import column_of_values
from gyrecheck.handoff.readers import jsonl
from gyrecheck.handoff.rows import MAX_KEYS, batch_of_records
from gyrecheck.handoff.source import open_bytes
from gyrecheck.model.errors import GyreError
from gyrecheck.model.fields import RecordBatch
from gyrecheck.rulebook.contract import Contract

MAX_DOCUMENT = 256 << 20
BLOCK = 2048


def read(path: Path, contract: Contract, notes: list[str]) -> Iterator[RecordBatch]:
    """Batches of the document's records.

    Raises:
        GyreError: no JSON, too large for one document, or not made of records.
    """
    with open_bytes(path) as stream:
        data = stream.read(MAX_DOCUMENT + 1)
    if b"\n" in data.strip()[:4096] and _is_lines(data):
        yield from jsonl.read(path, contract, notes)
        return
    if len(data) > MAX_DOCUMENT:
        raise GyreError(
            f"{path}: is one JSON document of over {MAX_DOCUMENT >> 20} MiB",
            hint="write JSON lines: a record a line is read in constant memory",
        )
    try:
        value = jsonl.decode(data)
    except ValueError as error:
        raise GyreError(
            f"{path}: is no JSON ({str(error).removeprefix('JSON is malformed: ')})", hint="a file of one object a line is named .jsonl"
        ) from None
    except RecursionError:
        raise GyreError(f"{path}: is nested too deeply to be records") from None
    yield from _batches(path, value, contract)


def _batches(path: Path, value: Any, contract: Contract) -> Iterator[RecordBatch]:  # noqa: ANN401 - JSON
    if type(value) is list and value and all(type(item) is dict for item in value):
        for at in range(0, len(value), BLOCK):
            part = value[at : at + BLOCK]
            yield batch_of_records(str(path), part, np.arange(at + 1, at + 1 + len(part)), contract.opened, parts=contract.words["parts"])
        return
    if type(value) is not dict or not value:
        kind = "an empty document" if not value else type(value).__name__
        raise GyreError(f"{path}: holds {kind}, expected a list of records or an object of columns")
    inner = [
        item for key, item in value.items() if key in contract.opened and type(item) is list and item and all(type(x) is dict for x in item)
    ]
    if len(inner) == 1:
        outer = {key: item for key, item in value.items() if item is not inner[0] and not isinstance(item, (list, dict))}
        yield from _batches(path, [outer | item for item in inner[0]], contract)
        return
    lengths = {len(item) for item in value.values() if type(item) is list}
    lists = [item for item in value.values() if type(item) is list]
    if len(lengths) == 1 and lists and len(lists) * 2 >= len(value) and len(value) <= MAX_KEYS:
        yield _table(path, value, lengths.pop())
        return
    yield batch_of_records(str(path), [value], np.array([1]), contract.opened, parts=contract.words["parts"])


def _table(path: Path, value: dict[str, Any], rows: int) -> RecordBatch:
    columns = {key: column_of_values(key, item if type(item) is list else [item] * rows) for key, item in value.items()}
    return RecordBatch(str(path), rows, np.arange(1, rows + 1), columns)


def _is_lines(data: bytes) -> bool:
    first = data.lstrip().split(b"\n", 1)[0].strip()
    if first[:1] != b"{" or first[-1:] != b"}":
        return False
    try:
        jsonl.decode(first)
    except (ValueError, RecursionError):
        return False
    return True
