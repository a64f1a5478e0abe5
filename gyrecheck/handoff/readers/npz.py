"""numpy files: npy, and npz with or without compression, read as streams; object arrays (pickles) are refused unopened."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from gyrecheck.handoff.pickle_names import first_class
from gyrecheck.handoff.readers.arrays import MAX_WHOLE, Rows, batches_of_arrays
from gyrecheck.handoff.source import magic, open_bytes, packing
from gyrecheck.model.errors import GyreError
from gyrecheck.model.fields import RecordBatch
from gyrecheck.rulebook.contract import Contract
from gyrecheck.rulebook.record_limits import load_record_limits

PIECE = 1 << 18
"""Bytes that are read and summed at once; they stay in the processor's cache."""


class _Readable(Protocol):
    """What is asked of a stream of bytes."""

    def read(self, size: int = -1, /) -> bytes: ...

    def readinto(self, buffer: Any, /) -> int | None: ...  # noqa: ANN401 - any writable buffer


class _Stream:
    """One npy array behind a stream, row by row."""

    def __init__(self, path: Path, key: str, stream: _Readable, size: int | None) -> None:
        self._path, self._key, self._stream = path, key, stream
        shape, fortran, dtype, head = _npy_header(path, key, stream)
        if dtype.hasobject:
            raise GyreError(
                f"{path}: array `{key}` holds pickled objects ({first_class(stream.read(1 << 20)) or 'object'}); reading it would run code",
                hint="save numbers only, with one array a field",
            )
        self.shape = shape
        self.dtype_name = str(dtype.newbyteorder("="))
        self._dtype = dtype
        items = 1
        for n in shape:
            items *= n
        self.row_bytes = dtype.itemsize * (items // shape[0] if shape and shape[0] else items if not shape else 0)
        total = items * dtype.itemsize
        if size is not None and total != size - head:
            raise GyreError(
                f"{path}: array `{key}` says {list(shape)} {dtype}, {total:,} bytes, and holds {size - head:,}: the file is damaged"
            )
        self._whole: npt.NDArray[Any] | None = None
        self._at = 0
        if fortran and len(shape) > 1:
            if total > MAX_WHOLE:
                raise GyreError(
                    f"{path}: array `{key}` is in Fortran order and too large to turn ({total >> 20:,} MiB)",
                    hint="save it with np.ascontiguousarray",
                )
            self._whole = np.frombuffer(self._read(total), dtype).reshape(shape[::-1]).T

    def take(self, count: int) -> npt.NDArray[Any]:
        """The next `count` rows."""
        if self._whole is not None:
            self._at += count
            return self._whole[self._at - count : self._at]
        rows = (count, *self.shape[1:]) if self.shape else ()
        data = self._read(self.row_bytes * count if self.shape else self._dtype.itemsize)
        return np.frombuffer(data, self._dtype).reshape(rows)

    def _read(self, size: int) -> npt.NDArray[np.uint8]:
        out = np.empty(size, np.uint8)
        at = 0
        try:
            while at < size and (count := self._stream.readinto(out[at : at + PIECE])):
                at += count
        except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
            raise GyreError(f"{self._path}: array `{self._key}` cannot be unpacked: {error}") from error
        if at < size:
            raise GyreError(f"{self._path}: array `{self._key}` is cut off: {at:,} of {size:,} bytes")
        return out


class _Stored:
    """An uncompressed member, read from the archive's own file without a copy; its checksum is compared behind its last byte."""

    def __init__(self, file: io.FileIO | io.BytesIO, info: zipfile.ZipInfo) -> None:
        file.seek(info.header_offset)
        head = file.read(30)
        if head[:4] != b"PK\x03\x04":
            raise zipfile.BadZipFile("its entry does not begin where the directory says")
        self._file, self._left, self._wanted, self._sum = file, info.file_size, info.CRC, 0
        self._at = info.header_offset + 30 + int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any writable buffer
        """Fill as much of `buffer` as there is."""
        self._file.seek(self._at)
        count = self._file.readinto(memoryview(buffer)[: self._left]) or 0
        self._at += count
        self._left -= count
        self._sum = zlib.crc32(memoryview(buffer)[:count], self._sum)
        if not self._left and self._sum != self._wanted:
            raise zipfile.BadZipFile("its checksum does not fit: the file is damaged")
        return count

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes."""
        out = bytearray(self._left if size < 0 else min(size, self._left))
        return bytes(out[: self.readinto(out)]) if out else b""


def read(path: Path, contract: Contract, notes: list[str]) -> Iterator[RecordBatch]:
    """Batches of the file's rows.

    Raises:
        GyreError: damaged, cut off, holding pickles, or unpacking to far more than it is.
    """
    if magic(path)[:6] == b"\x93NUMPY":
        with open_bytes(path) as stream:
            key = path.name.split(".")[0]
            yield from batches_of_arrays(str(path), {key: _Stream(path, key, cast("_Readable", stream), None)}, contract, notes)
        return
    with ExitStack() as opened:
        try:
            file = io.BytesIO(_unpacked(path)) if packing(path) else path.open("rb", buffering=0)
            opened.enter_context(file)
            archive = opened.enter_context(zipfile.ZipFile(file))
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise GyreError(f"{path}: is no whole npz file: {error}", hint="is it still being written?") from error
        members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
        strangers = [info.filename for info in archive.infolist() if not info.filename.endswith(".npy")]
        if not members:
            raise GyreError(f"{path}: is a zip file without arrays ({', '.join(strangers[:3]) or 'empty'}); expected npz")
        arrays: dict[str, Rows] = {}
        for info in members:
            refuse_bomb(path, f"array `{info.filename[:-4]}`", info)
            key = info.filename[:-4].replace("/", ".")
            if key in arrays:
                raise GyreError(f"{path}: array `{key}` stands twice in the file")
            try:
                stored = info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & 1
                member: _Readable = _Stored(file, info) if stored else cast("_Readable", opened.enter_context(archive.open(info)))
                arrays[key] = _Stream(path, key, member, info.file_size)
            except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError, zlib.error) as error:
                raise GyreError(f"{path}: array `{key}` cannot be unpacked: {error}") from error
        yield from batches_of_arrays(str(path), arrays, contract, notes)


def refuse_bomb(path: Path, what: str, info: zipfile.ZipInfo) -> None:
    """Refuse a member by its directory entry alone.

    Raises:
        GyreError: it says that it unpacks to far more than it is.
    """
    limits = load_record_limits()
    if info.file_size > limits.bomb_bytes and info.file_size > limits.bomb_ratio * max(info.compress_size, 1):
        raise GyreError(
            f"{path}: {what} unpacks from {info.compress_size:,} to {info.file_size:,} bytes; not read",
            hint="nearly all of it is one value repeated; save the rows in use only, or without compression",
        )


def _unpacked(path: Path) -> bytes:
    with open_bytes(path) as stream:
        data = stream.read(MAX_WHOLE + 1)
    if len(data) > MAX_WHOLE:
        raise GyreError(f"{path}: is packed twice and too large to unpack in memory", hint="unpack it first")
    return data


def _npy_header(path: Path, key: str, stream: _Readable) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, Fortran order, dtype and header size. The header is a Python literal that numpy parses without running it."""
    try:
        version = np.lib.format.read_magic(stream)
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        before = 10 if version == (1, 0) else 12
        length = _Counting(stream)
        shape, fortran, dtype = reader(length)
    except (ValueError, EOFError, OSError, zlib.error, SyntaxError, TypeError) as error:
        raise GyreError(f"{path}: array `{key}` is no npy array: {str(error).splitlines()[0]}") from error
    if any(n < 0 for n in shape):
        raise GyreError(f"{path}: array `{key}` says {list(shape)}: the file is damaged")
    return tuple(int(n) for n in shape), bool(fortran), dtype, before - (2 if version == (1, 0) else 4) + length.count


class _Counting:
    """A stream that counts what was read."""

    def __init__(self, stream: _Readable) -> None:
        self._stream = stream
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self.count += len(data)
        return data
