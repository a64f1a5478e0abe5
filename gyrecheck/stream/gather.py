"""Blocks of lines turned into batches: lines of known shapes as columns, all others one by one, with the same answer.

A shape's first lines are read the long way, until the scan trusts a layout of it; its later lines are then read together. A block in which
a table's header turns up is not read here at all, since what follows a header depends on it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gyrecheck.model.events import Reading
from gyrecheck.model.rows import Batch, Rows
from gyrecheck.stream.block import Block, Floats, Ints
from gyrecheck.stream.clock import DATED, Clock
from gyrecheck.stream.column_plan import ColumnPlan, column_plan
from gyrecheck.stream.layouts import PER_SHAPE, Layouts
from gyrecheck.stream.reader import FormatReader
from gyrecheck.stream.strip import ANSI, masked

FEW = 12
"""Lines of one shape that are sooner read one by one."""
KEEP = 400
"""Bytes of a line that a reading keeps."""
_SHAPES = 20000
_KEPT = 1 << 23
"""A freed piece of this size makes the C library keep freed memory: otherwise each block's columns are given back and asked for again."""

One = Callable[[bytes, int, int], "Reading | None"]
"""The long way: a segment, its line and offset; times of day as they stand."""


class _Shape:
    """What is known of the segments of one shape."""

    __slots__ = ("asked", "open", "plans", "runs", "silent")

    def __init__(self, shape: bytes) -> None:
        self.runs = shape.count(b"\0")
        self.silent = not shape.strip()
        self.open = True
        """Whether its first segment is still to come."""
        self.plans: list[ColumnPlan] = []
        self.asked: set[int] = set()
        """Layouts from which a plan was made, or none could be."""


class _Ids(dict[bytes, int]):
    """A number for each shape."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: list[_Shape] = []

    def __missing__(self, shape: bytes) -> int:
        self.shapes.append(_Shape(shape))
        self[shape] = number = len(self.shapes) - 1
        return number


class Gather:
    """The columns of one scan."""

    def __init__(self, path: str, reader: FormatReader, layouts: Layouts, one: One, clock: Clock) -> None:
        self._path, self._reader, self._layouts, self._one, self._clock = path, reader, layouts, one, clock
        self._ids = _Ids()
        self._masks = False
        np.empty(_KEPT, np.uint8)

    def batch(self, lines: bytes, numbers: Ints, offsets: Ints) -> Batch | None:
        """All that whole lines say, given the number and the offset of each; None where a table's header is among them."""
        if len(self._ids) > _SHAPES:
            self._ids = _Ids()
        known = len(self._ids)
        block = Block(masked(lines) if self._masks else lines, lines)
        ids = np.fromiter(map(self._ids.__getitem__, block.shapes), np.int64, len(block.shapes))
        if not self._masks and b'"' in lines and len(self._ids) - known > len(ids) // 16 + FEW:
            self._masks = True  # no two lines are alike: see whether that is for their ids
            block = Block(masked(lines), lines)
            ids = np.fromiter(map(self._ids.__getitem__, block.shapes), np.int64, len(block.shapes))
        piece = _Piece(block, numbers, offsets)
        shapes = self._ids.shapes
        runs = np.array([shape.runs for shape in shapes], np.int64)[ids]
        piece.first_runs = np.cumsum(runs) - runs
        order = np.argsort(ids, kind="stable")
        cuts = np.flatnonzero(np.diff(ids[order])) + 1
        for start, end in zip([0, *cuts.tolist()], [*cuts.tolist(), len(order)], strict=True):
            shape = shapes[ids[order[start]]] if end > start else None
            if shape is None or shape.silent:
                continue
            self._group(shape, order[start:end], piece)
            if self._reader.header is not None:
                self._reader.header = None
                return None
        return piece.batch(self._clock)

    def _group(self, shape: _Shape, segments: Ints, piece: _Piece) -> None:
        """All segments of one shape."""
        if shape.open:
            shape.open = False
            raw = piece.block.segment(int(segments[0]))
            if not self._worth(raw) or (not self._single(int(segments[0]), raw, piece) and self._reader.open):
                shape.silent = True
                return
            segments = segments[1:]
        for plan in shape.plans:
            segments = self._planned(plan, segments, piece)
        while len(segments):
            raw = piece.block.segment(int(segments[0]))
            self._single(int(segments[0]), raw, piece)
            segments = segments[1:]
            if len(segments) >= FEW and len(shape.plans) < PER_SHAPE:
                segments = self._learned(shape, raw, segments, piece)

    def _worth(self, raw: bytes) -> bool:
        reader = self._reader
        return reader.worth_a_look(raw) if reader.open else any(anchor in raw for anchor in reader.anchors)

    def _single(self, segment: int, raw: bytes, piece: _Piece) -> bool:
        line, offset = piece.place(segment)
        reading = self._one(raw, line, offset)
        if reading is not None:
            piece.others.append((segment, reading))
        return reading is not None

    def _learned(self, shape: _Shape, raw: bytes, segments: Ints, piece: _Piece) -> Ints:
        """Read on with a plan of the layout that the scan trusts by now for a segment just read; what remains."""
        raw = masked(raw) if self._masks else raw
        layout = self._layouts.trusted(ANSI.sub(b"", raw) if b"\x1b" in raw or b"^[[" in raw else raw)
        if layout is None or id(layout) in shape.asked:
            return segments
        shape.asked.add(id(layout))
        plan = column_plan(layout, raw)
        if plan is None:
            return segments
        shape.plans.append(plan)
        return self._planned(plan, segments, piece)

    def _planned(self, plan: ColumnPlan, segments: Ints, piece: _Piece) -> Ints:
        """Read what has the plan's layout; what remains."""
        if len(segments) < FEW:
            return segments
        fits = plan.fits(piece.block, piece.first_runs[segments])
        if fits.all():
            own, rest = segments, segments[:0]
        else:
            own, rest = segments[fits], segments[~fits]
        if plan.layout.silent or not len(own):
            return rest
        said = plan.read(piece.block, piece.first_runs[own])
        good = np.ones(len(own), np.bool_) if said.times is None else ~np.isnan(said.times)
        for column in said.values:
            good &= np.isfinite(column)
        for segment in own[~good].tolist() if not good.all() else ():
            self._single(segment, piece.block.segment(segment), piece)
        pids = said.pids
        for pid in [pids] if isinstance(pids, int) else [int(p) for p in dict.fromkeys(pids[good].tolist())]:
            here = good if isinstance(pids, int) else good & (pids == pid)
            if here.all():
                self._rows(plan, own, said.values, said.times, pid, piece)
            elif here.any():
                times = None if said.times is None else said.times[here]
                self._rows(plan, own[here], [column[here] for column in said.values], times, pid, piece)
        return rest

    def _rows(self, plan: ColumnPlan, segments: Ints, values: list[Floats], times: Floats | None, pid: int, piece: _Piece) -> None:
        marks, host, side = plan.layout.rest
        keys = plan.layout.keys

        def reading(at: int) -> Reading:
            line, offset = piece.place(int(segments[at]))
            said = tuple((key, float(column[at])) for key, column in zip(keys, values, strict=True))
            raw = piece.block.segment(int(segments[at]))[:KEEP]
            return Reading(self._path, line, offset, raw, said, marks, None if times is None else float(times[at]), pid, host, side)

        lines = piece.numbers[piece.block.owner[segments]]
        columns = [np.ascontiguousarray(column).data for column in values]
        known = None if times is None else times.data
        piece.rows.append(Rows(keys, columns, segments.data, lines.data, known, reading(0), reading(-1)))


