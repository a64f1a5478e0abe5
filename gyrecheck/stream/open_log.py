"""Which logs a path means, in which order, and their bytes: plain or compressed files, rotated sets, folders, standard input."""

from __future__ import annotations

import io
import os
import re
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from gyrecheck.model.errors import GyreError, did_you_mean

if TYPE_CHECKING:
    from bz2 import BZ2File
    from gzip import GzipFile
    from lzma import LZMAFile
from gyrecheck.stream.event_files import event_blocks, kind_of

BLOCK = 1 << 19
_LOG_NAMES = re.compile(
    r"\.(log|jsonl|txt|out|err|ndjson|console|stdout|stderr|json)(\.\d+)?(\.(gz|zst|xz|bz2))?$|^(log|stdout|stderr)$", re.IGNORECASE
)
_NOT_LOGS = re.compile(r"(^|[./_-])(requirements|config|manifest|args|params|package|metadata)[^/]*\.(txt|json)$", re.IGNORECASE)
_ROTATED = re.compile(r"^(?P<base>.+?)\.(?P<number>\d{1,4})(?P<pack>\.(?:gz|zst|xz|bz2))?$")
_PACKS = {b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst", b"\xfd7zXZ": "xz", b"BZh": "bz2"}


@dataclass(frozen=True, slots=True)
class LogFile:
    """One log. `path` is as the user wrote it, `-` for standard input."""

    path: str
    size: int = 0
    text: bytes | None = None
    """The content itself, for samples and tests."""


def find_logs(paths: tuple[str, ...]) -> tuple[LogFile, ...]:
    """The logs that the paths mean: a folder's log files, a rotated set oldest first.

    Raises:
        GyreError: a path does not exist, a folder holds no log, or a file cannot be opened.
    """
    found: list[LogFile] = []
    refuse_unreadable(paths)
    for given in paths:
        if given == "-":
            found.append(LogFile("-"))
            continue
        path = Path(given)
        if path.is_dir():
            files = [p for p in sorted(path.rglob("*")) if p.is_file()]
            inside = [p for p in files if _LOG_NAMES.search(p.name) and not _NOT_LOGS.search(p.name) and not _of_wandb(p)]
            inside = inside or [p for p in files if kind_of(p.name)]  # beside text logs they would say everything twice
            if not inside:
                raise GyreError(
                    f"{given}: the folder holds no logs (*.log, *.jsonl, *.txt, *.out and their packed forms, event files, *.wandb)",
                    hint=_nearest(path),
                )
            found.extend(_log(p) for p in inside)
        else:
            found.append(_log(path))
    unique = {log.path: log for log in found}
    return tuple(sorted(unique.values(), key=_rotation))


def refuse_unreadable(paths: tuple[str, ...]) -> None:
    """Ask of every path, before any work, whether it may be looked at; one that does not exist is left to the caller.

    Raises:
        GyreError: standard input is closed, or a path or a folder may not be read.
    """
    for given in paths:
        if given == "-":
            if sys.stdin is None:
                raise GyreError("standard input is closed", hint="pipe a log into it, or name a file")
            continue
        try:
            if stat.S_ISDIR(Path(given).stat().st_mode):
                os.scandir(given).close()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise GyreError(f"{given}: cannot be read ({why})", hint="check the path and its permissions") from error


def comes_once(log: LogFile) -> bool:
    """Whether the log is standard input or another pipe, whose bytes can be read a single time."""
    return log.path == "-" or (log.text is None and _is_pipe(Path(log.path)))


def _is_pipe(path: Path) -> bool:
    try:
        return stat.S_ISFIFO(path.stat().st_mode)
    except OSError:
        return False


def _of_wandb(path: Path) -> bool:
    """Whether a file is what W&B wrote of itself."""
    return path.name.startswith("debug") and any(part.startswith("wandb") for part in path.parts)


def is_live_log(name: str) -> bool:
    """Whether a file of this name is a log that may still be written to: neither packed nor rotated away, and none of the hook's files."""
    if name.endswith(".events.jsonl") or name in {"processes.jsonl", "hooks.json"} or _ROTATED.search(name) or _NOT_LOGS.search(name):
        return False
    return _LOG_NAMES.search(name) is not None and name.rpartition(".")[2] not in _PACKS.values()


def _log(path: Path) -> LogFile:
    try:
        if _is_pipe(path):
            return LogFile(str(path))  # what is read of it to see that it can be is gone
        with path.open("rb") as file:
            file.read(1)
        return LogFile(str(path), path.stat().st_size)
    except FileNotFoundError as error:
        raise GyreError(f"{path}: no such file", hint=_nearest(path)) from error
    except OSError as error:
        raise GyreError(f"{path}: cannot be read ({error.strerror or error})", hint="check the path and its permissions") from error


def _nearest(path: Path) -> str:
    folder = path if path.is_dir() else path.parent
    try:
        names = [p.name for p in folder.iterdir()][:500]
    except OSError:
        return f"`{folder}` is no folder"
    near = did_you_mean(path.name, names)
    return near or "give a log file, a folder with logs, or - for standard input"


def _rotation(log: LogFile) -> tuple[str, int]:
    """Sorts `train.log.2.gz`, `train.log.1`, `train.log`; other names stay as the user gave them."""
    parts = _ROTATED.match(Path(log.path).name)
    folder = str(Path(log.path).parent)
    if parts is None:
        return (f"{folder}/{re.sub(r'[.](gz|zst|xz|bz2)$', '', Path(log.path).name)}", 0)
    return (f"{folder}/{parts['base']}", -int(parts["number"]))


def blocks(log: LogFile, size: int = BLOCK) -> Iterator[bytes]:
    """The log's bytes, decompressed, in blocks.

    Raises:
        GyreError: it disappeared, cannot be read, or is packed in a form whose library is missing.
    """
    try:
        if log.text is None and (kind := kind_of(log.path)):
            yield from event_blocks(log.path, kind)
            return
        with _opened(log) as file:
            while block := file.read(size):
                yield block
    except FileNotFoundError as error:
        raise GyreError(f"{log.path}: disappeared while it was read", hint="give the rotated file's new name too") from error
    except _ends_early() as error:
        raise GyreError(f"{log.path}: the packed file ends early ({error})", hint="unpack what is there and give that") from error
    except OSError as error:
        raise GyreError(f"{log.path}: cannot be read ({error.strerror or error})", hint="check the file and its permissions") from error


def _ends_early() -> tuple[type[Exception], ...]:
    """What a packed file that was cut raises; asked only once something was raised, so that a start need not load the unpackers."""
    from lzma import LZMAError

    return EOFError, LZMAError


def is_plain(log: LogFile) -> bool:
    """Whether the log is a regular file that is not packed, so that its parts can be read for themselves."""
    if log.text is not None or log.path == "-" or kind_of(log.path) or not Path(log.path).is_file():
        return False
    with Path(log.path).open("rb") as file:
        head = file.read(6)
    return not any(head.startswith(magic) for magic in _PACKS)


def cuts(log: LogFile, parts: int) -> list[int]:
    """Offsets of line starts that cut a plain file into about equal parts, from 0 to its size."""
    size = Path(log.path).stat().st_size
    found = [0]
    with Path(log.path).open("rb") as file:
        for part in range(1, parts):
            file.seek(size * part // parts)
            while block := file.read(BLOCK):
                cut = block.find(b"\n")
                if cut >= 0:
                    found.append(file.tell() - len(block) + cut + 1)
                    break
    return [*sorted({at for at in found if at < size}), size]


def range_of(log: LogFile, start: int, end: int) -> Iterator[bytes]:
    """A plain file's bytes from `start` up to `end`, in blocks."""
    with Path(log.path).open("rb") as file:
        file.seek(start)
        while start < end and (block := file.read(min(BLOCK, end - start))):
            start += len(block)
            yield block


def newlines_before(log: LogFile, end: int) -> int:
    """How many lines end before an offset."""
    import numpy as np  # seven times as fast as counting bytes

    return sum(int(np.count_nonzero(np.frombuffer(block, np.uint8) == 10)) for block in range_of(log, 0, end))


def _opened(log: LogFile) -> BinaryIO | GzipFile | LZMAFile | BZ2File:
    if log.text is not None:
        return io.BytesIO(log.text)
    if log.path == "-":
        return sys.stdin.buffer
    if comes_once(log):
        return Path(log.path).open("rb")
    with Path(log.path).open("rb") as start:
        head = start.read(6)
    pack = next((name for magic, name in _PACKS.items() if head.startswith(magic)), "")
    if pack == "gz":
        import gzip

        return gzip.open(log.path)
    if pack == "xz":
        import lzma

        return lzma.open(log.path)
    if pack == "bz2":
        import bz2

        return bz2.open(log.path)
    raw = Path(log.path).open("rb")  # noqa: SIM115 - handed to the caller's `with`
    if pack == "zst":
        import zstandard

        return zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
    return raw
