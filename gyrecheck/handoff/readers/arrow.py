"""Arrow IPC files and streams, Feather, Parquet: batch by batch, columns taken over without a copy where Arrow allows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gyrecheck.handoff.columns import column_of_values, fold, native
from gyrecheck.handoff.rows import MAX_KEYS, batch_of_records
from gyrecheck.handoff.source import magic, open_bytes, packing
from gyrecheck.model.errors import GyreError
from gyrecheck.model.fields import Column, Kind, RecordBatch, Shape, State
from gyrecheck.model.finding import Scalar
from gyrecheck.rulebook.contract import Contract

PARQUET_ROWS = 16_384
PARQUET_BYTES = 8 << 20
"""Bytes of a batch of Parquet rows, by the file's own figures."""
PARQUET_BUFFER = 1 << 18
"""Bytes that are read of a column at a time; mapped pages would count as this process's memory, whole row groups may be large."""


def read(path: Path, contract: Contract, notes: list[str]) -> Iterator[RecordBatch]:
    """Batches of the file's rows; its schema metadata become columns `header.<key>`.

    Raises:
        GyreError: pyarrow is not installed, or the file is damaged or cut off.
    """
    try:
        import pyarrow as pa
    except ModuleNotFoundError as error:
        raise GyreError(f"{path}: needs pyarrow to be read", hint="pip install 'gyrecheck[arrow]'") from error
    number = 1
    try:
        for batch, header in _batches(path, pa, notes):
            if batch.num_columns > MAX_KEYS:
                raise GyreError(f"{path}: has {batch.num_columns:,} columns, expected at most {MAX_KEYS:,}")
            yield _convert(str(path), batch, number, header, contract, pa)
            number += batch.num_rows
    except (pa.ArrowException, OSError, EOFError) as error:
        raise GyreError(
            f"{path}: is no whole Arrow or Parquet file: {str(error).splitlines()[0]}", hint="is it still being written?"
        ) from error


