"""Rare facts of a process, one JSON line each, one `O_APPEND` write a line: what was written survives any death of the process.

One file per process beside its shard. Nothing is raised; a line that cannot be written is counted as lost.
"""

from __future__ import annotations

import os
import time

from gyrecheck.model import shard_layout as layout

TYPE_CHECKING = False  # importing `typing` costs more than this package; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Callable

    from gyrecheck.hook.shard import Shard

    Value = str | int | float | bool | None | list[str] | list[int] | list[list[int]]

LIMIT = 20_000
"""Lines one process may write: a defect that repeats for days must not fill a disk."""
LINE = 4000
"""Bytes of one line, below PIPE_BUF."""


class EventFile:
    """The event lines of one process; opened on the first."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._fd = -1
        self._encode: Callable[[object], str] | None = None

    def renew(self) -> None:
        """In a child after fork: the parent's file is let go."""
        if self._fd >= 0:
            try:
                os.close(self._fd)
            except OSError:
                pass
        self._fd = -1

    def write(self, kind: str, **fields: Value) -> None:
        """One line `{"k": kind, "at": seconds since the epoch, ...}`; never raises."""
        cells = self._shard.cells
        try:
            if not self._shard.recording or cells["events"][0] >= LIMIT:
                cells["events_lost"][0] += 1
                return
            if self._encode is None:
                import json  # only programs that have something to tell pay for it

                self._encode = json.JSONEncoder(separators=(",", ":"), default=str).encode
            line = self._encode({"k": kind, "at": round(time.time(), 6), **fields}).encode()
            if len(line) > LINE:
                line = self._encode({"k": kind, "at": round(time.time(), 6), "cut": True}).encode()
            if self._fd < 0:
                path = os.path.join(self._shard.folder, self._shard.name + layout.EVENTS_SUFFIX)
                self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o644)
            os.write(self._fd, line + b"\n")
            cells["events"][0] += 1
        except Exception:
            cells["events_lost"][0] += 1
