"""Follows one growing file by polling: whole lines only, through rotation, truncation and inode reuse; read-only, never blocks on a writer.

Polling is the base because stores into a mapped file raise no inotify event and network file systems give none. What may have been
lost is said as a `Change` of kind `gap`, never guessed. Sources of the rules: `facts` on tail defects (old descriptor read to its end
twice, identity = device, inode and fingerprint, size below offset = truncated).
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from typing import Literal

from gyrecheck.stream.follow_packed import Sibling, head_and_size, siblings, unpacked

READ_SIZE = 1 << 20
POLL_BYTES = 16 << 20
"""At most this much of one file a poll, so that a huge backlog does not freeze the picture."""
HEAD, TAIL = 256, 64


@dataclass(frozen=True, slots=True)
class Lines:
    """Whole lines of one file. `data` ends with a newline; `first_line` (1-based) and `offset` (bytes) count over rotations."""

    path: str
    data: bytes
    first_line: int
    offset: int


@dataclass(frozen=True, slots=True)
class Change:
    """Something that happened to a file. A `gap` means that lines may be missing: no verdict may then say `holds`."""

    path: str
    kind: Literal["appeared", "rotated", "truncated", "gap", "gone", "unreadable"]
    message: str
    line: int = 0


@dataclass(slots=True)
class _Open:
    descriptor: int
    identity: tuple[int, int]
    offset: int = 0
    head: bytes = b""
    tail: bytes = b""


@dataclass(slots=True)
class FollowedFile:
    """One path, whatever file stands there. `poll` returns what is new, in order."""

    path: str
    _open: _Open | None = None
    _held: bytes = b""
    _lines: int = 0
    _bytes: int = 0
    _gone: bool = False
    _seen: set[tuple[int, int]] = field(default_factory=set)
    _read: dict[bytes, set[int]] = field(default_factory=dict)
    """First bytes and lengths of the files that were read to their end: a packed copy of one is known by them."""
    history: bool = False
    """Whether rotated siblings that are there at the first look are read before the file: they are the same log's beginning."""
    behind: bool = False
    """True when the last poll stopped at its limit and more is there."""

    def poll(self) -> list[Lines | Change]:
        """What came since the last poll; an unreadable or absent file is a `Change`, once."""
        out: list[Lines | Change] = []
        self.behind = False
        try:
            return self._poll(out)
        except OSError as error:
            return [*out, *self._unreadable(error)]

    def _poll(self, out: list[Lines | Change]) -> list[Lines | Change]:
        try:
            seen = os.stat(self.path)
        except FileNotFoundError:
            if self._open is not None:
                self._drain(out)
                if not self._gone:
                    out.append(Change(self.path, "gone", "the file was removed or renamed", self._lines))
            self._gone = True
            return out
        if stat.S_ISDIR(seen.st_mode):
            return out
        identity = (seen.st_dev, seen.st_ino)
        if self._open is not None and identity != self._open.identity:
            self._rotate(out)
        elif self._open is not None and self._replaced(seen.st_size):
            self._truncated(out)
        if self._open is None:
            self._begin(identity, out)
        self._gone = False
        self._drain(out)
        return out

    def close(self) -> bytes:
        """Stop following; returns the bytes of a last line that never got its newline."""
        if self._open is not None:
            os.close(self._open.descriptor)
            self._open = None
        held, self._held = self._held, b""
        return held

    def _begin(self, identity: tuple[int, int], out: list[Lines | Change]) -> None:
        descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        if self._lines or self._gone or self._seen:
            out.append(Change(self.path, "appeared", "a new file stands here", self._lines))
        elif self.history:
            self._read_siblings(siblings(self.path), out)
        else:
            self._seen |= {sibling.identity for sibling in siblings(self.path) if sibling.packed}
        self._open = _Open(descriptor, identity)
        self._seen.add(identity)

    def _drain(self, out: list[Lines | Change], limit: int = POLL_BYTES) -> None:
        current = self._open
        if current is None:
            return
        start = current.offset
        while current.offset - start < limit:
            block = os.pread(current.descriptor, READ_SIZE, current.offset)
            if not block:
                return
            if len(current.head) < HEAD:
                current.head += block[: HEAD - len(current.head)]
            current.tail = (current.tail + block[-TAIL:])[-TAIL:]
            current.offset += len(block)
            self.emit(block, out)
        self.behind = True

    def emit(self, block: bytes, out: list[Lines | Change]) -> None:
        """Take bytes that follow the last ones; whole lines come out."""
        cut = block.rfind(b"\n") + 1
        if not cut:
            self._held += block
            return
        data = self._held + block[:cut]
        self._held = block[cut:]
        out.append(Lines(self.path, data, self._lines + 1, self._bytes))
        self._lines += data.count(b"\n")
        self._bytes += len(data)

    def _rotate(self, out: list[Lines | Change]) -> None:
        """The name points elsewhere: the old file to its end, twice; then files that came and went in between; then the new one."""
        old = self._open
        if old is None:
            return
        for _ in range(2):
            self._drain(out, limit=1 << 62)
        self._finished(old, out)
        out.append(Change(self.path, "rotated", "the file was rotated by rename", self._lines))
        self._read_siblings(self._younger(old.identity), out)

    def _finished(self, old: _Open, out: list[Lines | Change]) -> None:
        os.close(old.descriptor)
        self._open = None
        self._read.setdefault(old.head, set()).add(old.offset)
        self.end_line(out)

    def _read_siblings(self, found: list[Sibling], out: list[Lines | Change]) -> None:
        for sibling in found:
            try:
                if sibling.packed:
                    self._read_packed(sibling, out)
                else:
                    self._open = _Open(os.open(sibling.path, os.O_RDONLY | os.O_CLOEXEC), sibling.identity)
            except OSError as error:
                what = f"{sibling.path} could not be read ({error.strerror or error}): lines may be missing"
                out.append(Change(self.path, "gap", what, self._lines))
                continue
            self._seen.add(sibling.identity)
            if self._open is not None:
                self._drain(out, limit=1 << 62)
                self._finished(self._open, out)

    def _read_packed(self, sibling: Sibling, out: list[Lines | Change]) -> None:
        """A packed sibling that is new: the copy of a file that was read, known by its first bytes, or one that came and went unseen."""
        head, size = head_and_size(sibling.path, HEAD)
        if head in self._read:
            if size not in self._read[head]:
                what = f"{sibling.path} has {size:,} bytes, other than what was read of it: lines may be missing"
                out.append(Change(self.path, "gap", what, self._lines))
            return
        for block in unpacked(sibling.path):
            self.emit(block, out)
        self._read.setdefault(head, set()).add(size)
        self.end_line(out)

    def _younger(self, old: tuple[int, int]) -> list[Sibling]:
        """Rotated siblings younger than the file just finished and never read, oldest first; all unread ones where it is not found."""
        found = siblings(self.path)
        at = next((i for i, sibling in enumerate(found) if sibling.identity == old), None)
        return [sibling for sibling in (found if at is None else found[at + 1 :]) if sibling.identity not in self._seen]

    def _replaced(self, size: int) -> bool:
        current = self._open
        if current is None:
            return False
        if size < current.offset:
            return True
        head = os.pread(current.descriptor, len(current.head), 0)
        tail = os.pread(current.descriptor, len(current.tail), current.offset - len(current.tail))
        return head != current.head or tail != current.tail

    def _truncated(self, out: list[Lines | Change]) -> None:
        current = self._open
        if current is None:
            return
        message = "the file was truncated in place: lines written between the last look and the truncation are unknown"
        if self._held:
            self._held = b""
            message += "; a half line was cut off"
        out.append(Change(self.path, "truncated", "the file starts again", self._lines))
        out.append(Change(self.path, "gap", message, self._lines))
        current.offset, current.head, current.tail = 0, b"", b""

    def end_line(self, out: list[Lines | Change]) -> None:
        """No more bytes come: a last line without its end is one all the same."""
        if self._held:
            held, self._held = self._held, b""
            self.emit(held + b"\n", out)

    def _unreadable(self, error: OSError) -> list[Lines | Change]:
        known, self._gone = self._gone, True
        return [] if known else [Change(self.path, "unreadable", f"cannot be read ({error.strerror or error})", self._lines)]
