"""A layout made ready for whole columns: which runs of digits a line's numbers, time and process id are, and which runs decide.

A line has the layout when it has the shape the plan was made from and its runs have the lengths, and where need be the digits, that the
layout's expression asks for. The answers are those of `Layout.read`, bit for bit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from gyrecheck.stream.block import Block, Flags, Floats, Ints
from gyrecheck.stream.layouts import Layout
from gyrecheck.stream.probe import Run
from gyrecheck.stream.strip import ANSI, date_base

_RUN = re.compile(rb"\d+")
_FORM = re.compile(rb"([-+]?)(?:(0)(\.?)|(0)\.(0)|\.(0))")


@dataclass(frozen=True, slots=True)
class _Number:
    """A number's place in a line: its first and last run, the bytes around them, and its form."""

    first: int
    last: int
    lead: int
    tail: int
    form: str
    """`whole`, `decimal`, `fraction`, or `spelled` for all that only `float` can read."""
    sign: float

    def read(self, block: Block, first_runs: Ints) -> Floats:
        """The values of many lines, given the first run of each."""
        first, last = first_runs + self.first, first_runs + self.last
        if self.form == "spelled":
            return block.spelled(first, last, self.lead, self.tail)
        if self.form == "whole":
            out = block.integers(first)
        else:
            out = block.decimals(first, last) if self.form == "decimal" else block.fractions(first)
        return out if self.sign > 0 else -out


@dataclass(frozen=True, slots=True)
class Columns:
    """What many lines say: a column a value, times (NaN: there is no such time), process ids, or the one that all have."""

    values: list[Floats]
    times: Floats | None
    pids: Floats | int


class ColumnPlan:
    """One layout, for the lines of one shape."""

    __slots__ = ("_bases", "_least", "_most", "_numbers", "_pid", "_same", "_tested", "_time", "layout")

    def __init__(self, layout: Layout, places: tuple[int, ...], numbers: tuple[_Number, ...]) -> None:
        """`places` are the layout's runs among all runs of the raw line; `numbers` one a group."""
        parts = layout.parts
        self.layout = layout
        self._tested = np.array(places, np.int64)
        self._least = np.array([1 if run.most else run.end - run.start for run in parts.runs], np.int64)
        self._most = np.array([run.most or run.end - run.start for run in parts.runs], np.int64)
        self._same = [(place, int(parts.line[run.start : run.end])) for place, run in zip(places, parts.runs, strict=True) if run.same]
        self._numbers = numbers
        self._time, self._pid = parts.time, parts.pid
        self._bases: dict[bytes, float] = {}  # by minute: seconds are the last run of every form

    def fits(self, block: Block, first_runs: Ints) -> Flags:
        """Which of these lines have the layout."""
        if not len(self._tested):
            return np.ones(len(first_runs), np.bool_)
        lengths = block.lengths[first_runs[:, None] + self._tested]
        fits: Flags = ((lengths >= self._least) & (lengths <= self._most)).all(axis=1)
        for place, value in self._same:
            fits &= block.whole(first_runs + place) == value
        return fits

    def read(self, block: Block, first_runs: Ints) -> Columns:
        """What lines of the layout say."""
        layout = self.layout
        known: dict[int, Floats] = {}
        values = []
        for group, factor in layout.parts.sources:
            if group < 0:
                values.append(np.zeros(len(first_runs)))
                continue
            if group not in known:
                known[group] = self._numbers[group].read(block, first_runs)
            values.append(known[group] * factor if factor != 1.0 else known[group])
        for at, value in layout.constants:
            values[at] = np.full(len(first_runs), value)
        pid: Floats | int = layout.own_pid
        if self._pid >= 0:
            pids = self._numbers[self._pid].read(block, first_runs)
            pid = int(pids[0]) if (pids == pids[0]).all() else pids
        return Columns(values, self._times(block, first_runs), pid)

    def _times(self, block: Block, first_runs: Ints) -> Floats | None:
        if self._time < 0:
            return None
        parts, number = self.layout.parts, self._numbers[self._time]
        stamp = parts.stamp
        if stamp is None or stamp.epoch:
            times = number.read(block, first_runs)
            whole = block.whole(first_runs + number.first)
            return np.where((whole >= 1_400_000_000) & (whole < 2_000_000_000), times, np.nan)
        minutes, which = block.texts(first_runs + number.first, first_runs + number.last - 1)
        if len(self._bases) > 4096:
            self._bases.clear()
        for minute in {*minutes}.difference(self._bases):
            base = date_base(minute + b":00")
            self._bases[minute] = np.nan if base is None else base
        times = np.array([self._bases[minute] for minute in minutes])[which] + block.whole(first_runs + number.last)
        if parts.fraction >= 0:
            times += block.whole(first_runs + self._numbers[parts.fraction].first).astype(np.float64) / float(
                10 ** (stamp.fraction[1] - stamp.fraction[0])
            )
        return times - stamp.zone if stamp.zone else times


def column_plan(layout: Layout, raw: bytes) -> ColumnPlan | None:
    """The plan for lines of the shape of `raw`, which has the layout once colour is taken off; None where columns cannot tell."""
    parts = layout.parts
    codes = [found.span() for found in ANSI.finditer(raw)] if b"\x1b" in raw or b"^[[" in raw else []
    if any(run.end - run.start > 8 for run in parts.runs if run.same) or any(
        raw[start + 1 : start + 2] in {b"(", b")"} for start, _ in codes
    ):
        return None
    places: list[int] = []
    spans: list[tuple[int, int]] = []
    for at, found in enumerate(_RUN.finditer(raw)):
        start, end = found.span()
        if any(first < end and start < last for first, last in codes):
            if not any(first <= start and end <= last for first, last in codes):
                return None
        else:
            places.append(at)
            spans.append((start, end))
    whole = layout.match(ANSI.sub(b"", raw) if codes else raw)
    if whole is None or len(spans) != len(parts.runs):
        return None  # a colour code parts two digits, which are one number without it
    numbers = []
    for group, text in zip(parts.groups, whole.groups(), strict=True):
        number = _number(parts.line, parts.runs, group)
        start, end = spans[number.first][0] - number.lead, spans[number.last][1] + number.tail
        if raw[start:end] != text:
            return None  # colour within a number or a time
        numbers.append(replace(number, first=places[number.first], last=places[number.last]))
    return ColumnPlan(layout, tuple(places), tuple(numbers))


def _number(line: bytes, runs: tuple[Run, ...], span: tuple[int, int]) -> _Number:
    start, end = span
    own = [at for at, run in enumerate(runs) if start <= run.start and run.end <= end]
    first, last = own[0], own[-1]
    lead, tail = runs[first].start - start, end - runs[last].end
    form = _FORM.fullmatch(_RUN.sub(b"0", line[start:end]))
    if form is None:
        return _Number(first, last, lead, tail, "spelled", 1.0)
    kind = "whole" if form[2] else "decimal" if form[4] else "fraction"
    return _Number(first, last, lead, tail, kind, -1.0 if form[1] == b"-" else 1.0)
