"""The run folder's primitives: whole files, whole lines, locks that die with their owner, and waiting for a full disk.

`producer` and `consumer` build the exactly-once hand-over on them.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reference_loop.segment import SegmentName

READY, TAKEN, SETTLED, DAMAGED = "ready", "taken", "settled", "damaged"
POLL_S = 0.002
"""How often a waiting side looks again."""


class FolderInUseError(Exception):
    """Another live program already has this place in the run folder."""


class Presence:
    """A lock held for as long as a program lives; the kernel lets go of it at any kind of death."""

    def __init__(self, folder: Path, name: str) -> None:
        path = folder / "locks" / f"{name}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            owner = self._file.read().strip() or "unknown"
            self._file.close()
            raise FolderInUseError(f"{folder} already has a live {name} (pid {owner})") from None
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def close(self) -> None:
        """Let go."""
        self._file.close()


def alive(folder: Path, side: str) -> bool:
    """Whether any program of `side` (`sampler` or `trainer`) holds its lock."""
    for path in (folder / "locks").glob(f"{side}*.lock"):
        with path.open("a", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return True
    return False


def replace_with(path: Path, content: bytes, *, fsync: bool) -> None:
    """Put `content` at `path` whole or not at all."""
    temporary = path.with_name(f".{path.name}.tmp")
    write_whole(temporary, content, fsync=fsync)
    temporary.replace(path)
    if fsync:
        sync_folder(path.parent)


def write_whole(path: Path, content: bytes, *, fsync: bool) -> None:
    """Write a file in one go; a failed one is removed."""
    try:
        with path.open("wb", buffering=0) as file:
            left = memoryview(content)
            while left:
                left = left[file.write(left) :]
            if fsync:
                os.fsync(file.fileno())
    except OSError:
        path.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` survive power loss."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Lines:
    """A file of JSON lines that only grows, by whole lines: a torn one is cut off again."""

    def __init__(self, path: Path, *, fsync: bool) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._fsync = fsync
        self._descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        content = path.read_bytes()
        self._size = content.rfind(b"\n") + 1
        os.ftruncate(self._descriptor, self._size)
        self.found: list[dict[str, Any]] = [json.loads(line) for line in content[: self._size].splitlines()]
        """What stood in the file when it was opened."""

    def append(self, *documents: dict[str, Any]) -> None:
        """Append one line a document."""
        content = b"".join(json.dumps(document, separators=(",", ":")).encode() + b"\n" for document in documents)
        try:
            written = os.write(self._descriptor, content)
            if self._fsync:
                os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, self._size)
            raise
        if written < len(content):
            os.ftruncate(self._descriptor, self._size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        self._size += len(content)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def with_room(action: Callable[[], None], *, patience: float, note: Callable[[OSError], None]) -> None:
    """Do `action`, again and again while the disk is full, for at most `patience` seconds; every action here may be repeated.

    Raises:
        OSError: another error, or still no room.
    """
    deadline = time.monotonic() + patience
    noted = False
    while True:
        try:
            action()
        except OSError as error:  # noqa: PERF203 - waiting for room is what the loop is for
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            if not noted:
                note(error)
                noted = True
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.1)
        else:
            return


def segments(folder: Path) -> list[SegmentName]:
    """Published segments in one folder, oldest first; names that are no segment's are left alone."""
    try:
        names = [SegmentName.parse(name) for name in os.listdir(folder)]  # noqa: PTH208 - names are all that is needed
    except FileNotFoundError:
        return []
    return sorted((name for name in names if name is not None), key=lambda name: (name.seq, name.producer))
