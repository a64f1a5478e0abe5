"""A log's bytes in, readings out: one pass, constant memory, any bytes. Lines are counted as an editor counts them.

Two ways through a block. *Closed* formats name all that counts: their literal anchors are searched with `bytes.find` and only lines
with a hit are looked at. *Open* ones (generic names) look at every line, but a line's shape (its text without digits) is planned
only once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from gyrecheck.model.events import Reading
from gyrecheck.model.rows import Batch
from gyrecheck.stream.cover import cover, sample_of
from gyrecheck.stream.gather import Row, columns
from gyrecheck.stream.layouts import DIGITS, Layout, Layouts
from gyrecheck.stream.probe import Said
from gyrecheck.stream.reader import FormatReader
from gyrecheck.stream.strip import ANSI, REPEATED, segments, side_of, undress

LONGEST = 1 << 23
"""A line longer than this is passed over and noted."""
_KEEP = 400
_SHAPES = 20000
_TODAY = 86400.0

Take = Callable[[bytes, int, int, bytes], bool]
"""Takes a line, its number, its offset and its shape; says whether it gave anything."""
_AGAIN, _SMALL = 1 << 27, 1 << 16


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
        self._side = reader.side or side_of(re.split(rb"[/\\]", path.encode())[-1])
        self._plans: dict[bytes, bool] = {}
        self._day = 0.0
        self._last_clock: float | None = None
        self._few, self._cover = True, reader.anchors
        self._found: Callable[[list[Reading]], None] = list[Reading]().extend
        self._batch = Batch()
        self._rows: dict[Layout, list[Row]] = {}
        self._layouts = Layouts(self._slow, reader.caution)

    def read(self, blocks: Iterable[bytes]) -> Iterator[list[Reading]]:
        """Readings, a list a block; the last line is taken only if a newline ends it (a cut number is no number)."""
        for lines, ended in self._cut(blocks):
            out: list[Reading] = []
            self._found = out.extend
            self._piece(lines, self._read, ended=ended)
            yield out

    def batches(self, blocks: Iterable[bytes]) -> Iterator[Batch]:
        """The same readings, as columns wherever shapes are known."""
        for lines, ended in self._cut(blocks):
            batch, rows = Batch(), dict[Layout, list[Row]]()
            self._batch, self._rows = batch, rows
            self._found = self._one_by_one
            self._piece(lines, self._gather, ended=ended)
            for layout, own in rows.items():
                columns(self.path, layout, own, _KEEP, batch, self._readings)
            yield batch

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

    def feed(self, lines: bytes) -> list[Reading]:
        """Readings of whole lines that a follower hands over; each call goes on where the last one ended."""
        self.seen.size += len(lines)
        out: list[Reading] = []
        self._found = out.extend
        self._piece(lines, self._read, ended=True)
        self.seen.lines = self._line - 1
        return out

    def _piece(self, lines: bytes, take: Take, *, ended: bool) -> None:
        if not ended:
            self._tail(lines, take)
            return
        if b"\0" in lines:
            self.seen.nul_bytes += lines.count(b"\0")
            self.seen.nul_at = self.seen.nul_at or self._line + lines.count(b"\n", 0, lines.find(b"\0"))
        if not self.reader.open and self._sparse(lines):
            self._hits(lines, take)
        else:
            self._lines(lines[:-1].split(b"\n"), take)

    def _sparse(self, lines: bytes) -> bool:
        """Whether few lines are worth a look, so that searching beats looking at each; looked at anew as the log goes on."""
        if self._offset >= self._look_again:
            self._look_again = self._offset + _AGAIN
            sample = sample_of(lines)
            count = sum(any(anchor in line for anchor in self.reader.anchors) for line in sample.split(b"\n"))
            self._few = count * 5 < sample.count(b"\n")
            self._cover = cover(self.reader.anchors, lines) if self._few and len(lines) > _SMALL else self.reader.anchors
        return self._few

    def _tail(self, carry: bytes, take: Take) -> None:
        """The last line without its newline: taken when it is visibly whole, else only noted."""
        body = carry.rstrip(b"\r \t")
        whole = body[-1:] in b"}])|>" or not body[-1:].isdigit()
        self.seen.cut_last_line = not whole
        if whole or self.reader.whole_last_line:
            self._lines([carry], take)

    def _lines(self, lines: list[bytes], take: Take) -> None:
        plans, reader = self._plans, self.reader
        number, offset = self._line, self._offset
        for line in lines:
            shape = line.translate(None, DIGITS)
            worth = plans.get(shape)
            if worth is None:
                worth = self._worth(line, shape)
            if worth and not take(line, number, offset, shape) and reader.open and reader.header is None:
                plans[shape] = False  # what a shape does not give once it never gives
            number += 1
            offset += len(line) + 1
        self._line, self._offset = number, offset

    def _worth(self, line: bytes, shape: bytes) -> bool:
        """Whether a line of this shape could give anything."""
        plans, reader = self._plans, self.reader
        if not reader.open and not reader.shapely:
            return any(anchor in line for anchor in reader.anchors)
        worth = reader.worth_a_look(line) if reader.open else any(anchor in line for anchor in reader.anchors)
        if len(plans) > _SHAPES:
            plans.clear()
        plans[shape] = worth
        return worth

    def _hits(self, block: bytes, take: Take) -> None:
        starts: dict[int, int] = {}
        find, rfind = block.find, block.rfind
        for part in self._cover:
            at = find(part)
            while at >= 0:
                end = find(b"\n", at)
                starts[rfind(b"\n", 0, at) + 1] = end
                at = find(part, end)
        line, last, offset, plans = self._line, 0, self._offset, self._plans
        for start in sorted(starts):
            raw = block[start : starts[start]]
            shape = raw.translate(None, DIGITS)
            worth = plans.get(shape)
            if self._worth(raw, shape) if worth is None else worth:
                line += block.count(b"\n", last, start)
                last = start
                take(raw, line, offset + start, shape)
        self._line = line + block.count(b"\n", last)
        self._offset = offset + len(block)

    def _gather(self, raw: bytes, line: int, offset: int, shape: bytes) -> bool:
        """Keep a line of a known shape for its column; read any other at once."""
        clean = raw
        if b"\r" in raw or b"\0" in raw:
            parts = segments(raw)
            if len(parts) > 1:
                gave = [self._gather(part, line, offset, part.translate(None, DIGITS)) for part in parts]
                return any(gave)
            raw = clean = parts[0] if parts else b""
            shape = b""
        if b"\x1b" in clean or b"^[[" in clean:
            clean = ANSI.sub(b"", clean)
            shape = b""
        known = self._layouts.known(clean, shape or clean.translate(None, DIGITS)) if self.reader.header is None else None
        if known is None:
            return self._read(raw, line, offset, shape)
        layout, groups = known
        if layout.silent:
            return False
        batch = self._batch
        row = (batch.count, line, offset, raw, groups)
        batch.count += 1
        rows = self._rows.get(layout)
        if rows is None:
            self._rows[layout] = [row]
        else:
            rows.append(row)
        return True

    def _one_by_one(self, readings: list[Reading]) -> None:
        batch = self._batch
        batch.others.extend(enumerate(readings, batch.count))
        batch.count += len(readings)

    def _read(self, raw: bytes, line: int, offset: int, _shape: bytes = b"") -> bool:
        found = self._readings(raw, line, offset)
        if found:
            self._found(found)
        return bool(found)

    def _readings(self, raw: bytes, line: int, offset: int) -> list[Reading]:
        """What one line says: one reading, or one for each part that carriage returns glued together."""
        out: list[Reading] = []
        for segment in segments(raw) if b"\r" in raw or b"\0" in raw else (raw,):
            clean = ANSI.sub(b"", segment) if b"\x1b" in segment or b"^[[" in segment else segment
            repeated = 0
            if b"[repeated " in clean and (again := REPEATED.search(clean)):
                repeated = int(again[1])
                said = self._slow(clean)
            else:
                said = self._layouts.read(clean) if self.reader.header is None else self._slow(clean)
            values, marks, time, pid, host, side = said
            if values or marks or repeated:
                if time is not None:
                    time = self._clock(time)
                out.append(Reading(self.path, line, offset, segment[:_KEEP], values, marks, time, pid, host, side, repeated))
        return out

    def _slow(self, segment: bytes) -> Said:
        """The long way: every prefix, every rule."""
        dress = undress(segment)
        values, marks, side = self.reader.read(dress.body)
        return values, marks, dress.time, dress.pid, dress.host, dress.side or self._side or side

    @property
    def divisible(self) -> bool:
        """Whether what was read so far says the same to whoever reads only the rest: no header of a table, no times of day."""
        return self.reader.header is None and self._last_clock is None

    def _clock(self, time: float) -> float:
        """Time of day carried over midnight. A line that says nothing does not move it."""
        if time > _TODAY * 400:
            return time
        if self._last_clock is not None and time < self._last_clock - _TODAY / 2:
            self._day += _TODAY
        self._last_clock = time
        return time + self._day
