"""A log's bytes in, readings out: one pass, constant memory, any bytes. Lines are counted as an editor counts them.

Two ways with one answer. `read` and `feed` go line by line: what a shape gives is planned once, and in *closed* formats, which name all that
counts, only lines that hold one of their literal anchors are looked at. `batches` lays out whole blocks and reads all lines of one shape at
once (`gather.py`); it is worth its start on large logs. In both a part between carriage returns is a line of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gyrecheck.model.events import Reading
from gyrecheck.model.rows import Batch
from gyrecheck.stream.clock import Clock
from gyrecheck.stream.cover import cover, sample_of
from gyrecheck.stream.layouts import Layouts
from gyrecheck.stream.probe import Said
from gyrecheck.stream.reader import FormatReader
from gyrecheck.stream.strip import ANSI, REPEATED, masked, segments, side_of, undress

if TYPE_CHECKING:
    from gyrecheck.stream.block import Ints
    from gyrecheck.stream.gather import Gather

LONGEST = 1 << 23
"""A line longer than this is passed over and noted."""
_KEEP = 400
_SHAPES = 20000
_AGAIN, _SMALL = 1 << 27, 1 << 16
_HELD = 1 << 19
"""Bytes of lines found in a log with few of them that are read together."""
_squeezed = re.compile(rb"\d+").sub


@dataclass(slots=True)
class Seen:
    """What the scan met besides readings."""

    lines: int = 0
    size: int = 0
    nul_bytes: int = 0
    nul_at: int = 0
    too_long: list[int] = field(default_factory=list)
    cut_last_line: bool = False

    def followed_by(self, later: Seen) -> Seen:
        """What both met, where `later` went on with the same log's line numbers."""
        return Seen(
            later.lines, self.size + later.size, self.nul_bytes + later.nul_bytes, self.nul_at or later.nul_at,
            self.too_long + later.too_long, later.cut_last_line,
        )  # fmt: skip


