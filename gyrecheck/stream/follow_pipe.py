"""Follows standard input or any pipe: whole lines as they come, never waiting for more than is there."""

from __future__ import annotations

import os
import select
import stat
from dataclasses import dataclass, field

from gyrecheck.stream.follow_file import POLL_BYTES, READ_SIZE, Change, Lines

KEEP = 1 << 19
"""Bytes from the beginning that are kept, so that reading can begin again once the format is clear."""


@dataclass(slots=True)
class FollowedPipe:
    """A descriptor under the name `path`. `ended` is true once the writer has closed it; nothing can be lost on the way."""

    descriptor: int
    path: str = "-"
    ended: bool = False
    behind: bool = False
    _held: bytes = b""
    _lines: int = 0
    _bytes: int = 0
    _kept: list[Lines] = field(default_factory=list)
    _again: bool = False

    def poll(self) -> list[Lines | Change]:
        """What is there now; at the end also a last line without its newline."""
        out: list[Lines | Change] = []
        if self._again:
            out += self._kept
            self._again = False
        read = 0
        self.behind = False
        while not self.ended and read < POLL_BYTES and self._ready():
            try:
                block = os.read(self.descriptor, READ_SIZE)
            except OSError as error:
                self.ended = True
                return [*out, Change(self.path, "unreadable", f"cannot be read ({error.strerror or error})", self._lines)]
            read += len(block)
            self.ended = not block
            self._emit(block, out)
        self.behind = read >= POLL_BYTES
        return out

    def rewind(self) -> bool:
        """The next poll begins at the first line again; false when too much has passed to have it still."""
        whole = sum(len(lines.data) for lines in self._kept) == self._bytes
        self._again = whole
        return whole

    def head(self) -> bytes:
        """The lines that are kept, from the first on."""
        return b"".join(lines.data for lines in self._kept)

    def close(self) -> bytes:
        """The descriptor is not ours to close; the bytes of a last line that never got its newline."""
        return self._held

    def _ready(self) -> bool:
        if stat.S_ISREG(os.fstat(self.descriptor).st_mode):
            return True
        return bool(select.select([self.descriptor], [], [], 0)[0])

    def _emit(self, block: bytes, out: list[Lines | Change]) -> None:
        cut = block.rfind(b"\n") + 1
        if not cut:
            self._held += block
            return
        lines = Lines(self.path, self._held + block[:cut], self._lines + 1, self._bytes)
        self._held = block[cut:]
        if self._bytes < KEEP:
            self._kept.append(lines)
        self._lines += lines.data.count(b"\n")
        self._bytes += len(lines.data)
        out.append(lines)
