"""A log's bytes in, readings out: one pass, constant memory, any bytes. Lines are counted as an editor counts them.

Two ways through a block. *Closed* formats name all that counts: their literal anchors are searched with `bytes.find` and only lines
with a hit are looked at. *Open* ones (generic names) look at every line, but a line's shape (its text without digits) is planned
only once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gyrecheck.model.events import Reading
from gyrecheck.stream.layouts import Layouts
from gyrecheck.stream.probe import Said
from gyrecheck.stream.reader import FormatReader
from gyrecheck.stream.strip import ANSI, REPEATED, segments, side_of, undress

_DIGITS = b"0123456789."
LONGEST = 1 << 23
"""A line longer than this is passed over and noted."""
_KEEP = 400
_SHAPES = 20000
_TODAY = 86400.0


@dataclass(slots=True)
class Seen:
    """What the scan met besides readings."""

    lines: int = 0
    size: int = 0
    nul_bytes: int = 0
    nul_at: int = 0
    too_long: list[int] = field(default_factory=list)
    cut_last_line: bool = False
    shapes: dict[bytes, int] = field(default_factory=dict)


class Scan:
    """One log, read through one format."""

    def __init__(self, path: str, reader: FormatReader, *, first_line: int = 1) -> None:
        self.path, self.reader = path, reader
        self.seen = Seen()
        self._line = first_line
        self._offset = 0
        self._side = reader.side or side_of(re.split(rb"[/\\]", path.encode())[-1])
        self._plans: dict[bytes, bool] = {}
        self._day = 0.0
        self._last_clock: float | None = None
        self._layouts = Layouts(self._slow, reader.caution)

    def read(self, blocks: Iterable[bytes]) -> Iterator[list[Reading]]:
        """Readings, a list a block; the last line is taken only if a newline ends it (a cut number is no number)."""
        carry = b""
        skipping = False
        for block in blocks:
            self.seen.size += len(block)
            if skipping:
                cut = block.find(b"\n")
                if cut < 0:
                    self._offset += len(block)
                    continue
                self._offset += cut + 1
                self._line += 1
                block = block[cut + 1 :]  # noqa: PLW2901
                skipping = False
            cut = block.rfind(b"\n")
            if cut < 0:
                carry += block
                if len(carry) > LONGEST:
                    self.seen.too_long.append(self._line)
                    self._offset += len(carry)
                    carry, skipping = b"", True
                continue
            yield self._block(carry + block[: cut + 1])
            carry = block[cut + 1 :]
        if carry.strip():
            yield self._tail(carry)
        self.seen.lines = self._line - 1 + bool(carry or skipping)

    def feed(self, lines: bytes) -> list[Reading]:
        """Readings of whole lines that a follower hands over; each call goes on where the last one ended."""
        self.seen.size += len(lines)
        found = self._block(lines)
        self.seen.lines = self._line - 1
        return found

    def _tail(self, carry: bytes) -> list[Reading]:
        """The last line without its newline: taken when it is visibly whole, else only noted."""
        body = carry.rstrip(b"\r \t")
        whole = body[-1:] in b"}])|>" or not body[-1:].isdigit()
        self.seen.cut_last_line = not whole
        return self._lines([carry]) if whole or self.reader.whole_last_line else []

    def _block(self, block: bytes) -> list[Reading]:
        if b"\0" in block:
            self.seen.nul_bytes += block.count(b"\0")
            self.seen.nul_at = self.seen.nul_at or self._line + block.count(b"\n", 0, block.find(b"\0"))
        if self.reader.open:
            return self._lines(block[:-1].split(b"\n"))
        return self._hits(block)

    def _lines(self, lines: list[bytes]) -> list[Reading]:
        out: list[Reading] = []
        plans, reader = self._plans, self.reader
        number, offset = self._line, self._offset
        for line in lines:
            shape = line.translate(None, _DIGITS)
            worth = plans.get(shape)
            if worth is None:
                worth = reader.worth_a_look(line)
                if len(plans) > _SHAPES:
                    plans.clear()
                plans[shape] = worth
            if worth:
                before = len(out)
                self._read(line, number, offset, out)
                if len(out) == before and reader.header is None:
                    plans[shape] = False  # what a shape does not give once it never gives
            number += 1
            offset += len(line) + 1
        self._line, self._offset = number, offset
        return out

    def _hits(self, block: bytes) -> list[Reading]:
        starts: set[int] = set()
        for anchor in self.reader.anchors:
            at = block.find(anchor)
            while at >= 0:
                starts.add(block.rfind(b"\n", 0, at) + 1)
                at = block.find(anchor, block.find(b"\n", at))
        out: list[Reading] = []
        line, last = self._line, 0
        for start in sorted(starts):
            line += block.count(b"\n", last, start)
            last = start
            end = block.find(b"\n", start)
            self._read(block[start:end], line, self._offset + start, out)
        self._line = line + block.count(b"\n", last)
        self._offset += len(block)
        return out

    def _read(self, raw: bytes, line: int, offset: int, out: list[Reading]) -> None:
        for segment in segments(raw) if b"\r" in raw or b"\0" in raw else (raw,):
            clean = ANSI.sub(b"", segment) if b"\x1b" in segment or b"^[[" in segment else segment
            repeated = 0
            if b"[repeated " in clean and (again := REPEATED.search(clean)):
                repeated = int(again[1])
                said = self._slow(clean)
            elif self.reader.header is None:
                said = self._layouts.read(clean)
            else:
                said = self._slow(clean)
            values, marks, time, pid, host, side = said
            if values or marks or repeated:
                if time is not None:
                    time = self._clock(time)
                out.append(Reading(self.path, line, offset, segment[:_KEEP], values, marks, time, pid, host, side, repeated))

    def _slow(self, segment: bytes) -> Said:
        """The long way: every prefix, every rule."""
        dress = undress(segment)
        values, marks, side = self.reader.read(dress.body)
        return values, marks, dress.time, dress.pid, dress.host, dress.side or self._side or side

    def _clock(self, time: float) -> float:
        """Time of day carried over midnight. A line that says nothing does not move it."""
        if time > _TODAY * 400:
            return time
        if self._last_clock is not None and time < self._last_clock - _TODAY / 2:
            self._day += _TODAY
        self._last_clock = time
        return time + self._day