class Scan:
    """One log, read through one format."""

    def __init__(self, path: str, reader: FormatReader, *, first_line: int = 1, offset: int = 0) -> None:
        self.path, self.reader = path, reader
        self.seen = Seen()
        self._line = first_line
        self._offset = self._look_again = offset
        self._side = reader.side or side_of(re.split(rb"[/\\]", path.encode("utf-8", "surrogateescape"))[-1])
        self._worthy: dict[bytes, bool] = {}
        self._clock = Clock()
        self._few, self._cover = True, reader.anchors
        self._layouts = Layouts(self._slow, reader.caution)

    def read(self, blocks: Iterable[bytes]) -> Iterator[list[Reading]]:
        """Readings, a list a block; the last line is taken only if a newline ends it (a cut number is no number)."""
        for lines, ended in self._cut(blocks):
            yield self._piece(lines, ended=ended)

    def feed(self, lines: bytes) -> list[Reading]:
        """Readings of whole lines that a follower hands over; each call goes on where the last one ended."""
        self.seen.size += len(lines)
        found = self._piece(lines, ended=True)
        self.seen.lines = self._line - 1
        return found

    def batches(self, blocks: Iterable[bytes]) -> Iterator[Batch]:
        """The same readings, as columns wherever shapes are known."""
        from gyrecheck.stream.gather import Gather

        gather = Gather(self.path, self.reader, self._layouts, self._one, self._clock)
        held = _Held()
        for lines, ended in self._cut(blocks):
            if not ended or b"\0" in lines or self.reader.header is not None or not (self.reader.open or self.reader.shapely):
                yield from held.batches(gather)
                yield _one_by_one(self._piece(lines, ended=ended))
            elif self.reader.open or not self._sparse(lines):
                yield from held.batches(gather)
                yield self._dense(lines, gather)
            else:
                held.add(lines, self._cover, self._line, self._offset)
                self._line, self._offset = self._line + held.lines, self._offset + len(lines)
                if held.size > _HELD:
                    yield from held.batches(gather)
        yield from held.batches(gather)

    def _dense(self, lines: bytes, gather: Gather) -> Batch:
        """A block of which every line is looked at."""
        import numpy as np

        ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == 10)
        offsets = np.concatenate(([0], ends[:-1] + 1)) + self._offset
        batch = gather.batch(lines, np.arange(self._line, self._line + len(ends)), offsets)
        if batch is None:  # a table begins here
            return _one_by_one(self._piece(lines, ended=True))
        self._line, self._offset = self._line + len(ends), self._offset + len(lines)
        return batch

    def _cut(self, blocks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
        """Whole lines, and at the end what no newline ends."""
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
            yield carry + block[: cut + 1], True
            carry = block[cut + 1 :]
        if carry.strip():
            yield carry, False
        self.seen.lines = self._line - 1 + bool(carry or skipping)

    def _piece(self, lines: bytes, *, ended: bool) -> list[Reading]:
        """Readings of whole lines, or of what stands after the last newline."""
        if not ended:
            return self._tail(lines)
        if b"\0" in lines:
            self.seen.nul_bytes += lines.count(b"\0")
            self.seen.nul_at = self.seen.nul_at or self._line + lines.count(b"\n", 0, lines.find(b"\0"))
        if not self.reader.open and self._sparse(lines):
            return self._hits(lines)
        return self._lines(lines[:-1].split(b"\n"))

    def _sparse(self, lines: bytes) -> bool:
        """Whether few lines are worth a look, so that searching beats looking at each; looked at anew as the log goes on."""
        if self._offset >= self._look_again:
            self._look_again = self._offset + _AGAIN
            sample = sample_of(lines)
            count = sum(any(anchor in line for anchor in self.reader.anchors) for line in sample.split(b"\n"))
            self._few = count * 5 < sample.count(b"\n")
            self._cover = cover(self.reader.anchors, lines) if self._few and len(lines) > _SMALL else self.reader.anchors
        return self._few

    def _tail(self, carry: bytes) -> list[Reading]:
        """The last line without its newline: taken when it is visibly whole, else only noted."""
        body = carry.rstrip(b"\r \t")
        whole = body[-1:] in b"}])|>" or not body[-1:].isdigit()
        self.seen.cut_last_line = not whole
        return self._lines([carry]) if whole or self.reader.whole_last_line else []

    def _lines(self, lines: list[bytes]) -> list[Reading]:
        out: list[Reading] = []
        for line in lines:
            self._line_at(line, self._line, self._offset, out)
            self._line += 1
            self._offset += len(line) + 1
        return out

    def _hits(self, block: bytes) -> list[Reading]:
        """Lines that hold a part of an anchor."""
        starts: dict[int, int] = {}
        find, rfind = block.find, block.rfind
        for part in self._cover:
            at = find(part)
            while at >= 0:
                end = find(b"\n", at)
                starts[rfind(b"\n", 0, at) + 1] = end
                at = find(part, end)
        line, last = self._line, 0
        out: list[Reading] = []
        for start in sorted(starts):
            line += block.count(b"\n", last, start)
            last = start
            self._line_at(block[start : starts[start]], line, self._offset + start, out)
        self._line = line + block.count(b"\n", last)
        self._offset += len(block)
        return out

    def _line_at(self, line: bytes, number: int, offset: int, out: list[Reading]) -> None:
        """Add what the line's segments say."""
        for segment in segments(line) if b"\r" in line or b"\0" in line else (line,):
            shape = _squeezed(b"0", masked(segment) if b'"' in segment else segment)
            worth = self._worthy.get(shape)
            first = worth is None
            if worth is None:
                worth = self._worth(segment)
            reading = self._one(segment, number, offset) if worth else None
            if reading is not None:
                out.append(reading if reading.time is None else reading._replace(time=self._clock.one(reading.time)))
            if first and (self.reader.open or self.reader.shapely):
                if len(self._worthy) > _SHAPES:
                    self._worthy.clear()  # what a shape's first line does not give it never gives, until a table's header says what columns mean
                self._worthy[shape] = worth and (reading is not None or not self.reader.open or self.reader.header is not None)

    def _worth(self, segment: bytes) -> bool:
        """Whether a segment of this shape could give anything."""
        return self.reader.worth_a_look(segment) if self.reader.open else any(anchor in segment for anchor in self.reader.anchors)

    def _one(self, segment: bytes, line: int, offset: int) -> Reading | None:
        """What one segment says, times of day as they stand."""
        clean = ANSI.sub(b"", segment) if b"\x1b" in segment or b"^[[" in segment else segment
        clean = masked(clean) if b'"' in clean else clean
        repeated = 0
        if b"[repeated " in clean and (again := REPEATED.search(clean)):
            repeated = int(again[1])
            said = self._slow(clean)
        else:
            said = self._layouts.read(clean) if self.reader.header is None else self._slow(clean)
        values, marks, time, pid, host, side = said
        if not (values or marks or repeated):
            return None
        return Reading(self.path, line, offset, segment[:_KEEP], values, marks, time, pid, host, side, repeated)

    def _slow(self, segment: bytes) -> Said:
        """The long way: every prefix, every rule."""
        dress = undress(segment)
        values, marks, side = self.reader.read(dress.body)
        return values, marks, dress.time, dress.pid, dress.host, dress.side or self._side or side

    @property
    def divisible(self) -> bool:
        """Whether what was read so far says the same to whoever reads only the rest: no header of a table, no times of day."""
        return self.reader.header is None and not self._clock.moved


class _Held:
    """Lines found in a log with few of them, until there are enough to be read together."""

    def __init__(self) -> None:
        self._texts: list[bytes] = []
        self._numbers: list[Ints] = []
        self._offsets: list[Ints] = []
        self.size = self.lines = 0
        """Bytes held; lines of the block that was added last."""

    def add(self, block: bytes, parts: tuple[bytes, ...], line: int, offset: int) -> None:
        """Keep the lines of a block that hold one of the parts."""
        from gyrecheck.stream.find_lines import lines_with

        text, lines, starts, self.lines = lines_with(block, parts)
        if text:
            self._texts.append(text)
            self._numbers.append(lines + line)
            self._offsets.append(starts + offset)
            self.size += len(text)

    def batches(self, gather: Gather) -> Iterator[Batch]:
        """What the lines say; none are held any more."""
        import numpy as np

        if self._texts:
            batch = gather.batch(b"".join(self._texts), np.concatenate(self._numbers), np.concatenate(self._offsets))
            self._texts, self._numbers, self._offsets, self.size = [], [], [], 0
            yield batch or Batch()


def _one_by_one(readings: list[Reading]) -> Batch:
    return Batch(len(readings), [], list(enumerate(readings)))
