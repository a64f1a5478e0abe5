"""A file's bytes, whatever it is packed in: plain, gzip or zstandard, told by the first bytes and never by the name alone."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from gyrecheck.model.errors import GyreError

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
BLOCK = 4 << 20
"""Bytes read at a time."""
MAX_LINE = 64 << 20
"""Bytes of one line; a longer one is refused, so that memory stays bounded."""


def magic(path: Path, size: int = 16) -> bytes:
    """The first bytes of the file, after unpacking.

    Raises:
        GyreError: it cannot be read.
    """
    try:
        with open_bytes(path) as stream:
            return stream.read(size)
    except Exception as error:
        if isinstance(error, (OSError, EOFError, zlib.error)) or type(error).__name__ == "ZstdError":
            raise unreadable(path, error) from error
        raise


def packing(path: Path) -> str:
    """`gzip`, `zstd`, or the empty string for a file that is not packed."""
    try:
        with path.open("rb") as stream:
            head = stream.read(4)
    except OSError as error:
        raise unreadable(path, error) from error
    return "gzip" if head[:2] == GZIP else "zstd" if head == ZSTD else ""


def open_bytes(path: Path) -> BinaryIO:
    """The file unpacked as a stream; errors of the packing appear when it is read."""
    packed = packing(path)
    if packed == "gzip":
        return cast("BinaryIO", gzip.open(path, "rb"))
    if packed == "zstd":
        import zstandard

        raw = path.open("rb")
        reader = zstandard.ZstdDecompressor(max_window_size=128 << 20).stream_reader(raw, read_across_frames=True, closefd=True)
        return cast("BinaryIO", io.BufferedReader(cast("io.RawIOBase", reader)))
    return path.open("rb")


def _fill(stream: BinaryIO, block: int) -> bytes:
    """About `block` bytes; of a packed file that ends early, what could be unpacked."""
    parts: list[bytes] = []
    size = 0
    take = getattr(stream, "read1", stream.read)
    while size < block:
        try:
            part = take(block - size)
        except EOFError:  # gzip still being written
            part = b""
        if not part:
            break
        parts.append(part)
        size += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _overlong(path: Path) -> int:
    """The number of the first line longer than `MAX_LINE`; counted only when it is said."""
    with open_bytes(path) as stream:
        number = 1
        since = 0
        while since <= MAX_LINE and (piece := _fill(stream, BLOCK)):
            lines = piece.count(b"\n")
            number += lines
            since = len(piece) - piece.rfind(b"\n") - 1 if lines else since + len(piece)
        return number


def unreadable(path: Path, error: Exception) -> GyreError:
    """The one sentence for a file whose bytes cannot be had."""
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return GyreError(f"{path}: cannot be read: {reason}")


def line_blocks(path: Path, block: int = BLOCK) -> Iterator[tuple[bytes, bool]]:
    """Whole lines in blocks of about `block` bytes, and whether the block is the rest after the last newline.

    A file that is still being written ends in half a line: it comes last, marked True. A packed file that ends early gives what could be
    unpacked.

    Raises:
        GyreError: it cannot be read, the packing is damaged, or a line is longer than `MAX_LINE`.
    """
    rest = b""
    begun = False
    try:
        with open_bytes(path) as stream:
            while True:
                piece = _fill(stream, block)
                if not piece:
                    break
                if not begun:
                    begun, piece = True, piece.removeprefix(b"\xef\xbb\xbf")
                cut = piece.rfind(b"\n") + 1
                if cut == 0:
                    rest += piece
                    if len(rest) > MAX_LINE:
                        raise GyreError(  # noqa: TRY301 - the sentence belongs to this place
                            f"{path}: line {_overlong(path)} is longer than {MAX_LINE >> 20} MiB; expected one record a line",
                            hint="split the record, or write npz, Parquet or safetensors",
                        )
                    continue
                whole = rest + piece[:cut] if rest else piece[:cut]
                rest = piece[cut:]
                yield whole, False
    except (OSError, zlib.error) as error:
        raise unreadable(path, error) from error
    except Exception as error:
        if type(error).__name__ == "ZstdError":
            raise unreadable(path, error) from error
        raise
    if rest:
        yield rest, True
