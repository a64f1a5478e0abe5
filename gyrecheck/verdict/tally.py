"""Readings in, a `Snapshot` out, at any time: exact totals per key and process, thinned histories, constant memory.

A tally only ever adds. Two tallies of the same run join by `absorb`, which is associative; the totals of a key in a process do not
depend on how the lines of other processes lie between its own.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

from gyrecheck.model.events import Event, Key, Reading, reading_of
from gyrecheck.model.snapshot import FileSeen, Mark, Place, ProcessSeen, Series, Snapshot

LIMIT = 32768
"""Readings of one key that are kept before every second one is let go."""
MARK_LIMIT = 2000


class SeriesTally:
    """One key in one process, growing."""

    __slots__ = (
        "count", "falls", "first", "first_reading", "high", "key", "last", "last_order", "last_reading", "lines", "low", "orders", "path",
        "pid", "rises", "side", "stride", "times", "total", "totals", "values",
    )  # fmt: skip

    def __init__(self, key: Key, reading: Reading, side: str) -> None:
        self.key, self.path, self.pid, self.side = key, reading.path, reading.pid, side
        self.count, self.total, self.rises, self.falls = 0, 0.0, 0, 0
        self.first = self.last = 0.0
        self.low, self.high = math.inf, -math.inf
        self.first_reading = self.last_reading = reading
        self.last_order = 0
        self.stride = 1
        self.orders, self.lines = array("q"), array("q")
        self.times, self.values, self.totals = array("d"), array("d"), array("d")

    def add(self, order: int, reading: Reading, value: float) -> None:
        """Count one value."""
        if not self.count:
            self.first = value
        elif value > self.last:
            self.rises += 1
        elif value < self.last:
            self.falls += 1
        self.last = value
        self.total += value
        self.low = min(self.low, value)
        self.high = max(self.high, value)
        self.last_reading, self.last_order = reading, order
        if self.count % self.stride == 0:
            self._keep()
            if len(self.orders) > LIMIT:
                for column in (self.orders, self.lines, self.times, self.values, self.totals):
                    del column[1::2]
                self.stride *= 2
        self.count += 1

    def _keep(self) -> None:
        time = self.last_reading.time
        self.orders.append(self.last_order)
        self.lines.append(self.last_reading.line)
        self.times.append(math.nan if time is None else time)
        self.values.append(self.last)
        self.totals.append(self.total)

    def freeze(self) -> Series:
        """The immutable view; the last reading is always in it."""
        orders, lines = array("q", self.orders), array("q", self.lines)
        times, values, totals = array("d", self.times), array("d", self.values), array("d", self.totals)
        if orders[-1] != self.last_order:
            orders.append(self.last_order)
            lines.append(self.last_reading.line)
            times.append(math.nan if self.last_reading.time is None else self.last_reading.time)
            values.append(self.last)
            totals.append(self.total)
        return Series(
            self.key, self.path, self.pid, self.side, self.count, self.total, self.first, self.last, self.low, self.high, self.rises,
            self.falls, place_of(self.first_reading), place_of(self.last_reading), orders, lines, times, values, totals, self.stride,
        )  # fmt: skip

    def append(self, later: SeriesTally, shift: int) -> None:
        """Continue with what another tally counted afterwards; `shift` is added to its orders."""
        if later.first > self.last:
            self.rises += 1
        elif later.first < self.last:
            self.falls += 1
        self.rises, self.falls = self.rises + later.rises, self.falls + later.falls
        stride = max(self.stride, later.stride)
        for tally in (self, later):
            while tally.stride < stride:
                for column in (tally.orders, tally.lines, tally.times, tally.values, tally.totals):
                    del column[1::2]
                tally.stride *= 2
        self.orders.extend(order + shift for order in later.orders)
        self.lines.extend(later.lines)
        self.times.extend(later.times)
        self.values.extend(later.values)
        self.totals.extend(total + self.total for total in later.totals)
        self.count, self.total = self.count + later.count, self.total + later.total
        self.low, self.high = min(self.low, later.low), max(self.high, later.high)
        self.last, self.last_reading, self.last_order = later.last, later.last_reading, later.last_order + shift


@dataclass(slots=True)
class _Process:
    pid: int
    host: str
    path: str
    sides: set[str] = field(default_factory=set)
    readings: int = 0
    first_time: float | None = None
    last_time: float | None = None


class Tally:
    """A run's readings, counted."""

    def __init__(self, order: int = 0) -> None:
        """`order` is the place before the first reading, for a tally whose readings follow on others."""
        self._series: dict[tuple[Key, str, int], SeriesTally] = {}
        self._recent: dict[tuple[int, str, int], SeriesTally] = {}
        self._marks: list[Mark] = []
        self._processes: dict[tuple[str, int, str], _Process] = {}
        self._files: dict[str, FileSeen] = {}
        self._order = order
        self._suppressed = 0
        self._suppressed_at: Place | None = None
        self._first_time: float | None = None
        self._last_time: float | None = None
        self.run_id = ""
        self.ordered = True

    def feed(self, readings: Iterable[Reading]) -> None:
        """Count readings in their order."""
        for reading in readings:
            self._order += 1
            self._seen(reading)
            for key, value in reading.values:
                if value - value == 0:  # NaN and infinity are no counts
                    self._add(key, reading, value)
                else:
                    self._add(_not_finite(key), reading, 1.0)
            if reading.marks and len(self._marks) < MARK_LIMIT:
                place = place_of(reading)
                self._marks.extend(Mark(name, self._order, place, reading.side, reading.pid) for name in reading.marks)
            if reading.repeated:
                self._suppressed += reading.repeated
                self._suppressed_at = self._suppressed_at or place_of(reading)

    def feed_events(self, events: Iterable[Event]) -> None:
        """Count a hook's or shard's events."""
        self.feed(reading_of(event) for event in events)

    def saw(self, file: FileSeen) -> None:
        """Note what became of a file; a later note of the same file replaces the earlier."""
        self._files[file.path] = file

    def _add(self, key: Key, reading: Reading, value: float) -> None:
        quick = (id(key), reading.path, reading.pid)
        found = self._recent.get(quick)
        if found is not None and found.key is key:  # hashing a key costs more than counting it
            found.add(self._order, reading, value)
            return
        found = self._series.get((key, reading.path, reading.pid))
        if found is not None and len(self._recent) < MARK_LIMIT:
            self._recent[quick] = found
        if found is None:
            side = reading.side or key.side
            found = self._series[key, reading.path, reading.pid] = SeriesTally(key, reading, side)
        found.add(self._order, reading, value)

    def _seen(self, reading: Reading) -> None:
        time = reading.time
        if time is not None:
            self._first_time = time if self._first_time is None else min(self._first_time, time)
            self._last_time = time if self._last_time is None else max(self._last_time, time)
        name = (reading.host, reading.pid, "" if reading.pid else reading.path)
        process = self._processes.get(name)
        if process is None:
            process = self._processes[name] = _Process(reading.pid, reading.host, reading.path)
        process.readings += 1
        if reading.side:
            process.sides.add(reading.side)
        for key, _ in reading.values[:4]:
            if key.side:
                process.sides.add(key.side)
        if time is not None:
            process.first_time = time if process.first_time is None else min(process.first_time, time)
            process.last_time = time if process.last_time is None else max(process.last_time, time)

    def absorb(self, later: Tally) -> None:
        """Join what another tally counted after this one."""
        shift = self._order
        for name, series in later._series.items():
            mine = self._series.get(name)
            if mine is None:
                for at, order in enumerate(series.orders):
                    series.orders[at] = order + shift
                series.last_order += shift
                self._series[name] = series
            else:
                mine.append(series, shift)
        self._marks.extend(Mark(m.name, m.order + shift, m.place, m.side, m.pid) for m in later._marks)
        for where, process in later._processes.items():
            own = self._processes.setdefault(where, process)
            if own is not process:
                own.sides |= process.sides
                own.readings += process.readings
                own.first_time = _least(own.first_time, process.first_time)
                own.last_time = _most(own.last_time, process.last_time)
        self._files.update(later._files)
        self._order += later._order
        self._suppressed += later._suppressed
        self._suppressed_at = self._suppressed_at or later._suppressed_at
        self._first_time = _least(self._first_time, later._first_time)
        self._last_time = _most(self._last_time, later._last_time)

    def snapshot(self) -> Snapshot:
        """What is known now."""
        return Snapshot(
            series=tuple(series.freeze() for series in self._series.values() if series.count),
            marks=tuple(self._marks),
            processes=tuple(
                ProcessSeen(p.pid, p.host, p.path, tuple(sorted(p.sides)), p.readings, p.first_time, p.last_time)
                for p in self._processes.values()
            ),
            files=tuple(self._files.values()),
            readings=self._order,
            suppressed=self._suppressed,
            suppressed_at=self._suppressed_at,
            first_time=self._first_time,
            last_time=self._last_time,
            run_id=self.run_id,
            ordered=self.ordered,
        )


@cache
def _not_finite(key: Key) -> Key:
    """The key under which readings that are no numbers are counted; its stream says what they should have been."""
    return Key(key.name, "not_finite", cumulative="no", stream=key.term)


def place_of(reading: Reading) -> Place:
    """Where a reading was read, with its text."""
    return Place(reading.path, reading.line, reading.time, reading.text)


def _least(a: float | None, b: float | None) -> float | None:
    return b if a is None else a if b is None else min(a, b)


def _most(a: float | None, b: float | None) -> float | None:
    return b if a is None else a if b is None else max(a, b)
