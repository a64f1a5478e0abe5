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
from typing import TYPE_CHECKING, NamedTuple

from gyrecheck.model.events import Event, Key, Reading, reading_of
from gyrecheck.model.rows import Batch, Rows
from gyrecheck.model.snapshot import FileSeen, Mark, Place, ProcessSeen, Snapshot
from gyrecheck.verdict.series_tally import SeriesTally, place_of

if TYPE_CHECKING:
    from gyrecheck.verdict.series_tally import Floats, Ints

MARK_LIMIT = 2000


class _Part(NamedTuple):
    """Values of one key in one process, with the orders within their batch. Times are NaN where a line has none."""

    key: Key
    orders: Ints
    lines: Ints
    times: Floats
    values: Floats
    first: Reading
    last: Reading


def _merged(parts: list[_Part]) -> _Part:
    """Several parts in the order of the log."""
    import numpy as np

    orders = np.concatenate([part.orders for part in parts])
    at = np.argsort(orders, kind="stable")
    lines, times = np.concatenate([part.lines for part in parts]), np.concatenate([part.times for part in parts])
    values = np.concatenate([part.values for part in parts])
    first, last = min(parts, key=lambda part: part.orders[0]).first, max(parts, key=lambda part: part.orders[-1]).last
    return _Part(parts[0].key, orders[at], lines[at], times[at], values[at], first, last)


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
        if not batch.rows:
            self.feed(reading for _, reading in batch.others)
            return
        import numpy as np

        base, self._order = self._order, self._order + batch.count
        parts: dict[tuple[int, str, int], list[_Part]] = {}
        first_seen = [(rows.orders[0], rows.first) for rows in batch.rows] + batch.others
        for _, reading in sorted(first_seen, key=itemgetter(0)):
            self._seen(reading)
        for rows in batch.rows:
            self._seen_rows(rows)
            orders, lines = np.frombuffer(rows.orders, np.int64), np.frombuffer(rows.lines, np.int64)
            times = np.full(len(orders), np.nan) if rows.times is None else np.frombuffer(rows.times)
            for key, values in zip(rows.keys, rows.values, strict=True):
                part = _Part(key, orders, lines, times, np.frombuffer(values), rows.first, rows.last)
                parts.setdefault((id(key), rows.first.path, rows.first.pid), []).append(part)
        for several in self._single(batch.others, base + 1).values():
            key, first, last = several[0][1], several[0][2], several[-1][2]
            orders, lines = np.array([order for order, *_ in several]), np.array([reading.line for _, _, reading, _ in several])
            times = np.array([math.nan if reading.time is None else reading.time for _, _, reading, _ in several])
            part = _Part(key, orders, lines, times, np.array([value for *_, value in several]), first, last)
            parts.setdefault((id(key), first.path, first.pid), []).append(part)
        for own in sorted(parts.values(), key=lambda some: min(int(part.orders[0]) for part in some)):
            self._add_parts(own, base + 1)

    def _single(self, others: list[tuple[int, Reading]], shift: int) -> dict[tuple[int, str, int], list[tuple[int, Key, Reading, float]]]:
        """Note readings that came one by one, and sort their values by key and process."""
        out: dict[tuple[int, str, int], list[tuple[int, Key, Reading, float]]] = {}
        for order, reading in others:
            self._noted(reading, shift + order)
            for key, value in reading.values:
                known, count = (key, value) if math.isfinite(value) else (_not_finite(key), 1.0)
                out.setdefault((id(known), reading.path, reading.pid), []).append((order, known, reading, count))
        return out

    def _add_parts(self, parts: list[_Part], shift: int) -> None:
        """Count what several shapes said of one key in one process, in the order of the log."""
        one = parts[0] if len(parts) == 1 else _merged(parts)
        name = (one.key, one.first.path, one.first.pid)
        found = self._series.get(name)
        if found is None:
            found = self._series[name] = SeriesTally(one.key, one.first, one.first.side or one.key.side)
        found.add_many(one.orders + shift, one.lines, one.times, one.values, one.last)

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
        """What `_seen` notes of each reading but the first, of many at once."""
        reading = rows.first
        process = self._processes[reading.host, reading.pid, "" if reading.pid else reading.path]
        process.readings += len(rows.orders) - 1
        if rows.times is not None:
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

    def snapshot(self, *, last: bool = False) -> Snapshot:
        """What is known now. `last`: nothing more will be counted, so the histories are handed over and not copied."""
        return Snapshot(
            series=tuple(series.freeze(last=last) for series in self._series.values() if series.count),
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
