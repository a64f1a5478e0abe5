"""safetensors files, mapped and read in place: header, then each tensor's bytes where the header says they are."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from gyrecheck.handoff.readers.arrays import Rows, Whole, batches_of_arrays
from gyrecheck.handoff.source import packing
from gyrecheck.model.errors import GyreError
from gyrecheck.model.fields import RecordBatch
from gyrecheck.model.finding import Scalar
from gyrecheck.rulebook.contract import Contract

DTYPES = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4", "U64": "<u8", "I64": "<i8",
    "F16": "<f2", "BF16": "<u2", "F32": "<f4", "F64": "<f8",
}  # fmt: skip
NAMES = {"BOOL": "bool", "BF16": "bfloat16", "F16": "float16", "F32": "float32", "F64": "float64"}
MAX_HEADER = 100 << 20


class Bfloat16:
    """bfloat16 numbers as float32, widened block by block."""

    def __init__(self, bits: npt.NDArray[np.uint16]) -> None:
        self._rows = Whole(bits, "bfloat16")
        self.dtype_name = "bfloat16"

    @property
    def shape(self) -> tuple[int, ...]:
        """All axes."""
        return self._rows.shape

    @property
    def row_bytes(self) -> int:
        """Bytes of one entry, as float32."""
        return self._rows.row_bytes * 2

    def take(self, count: int) -> npt.NDArray[Any]:
        """The next `count` entries as float32."""
        return (self._rows.take(count).astype(np.uint32) << np.uint32(16)).view(np.float32)


def read(path: Path, contract: Contract, notes: list[str]) -> Iterator[RecordBatch]:
    """Batches of the file's rows; its metadata become columns `header.<key>`.

    Raises:
        GyreError: damaged or cut off.
    """
    if packing(path):
        raise GyreError(f"{path}: is packed; safetensors are read in place", hint="unpack it first")
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > min(size - 8, MAX_HEADER):
            raise GyreError(f"{path}: says its header has {length:,} bytes, the file has {size:,}: it is cut off or no safetensors file")
        try:
            header = msgspec.json.decode(file.read(length), type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise GyreError(f"{path}: has no readable safetensors header: {error}") from error
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    arrays: dict[str, Rows] = {}
    metadata: dict[str, Scalar] = {}
    for key, entry in header.items():
        if key == "__metadata__":
            metadata = {name: _number(value) for name, value in entry.items()} if isinstance(entry, dict) else {}
            continue
        rows = _tensor(path, key, entry, data, 8 + length, size, notes)
        if rows is not None:
            arrays[key] = rows
    if not arrays:
        raise GyreError(f"{path}: holds no tensor that can be read")
    yield from batches_of_arrays(str(path), arrays, contract, notes, header=metadata)


def _tensor(path: Path, key: str, entry: Any, data: mmap.mmap | bytes, base: int, size: int, notes: list[str]) -> Rows | None:  # noqa: ANN401 - decoded JSON
    try:
        dtype, shape, (start, end) = str(entry["dtype"]), tuple(int(n) for n in entry["shape"]), (int(n) for n in entry["data_offsets"])
    except (KeyError, TypeError, ValueError) as error:
        raise GyreError(f"{path}: tensor `{key}` has no dtype, shape and data_offsets in the header") from error
    if dtype not in DTYPES:
        notes.append(f"`{key}`: dtype {dtype} is not read")
        return None
    kind = np.dtype(DTYPES[dtype])
    items = 1
    for n in shape:
        items *= n
    if any(n < 0 for n in shape) or end - start != items * kind.itemsize or start < 0 or base + end > size:
        raise GyreError(
            f"{path}: tensor `{key}` {dtype} {list(shape)} does not fit bytes {start} to {end} of {size - base:,}: the "
            "file is cut off or damaged"
        )
    array = np.frombuffer(data, kind, items, base + start).reshape(shape) if items else np.zeros(shape, kind)
    return Bfloat16(array) if dtype == "BF16" else Whole(array, NAMES.get(dtype, str(kind.newbyteorder("="))))


def _number(value: object) -> Scalar:
    """Metadata are text by definition; whole numbers among them (versions) count as numbers."""
    if isinstance(value, str) and value.lstrip("-").isdigit() and len(value) < 18:
        return int(value)
    return value if isinstance(value, (str, int, float, bool)) else str(value)
