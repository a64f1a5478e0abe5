"""Readings in, a `Snapshot` out, at any time: exact totals per key and process, thinned histories, constant memory.

A tally only ever adds. Two tallies of the same run join by `absorb`, which is associative; the totals of a key in a process do not
depend on how the lines of other processes lie between its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from operator import itemgetter
from typing import NamedTuple

from gyrecheck.model.events import Event, Key, Reading, reading_of
from gyrecheck.model.rows import Batch, Rows
from gyrecheck.model.snapshot import FileSeen, Mark, Place, ProcessSeen, Snapshot
from gyrecheck.verdict.series_tally import SeriesTally, place_of

MARK_LIMIT = 2000


class _Part(NamedTuple):
    """Values of one key in one process, with the orders within their batch."""

    key: Key
    orders: list[int]
    lines: list[int]
    times: list[float] | None
    values: list[float]
    first: Reading
    last: Reading


def _merged(parts: list[_Part]) -> _Part:
    """Several parts in the order of the log."""
    rows = sorted(
        (
            row
            for part in parts
            for row in zip(part.orders, part.lines, part.times or [math.nan] * len(part.orders), part.values, strict=True)
        ),
        key=itemgetter(0),
    )
    orders, lines, times, values = map(list, zip(*rows, strict=True))
    first, last = min(parts, key=lambda part: part.orders[0]).first, max(parts, key=lambda part: part.orders[-1]).last
    return _Part(parts[0].key, orders, lines, times, values, first, last)


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
            self._noted(reading, self._order)

    def _noted(self, reading: Reading, order: int) -> None:
        if reading.marks and len(self._marks) < MARK_LIMIT:
            place = place_of(reading)
            self._marks.extend(Mark(name, order, place, reading.side, reading.pid) for name in reading.marks)
        if reading.repeated:
            self._suppressed += reading.repeated
            self._suppressed_at = self._suppressed_at or place_of(reading)

    def feed_batch(self, batch: Batch) -> None:
        """Count a batch: the same as its readings one after another."""
        base, self._order = self._order, self._order + batch.count
        parts: dict[tuple[int, str, int], list[_Part]] = {}
        for rows in batch.rows:
            self._seen_rows(rows)
            where = (rows.first.path, rows.first.pid)
            for key, values in zip(rows.keys, rows.values, strict=True):
                part = _Part(key, rows.orders, rows.lines, rows.times, values, rows.first, rows.last)
                parts.setdefault((id(key), *where), []).append(part)
        for order, reading in sorted(batch.others, key=itemgetter(0)):
            self._seen(reading)
            self._noted(reading, base + order + 1)
            time = None if reading.time is None else [reading.time]
            for key, value in reading.values:
                known, count = (key, value) if math.isfinite(value) else (_not_finite(key), 1.0)
                part = _Part(known, [order], [reading.line], time, [count], reading, reading)
                parts.setdefault((id(known), reading.path, reading.pid), []).append(part)
        for several in sorted(parts.values(), key=lambda some: min(part.orders[0] for part in some)):
            self._add_parts(several, base + 1)

    def _add_parts(self, parts: list[_Part], shift: int) -> None:
        """Count what several shapes said of one key in one process, in the order of the log."""
        one = parts[0] if len(parts) == 1 else _merged(parts)
        name = (one.key, one.first.path, one.first.pid)
        found = self._series.get(name)
        if found is None:
            found = self._series[name] = SeriesTally(one.key, one.first, one.first.side or one.key.side)
        found.add_many([order + shift for order in one.orders], one.lines, one.times, one.values, one.last)

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

    def _seen_rows(self, rows: Rows) -> None:
        """What `_seen` notes of each reading, of many at once."""
        self._seen(rows.first)
        reading = rows.first
        process = self._processes[reading.host, reading.pid, "" if reading.pid else reading.path]
        process.readings += len(rows.orders) - 1
        if rows.times:
            low, high = min(rows.times), max(rows.times)
            self._first_time, self._last_time = _least(self._first_time, low), _most(self._last_time, high)
            process.first_time, process.last_time = _least(process.first_time, low), _most(process.last_time, high)

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
        room = max(0, MARK_LIMIT - len(self._marks))
        self._marks.extend(Mark(m.name, m.order + shift, m.place, m.side, m.pid) for m in later._marks[:room])
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

    def settled(self) -> Tally:
        """The tally without what only counts within its own process."""
        self._recent = {}
        return self

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


def _least(a: float | None, b: float | None) -> float | None:
    return b if a is None else a if b is None else min(a, b)


def _most(a: float | None, b: float | None) -> float | None:
    return b if a is None else a if b is None else max(a, b)
