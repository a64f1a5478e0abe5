"""JSON lines: one object a line is a record (a time step, a trajectory, or a group); a list of objects in a line is a group.

Reads in blocks of constant size. The last line of a file that is still being written is left out and said. Duplicate keys, a line
that is no object, and bytes that are no JSON end the reading with the line's number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import simdjson

from gyrecheck.handoff.group_records import may_hold_a_group
from gyrecheck.handoff.readers.jsonl_block import batch_of_block
from gyrecheck.handoff.readers.jsonl_plan import Plan, plan_of
from gyrecheck.handoff.rows import batch_of_records, with_header
from gyrecheck.handoff.source import line_blocks
from gyrecheck.model.errors import GyreError
from gyrecheck.model.fields import RecordBatch
from gyrecheck.model.finding import Scalar
from gyrecheck.rulebook.contract import Contract

_DECODER = msgspec.json.Decoder()
_KEY = re.compile(rb'"\s*:')


def read(path: Path, contract: Contract, notes: list[str]) -> Iterator[RecordBatch]:
    """Batches of the file's records; `notes` takes what was left out.

    Raises:
        GyreError: a line is no JSON object, repeats a key, or is longer than the limit.
    """
    line = 1
    header: dict[str, Scalar] = {}
    fast = _Fast(contract)
    for whole, partial in line_blocks(path):
        block = whole
        if line == 1 and (found := _header(whole, contract)):
            header, block, line = found, whole[whole.index(b"\n") + 1 :], 2
        if block and not partial and (batch := fast.read(str(path), block, line)) is not None:
            yield with_header(batch, header)
            line += batch.rows
            continue
        lines = block.split(b"\n")
        if lines[-1] == b"":
            lines.pop()
        records: list[dict[str, Any]] = []
        numbers: list[int] = []
        keys = 0
        for number, text in enumerate(lines, line):
            if not text or text.isspace():
                continue
            try:
                value = decode(text)
            except ValueError as error:
                if partial:
                    notes.append(f"{path.name}: line {number} is half written and was left out")
                    break
                raise bad_line(path, number, text, error) from None
            except RecursionError:
                raise GyreError(f"{path}:{number}: is nested too deeply to be a record") from None
            for record in rows_of(value, path, number):
                if _beside(record, contract):
                    keys += len(record)
                    continue
                records.append(record)
                numbers.append(number)
        seen = len(_KEY.findall(block)) if b'" :' in block else block.count(b'":')
        keys += sum(map(len, records))
        if seen > keys:
            _refuse_duplicates(path, lines, line)
        line += len(lines)
        if records:
            yield batch_of_records(str(path), records, np.array(numbers, np.int64), contract.opened, header, parts=contract.words["parts"])


class _Fast:
    """The fast way for blocks whose lines are all alike. A plan that does not fit is made again from the next block."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._plan: Plan | None = None
        self._parser = simdjson.Parser()

    def read(self, path: str, block: bytes, line: int) -> RecordBatch | None:
        """The block's batch, or None for the exact way."""
        if self._plan is None:
            first = block[: block.index(b"\n")]
            try:
                record = _DECODER.decode(first)
                if may_hold_a_group(record, self._contract.words["parts"]):
                    return None
                self._plan = plan_of(first, record)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
                return None
        if self._plan is None:
            return None
        batch = batch_of_block(path, block, line, self._plan, self._parser)
        if batch is None or self._stands_beside(batch):
            self._plan = None
            return None
        return batch

    def _stands_beside(self, batch: RecordBatch) -> bool:
        """Whether one of the lines is a header or footer."""
        columns = [batch.columns[key] for key in self._contract.words.get("line_kind_keys", ()) if key in batch.columns]
        beside = self._contract.words.get("line_kinds_beside", frozenset())
        return any(not beside.isdisjoint(column.texts or ()) for column in columns)


def decode(text: bytes) -> Any:  # noqa: ANN401 - JSON
    """One JSON value; NaN and Infinity, which Python writes and JSON forbids, are read too.

    Raises:
        ValueError: no JSON.
    """
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if b"NaN" in text or b"Infinity" in text:
            return json.loads(text)
        raise ValueError(str(error)) from None


def rows_of(value: object, path: Path, number: int) -> list[dict[str, Any]]:
    """The records a line holds: one object, or a list of objects.

    Raises:
        GyreError: it holds something else.
    """
    if type(value) is dict:
        return [value]
    if type(value) is list and value and all(type(item) is dict for item in value):
        return value
    kind = {list: "a list", str: "a string", int: "a number", float: "a number", bool: "true or false", type(None): "null"}.get(
        type(value), "a value"
    )
    raise GyreError(f"{path}:{number}: holds {kind}, expected an object with the record's fields")


def bad_line(path: Path, number: int, text: bytes, error: Exception) -> GyreError:
    """The sentence for a line that is no JSON."""
    reason = re.sub(r"^JSON is malformed: ", "", str(error))
    shown = text[:40].decode("utf-8", "replace")
    return GyreError(
        f"{path}:{number}: is no JSON ({reason}): {shown!r}",
        hint="a record a line; `gyrecheck handoff show` names the formats that can be read",
    )


def _header(block: bytes, contract: Contract) -> dict[str, Scalar]:
    """The values of the first line where it says that it is no record; empty where it is one."""
    if not block.startswith(b"{") or b"\n" not in block:
        return {}
    try:
        record = decode(block[: block.index(b"\n")])
    except (ValueError, RecursionError):
        return {}
    if type(record) is not dict or not _beside(record, contract):
        return {}
    return {key: value for key, value in record.items() if isinstance(value, (str, int, float, bool))}


def _beside(record: dict[str, Any], contract: Contract) -> bool:
    for key in contract.words.get("line_kind_keys", ()):
        value = record.get(key)
        if isinstance(value, str) and value in contract.words.get("line_kinds_beside", ()):
            return True
    return False


def _refuse_duplicates(path: Path, lines: list[bytes], first: int) -> None:
    """Look for a key that stands twice in one object; nested objects and text that looks like keys are no duplicates."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(items)
        if len(table) != len(items):
            names = [name for name, _ in items]
            twice = next(name for name in names if names.count(name) > 1)
            raise _DuplicateKeyError(twice)
        return table

    for number, text in enumerate(lines, first):
        if not text or text.isspace():
            continue
        try:
            json.loads(text, object_pairs_hook=pairs)
        except _DuplicateKeyError as error:
            raise GyreError(
                f"{path}:{number}: the key `{error.args[0]}` stands twice in one object; which value counts is not defined"
            ) from None
        except ValueError:
            continue


class _DuplicateKeyError(Exception):
    """A key stands twice in one object."""
