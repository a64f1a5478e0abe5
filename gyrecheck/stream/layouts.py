"""Lines that differ only in their numbers are understood once: what a shape gives is kept as one regular expression with groups.

A *shape* is a line without its digits. The first lines of a shape are read the long way; then one of them becomes a `Layout`: which
of its numbers gives which key, the time and the process id. How is asked of the reader itself, by changing one number after another
and looking at what changes. A number whose change gives anything but another value (a digit in a key, a date, an address) stays
literal in the expression. A layout is used only after it agreed with the long way on altered copies of its line and on the first
lines that it meets; what does not agree, is not plain (hexadecimal, thousands), or has state is read the long way for good.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from gyrecheck.stream.probe import Caution, Parts, Said, Slow, probe
from gyrecheck.stream.strip import date_base

DIGITS = b"0123456789"
AFTER = 4
"""Lines of a shape that are read the long way before one becomes a layout, twice as many before the next one."""
PER_SHAPE, SHAPES, TRUSTED = 6, 4096, 2
DATED = 86400.0 * 400
"""Times above this count from the epoch; smaller ones are times of day."""
MOST = 400
"""Layouts that one scan tries to make; a log of ever new shapes is read the long way."""


class Layout:
    """One shape's expression. `read` gives what a matched line says, or None when only the long way can tell."""

    __slots__ = (
        "_bases",
        "_constants",
        "_epoch",
        "_fraction",
        "_picks",
        "_pid",
        "_scale",
        "_scaled",
        "_time",
        "_zone",
        "dated",
        "keys",
        "match",
        "rest",
        "silent",
        "trust",
    )

    def __init__(self, parts: Parts, said: Said) -> None:
        self.match: Callable[[bytes], re.Match[bytes] | None] = re.compile(parts.expression, re.DOTALL).fullmatch
        values, marks, _, pid, host, side = said
        self.keys = tuple(key for key, _ in values)
        self._constants = [(at, values[at][1]) for at, (group, _) in enumerate(parts.sources) if group < 0]
        self._scaled = [(at, factor) for at, (group, factor) in enumerate(parts.sources) if group >= 0 and factor != 1.0]
        self._picks = [group for group, _ in parts.sources]
        self.rest = (marks, host, side)
        self._pid = (parts.pid, pid)
        self._time, self._fraction = parts.time, parts.fraction
        self._epoch = parts.stamp is not None and parts.stamp.epoch
        self._scale = 10 ** (parts.stamp.fraction[1] - parts.stamp.fraction[0]) if parts.stamp else 1
        self._zone = parts.stamp.zone if parts.stamp else 0.0
        self._bases: dict[bytes, float | None] = {}
        self.trust = TRUSTED
        self.dated = not marks and (said[2] is None or said[2] > DATED) and not any(math.isnan(value) for _, value in values)
        """Whether many lines may be read at once: no marks, no NaN, no times of day (they depend on the line before)."""
        self.silent = not values and not marks

    def read(self, found: re.Match[bytes]) -> Said | None:
        """What a matched line says."""
        groups = found.groups()
        time: float | None = None
        if self._time >= 0:
            text = groups[self._time]
            if self._epoch:
                if not b"14" <= text[:2] <= b"19":
                    return None
                time = float(text)
            else:
                try:
                    time = self._bases[text]
                except KeyError:
                    if len(self._bases) > SHAPES:
                        self._bases.clear()
                    time = self._bases[text] = date_base(text)
                if time is None:
                    return None
                if self._fraction >= 0:
                    part = groups[self._fraction]
                    time += int(part) / self._scale
                time -= self._zone
        at, pid = self._pid
        if at >= 0:
            pid = int(groups[at])
        if self._constants:
            groups = (*groups, b"0")  # a place for values that no number gives
        figures = [float(groups[pick]) for pick in self._picks]
        for at, factor in self._scaled:
            figures[at] *= factor
        for at, value in self._constants:
            figures[at] = value
        marks, host, side = self.rest
        return tuple(zip(self.keys, figures)), marks, time, pid, host, side  # noqa: B905 - as many by construction

    def times(self, fields: list[tuple[bytes, ...]]) -> list[float | None] | None:
        """The times of many lines; None for a line that must be read the long way, and in all where lines of this layout have none."""
        if self._time < 0:
            return None
        texts = fields[self._time]
        if self._epoch:
            return [float(text) if b"14" <= text[:2] <= b"19" else None for text in texts]
        bases = self._bases
        if len(bases) > SHAPES:
            bases.clear()
        for text in {*texts}.difference(bases):
            bases[text] = date_base(text)
        found = [bases[text] for text in texts]
        if self._fraction < 0 and not self._zone:
            return found
        parts = fields[self._fraction] if self._fraction >= 0 else (b"0",) * len(texts)
        scale, zone = self._scale, self._zone
        return [None if base is None else base + int(part) / scale - zone for base, part in zip(found, parts, strict=True)]

    def pids(self, fields: list[tuple[bytes, ...]]) -> list[bytes] | int:
        """The process ids of many lines, one number where all have the same."""
        at, pid = self._pid
        if at < 0:
            return pid
        first = fields[at][0]
        return int(first) if fields[at].count(first) == len(fields[at]) else list(fields[at])

    def columns(self, fields: list[tuple[bytes, ...]], size: int) -> list[list[float]]:
        """The values of many lines, a list a key."""
        out = [[*map(float, fields[pick])] if pick >= 0 else [] for pick in self._picks]
        for at, factor in self._scaled:
            out[at] = [value * factor for value in out[at]]
        for at, value in self._constants:
            out[at] = [value] * size
        return out