class _Piece:
    """One block under way. Orders are numbers of segments until it is done."""

    def __init__(self, block: Block, numbers: Ints, offsets: Ints) -> None:
        self.block, self.numbers, self._offsets = block, numbers, offsets
        self.first_runs: Ints = offsets
        self.rows: list[Rows] = []
        self.others: list[tuple[int, Reading]] = []

    def place(self, segment: int) -> tuple[int, int]:
        """A segment's line, and the offset of that line."""
        line = self.block.owner[segment]
        return int(self.numbers[line]), int(self._offsets[line])

    def batch(self, clock: Clock) -> Batch:
        """All that was read, in the log's order."""
        said = np.zeros(len(self.block.starts), np.bool_)
        for rows in self.rows:
            said[np.frombuffer(rows.orders, np.int64)] = True
        said[[segment for segment, _ in self.others]] = True
        rank = np.cumsum(said) - 1
        for rows in self.rows:
            rows.orders = rank[np.frombuffer(rows.orders, np.int64)].data
        others = [(int(rank[segment]), reading) for segment, reading in sorted(self.others, key=lambda other: other[0])]
        batch = Batch(int(said.sum()), self.rows, others)
        if any(reading.time is not None and reading.time <= DATED for reading in self._ends()):
            _carry(batch, clock)
        return batch

    def _ends(self) -> list[Reading]:
        return [rows.first for rows in self.rows] + [reading for _, reading in self.others]


def _carry(batch: Batch, clock: Clock) -> None:
    """Carry times of day over midnights, in the order of the log."""
    timed = np.full(batch.count, np.nan)
    for rows in batch.rows:
        if rows.times is not None:
            timed[np.frombuffer(rows.orders, np.int64)] = np.frombuffer(rows.times, np.float64)
    for order, reading in batch.others:
        if reading.time is not None:
            timed[order] = reading.time
    known = ~np.isnan(timed)
    timed[known] = clock.many(timed[known])
    for rows in batch.rows:
        if rows.times is not None:
            times = timed[np.frombuffer(rows.orders, np.int64)]
            rows.times = times.data
            rows.first, rows.last = rows.first._replace(time=float(times[0])), rows.last._replace(time=float(times[-1]))
    batch.others = [
        (order, reading if reading.time is None else reading._replace(time=float(timed[order]))) for order, reading in batch.others
    ]
