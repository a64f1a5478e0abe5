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
MOST = 400
"""Layouts that one scan tries to make; a log of ever new shapes is read the long way."""


class Layout:
    """One shape's expression. `read` gives what a matched line says, or None when only the long way can tell."""

    __slots__ = (
        "_bases", "_epoch", "_fraction", "_picks", "_pid", "_scale", "_scaled", "_time", "_zone",
        "constants", "keys", "match", "own_pid", "parts", "plain", "rest", "silent", "trust",
    )  # fmt: skip

    def __init__(self, parts: Parts, said: Said) -> None:
        self.match: Callable[[bytes], re.Match[bytes] | None] = re.compile(parts.expression, re.DOTALL).fullmatch
        values, marks, _, self.own_pid, host, side = said
        self.parts = parts
        self.keys = tuple(key for key, _ in values)
        self.constants = [(at, values[at][1]) for at, (group, _) in enumerate(parts.sources) if group < 0]
        self._scaled = [(at, factor) for at, (group, factor) in enumerate(parts.sources) if group >= 0 and factor != 1.0]
        self._picks = [group for group, _ in parts.sources]
        self.rest = (marks, host, side)
        self._pid = parts.pid
        self._time, self._fraction = parts.time, parts.fraction
        self._epoch = parts.stamp is not None and parts.stamp.epoch
        self._scale = 10 ** (parts.stamp.fraction[1] - parts.stamp.fraction[0]) if parts.stamp else 1
        self._zone = parts.stamp.zone if parts.stamp else 0.0
        self._bases: dict[bytes, float | None] = {}  # by minute: seconds are the last two digits of every form
        self.trust = TRUSTED
        self.plain = not marks and not any(math.isnan(value) for _, value in values)
        """Whether many lines may be read at once: no marks, no NaN."""
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
                minute = text[:-2]
                try:
                    time = self._bases[minute]
                except KeyError:
                    if len(self._bases) > SHAPES:
                        self._bases.clear()
                    time = self._bases[minute] = date_base(minute + b"00")
                if time is None:
                    return None
                time += int(text[-2:])
                if self._fraction >= 0:
                    part = groups[self._fraction]
                    time += int(part) / self._scale
                time -= self._zone
        pid = int(groups[self._pid]) if self._pid >= 0 else self.own_pid
        if self.constants:
            groups = (*groups, b"0")  # a place for values that no number gives
        figures = [float(groups[pick]) for pick in self._picks]
        for at, factor in self._scaled:
            figures[at] *= factor
        for at, value in self.constants:
            figures[at] = value
        marks, host, side = self.rest
        return tuple(zip(self.keys, figures)), marks, time, pid, host, side  # noqa: B905 - as many by construction


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

    def trusted(self, line: bytes) -> Layout | None:
        """The trusted layout that a line has, ANSI taken off."""
        shape = self._shapes.get(line.translate(None, DIGITS))
        for layout in shape.layouts if shape is not None else ():
            if layout.match(line) is not None:
                return layout if layout.plain and not layout.trust else None
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