def _batches(path: Path, pa: Any, notes: list[str]) -> Iterator[tuple[Any, dict[str, Scalar]]]:  # noqa: ANN401 - pyarrow is untyped
    head = magic(path)
    if head[:4] == b"PAR1":
        import pyarrow.parquet as pq

        if packing(path):
            raise GyreError(f"{path}: is a packed Parquet file", hint="unpack it first")
        with pq.ParquetFile(path, memory_map=False, pre_buffer=False, buffer_size=PARQUET_BUFFER) as file:
            header = _metadata(file.schema_arrow.metadata)
            rows = max(file.metadata.num_rows, 1)
            total = sum(file.metadata.row_group(at).total_byte_size for at in range(file.metadata.num_row_groups))
            size = max(1, min(PARQUET_ROWS, PARQUET_BYTES * rows // max(total, 1)))
            for batch in file.iter_batches(batch_size=size, use_threads=False):
                yield batch, header
        return
    if packing(path):
        source = pa.PythonFile(open_bytes(path), mode="r")
        stream = pa.ipc.open_stream(source) if head[:6] != b"ARROW1" else pa.ipc.open_file(pa.BufferReader(source.read(1 << 30)))
    else:
        source = pa.memory_map(str(path), "r")
        stream = pa.ipc.open_file(source) if head[:6] == b"ARROW1" else pa.ipc.open_stream(source)
    with stream:
        header = _metadata(stream.schema.metadata)
        if hasattr(stream, "num_record_batches"):
            for at in range(stream.num_record_batches):
                yield stream.get_batch(at), header
            return
        while True:
            try:
                batch = stream.read_next_batch()
            except StopIteration:
                return
            except (pa.ArrowException, OSError):
                notes.append(f"{path.name}: ends in half a batch, which was left out")
                return
            yield batch, header


def _metadata(found: dict[bytes, bytes] | None) -> dict[str, Scalar]:
    out: dict[str, Scalar] = {}
    for key, value in (found or {}).items():
        name, text = key.decode("utf-8", "replace"), value.decode("utf-8", "replace")
        if name in {"pandas", "ARROW:schema"} or len(text) > 256:
            continue
        out[name] = int(text) if text.lstrip("-").isdigit() and len(text) < 18 else text
    return out


def _convert(path: str, batch: Any, number: int, header: dict[str, Scalar], contract: Contract, pa: Any) -> RecordBatch:  # noqa: ANN401
    rows = batch.num_rows
    numbers = np.arange(number, number + rows)
    opened = [
        name
        for name, field in zip(batch.schema.names, batch.schema, strict=True)
        if name in contract.opened and _is_list(field.type, pa) and pa.types.is_struct(field.type.value_type)
    ]
    if opened:
        return batch_of_records(path, batch.to_pylist(), numbers, contract.opened, header, parts=contract.words["parts"])
    columns: dict[str, Column] = {}
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        _take(name, array, rows, columns, pa)
    for key, value in header.items():
        columns.setdefault(f"header.{key}", column_of_values(f"header.{key}", [value] * rows))
    return RecordBatch(path, rows, numbers, columns, header)


def _take(name: str, array: Any, rows: int, columns: dict[str, Column], pa: Any) -> None:  # noqa: ANN401
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
        kind = array.type
    if pa.types.is_dictionary(kind):
        array = array.dictionary_decode()
        kind = array.type
    if pa.types.is_struct(kind):
        for at, field in enumerate(kind):
            _take(f"{name}.{field.name}", array.field(at) if not array.null_count else _masked(array, at, pa), rows, columns, pa)
        return
    columns[name] = _column(name, array, rows, pa)


def _masked(array: Any, at: int, pa: Any) -> Any:  # noqa: ANN401
    import pyarrow.compute as pc

    return pc.if_else(array.is_valid(), array.field(at), pa.scalar(None, array.type[at].type))


def _column(name: str, array: Any, rows: int, pa: Any) -> Column:  # noqa: ANN401
    state = np.full(rows, int(State.PRESENT), np.int8)
    present = slice(None)
    if array.null_count:
        null = np.asarray(array.is_null())
        state[null] = int(State.NULL)
        present = ~null  # type: ignore[assignment]
        array = array.drop_null()
    made = _fold(array, pa)
    shape_of = np.full(rows, -1, np.int32)
    counts = np.zeros(rows, np.int64)
    shapes, of, own, leaf = made
    shape_of[present], counts[present] = of, own
    flat, kind, dtype, texts, holes = _leaf(leaf, pa)
    return Column(name, kind, dtype, rows, state, shape_of, shapes, counts, flat, np.zeros(rows, np.int8), (kind,), texts, holes)


def _is_list(kind: Any, pa: Any) -> bool:  # noqa: ANN401
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _fold(array: Any, pa: Any) -> tuple[tuple[Shape, ...], npt.NDArray[np.int32], npt.NDArray[np.int64], Any]:  # noqa: ANN401
    """Shapes of lists of any depth, from the inside out. A null list inside a list counts as an empty one."""
    size = len(array)
    if not _is_list(array.type, pa):
        return ((),), np.zeros(size, np.int32), np.ones(size, np.int64), array
    if pa.types.is_fixed_size_list(array.type):
        lengths = np.full(size, array.type.list_size, np.int64)
    else:
        offsets = np.asarray(array.offsets).astype(np.int64)
        lengths = np.diff(offsets)
    inner = array.flatten()
    shapes, of, counts, leaf = _fold(inner, pa)
    if array.null_count and not pa.types.is_fixed_size_list(array.type):
        lengths[np.asarray(array.is_null())] = 0
    if array.null_count and pa.types.is_fixed_size_list(array.type):
        lengths[np.asarray(array.is_null())] = 0
    return (*fold(lengths, shapes, of, counts), leaf)


def _leaf(array: Any, pa: Any) -> tuple[npt.NDArray[Any], Kind, str, tuple[str | None, ...] | None, npt.NDArray[np.int64] | None]:  # noqa: ANN401
    kind = array.type
    size = len(array)
    if pa.types.is_dictionary(kind):
        array = array.dictionary_decode()
        kind = array.type
    holes = np.flatnonzero(np.asarray(array.is_null())) if array.null_count else None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return np.full(size, np.nan), Kind.TEXT, "text", tuple(array.to_pylist()), holes
    if pa.types.is_null(kind):
        return np.full(size, np.nan), Kind.NONE, "none", None, np.arange(size)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        seconds = array.cast(pa.timestamp("us")).cast(pa.int64())
        return np.asarray(seconds.to_numpy(zero_copy_only=False), np.float64) / 1e6, Kind.FLOAT, str(kind), None, holes
    if pa.types.is_decimal(kind):
        array = array.cast(pa.float64())
        kind = array.type
    if not (pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return np.full(size, np.nan), Kind.OBJECT, str(kind), None, holes
    name = {"halffloat": "float16", "float": "float32", "double": "float64"}.get(str(kind), str(kind))
    values = array.to_numpy(zero_copy_only=False)
    if values.dtype == object:  # booleans with nulls
        values = np.array([np.nan if v is None else float(v) for v in values])
    what = Kind.BOOL if pa.types.is_boolean(kind) else Kind.INT if pa.types.is_integer(kind) else Kind.FLOAT
    return native(values), what, name, None, holes