class _Shape:
    """What is known of one shape."""

    __slots__ = ("layouts", "seen", "tried")

    def __init__(self) -> None:
        self.layouts: list[Layout] = []
        self.seen = self.tried = 0


class Layouts:
    """All shapes of one scan. `slow` is the long way; its answer must depend on nothing but the line."""

    def __init__(self, slow: Slow, caution: Caution) -> None:
        self._slow, self._caution = slow, caution
        self._shapes: dict[bytes, _Shape] = {}
        self._tried = 0

    def known(self, line: bytes, shape_of: bytes) -> tuple[Layout, tuple[bytes, ...]] | None:
        """The trusted layout that a line of this shape has, with the line's groups."""
        shape = self._shapes.get(shape_of)
        if shape is not None:
            for layout in shape.layouts:
                found = layout.match(line)
                if found is not None:
                    return None if layout.trust or not layout.dated else (layout, found.groups())
        return None

    def read(self, line: bytes) -> Said:
        """What a line says, ANSI taken off."""
        name = line.translate(None, DIGITS)
        shape = self._shapes.get(name)
        if shape is None:
            if len(self._shapes) >= SHAPES:
                self._shapes.clear()
            shape = self._shapes[name] = _Shape()
        for layout in shape.layouts:
            found = layout.match(line)
            if found is not None:
                said = layout.read(found)
                if said is None:
                    break
                if not layout.trust:
                    return said
                slow = self._slow(line)
                if repr(said) == repr(slow):
                    layout.trust -= 1
                else:
                    shape.layouts.remove(layout)
                    shape.tried = PER_SHAPE
                return slow
        slow = self._slow(line)
        shape.seen += 1
        if shape.seen >= AFTER << shape.tried and shape.tried < PER_SHAPE and self._tried < MOST:
            shape.tried += 1
            self._tried += 1
            layout_found = layout_of(line, self._slow, self._caution)
            if layout_found is not None:
                shape.layouts.append(layout_found)
        return slow


def layout_of(line: bytes, slow: Slow, caution: Caution) -> Layout | None:
    """A layout of the lines like this one, or None where their numbers cannot be told apart for certain."""
    parts = probe(line, slow, caution)
    if parts is None:
        return None
    layout = Layout(parts, slow(line))
    for other in (line, *parts.others()):
        found = layout.match(other)
        said = layout.read(found) if found is not None else None
        if said is None or repr(said) != repr(slow(other)):
            return None
    return layout
