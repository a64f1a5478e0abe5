"""One key in one process, growing: exact figures, a history that is thinned evenly once it is long."""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING

from gyrecheck.model.events import Key, Reading
from gyrecheck.model.snapshot import Place, Series

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

LIMIT = 32768
"""Readings of one key that are kept before every second one is let go."""


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
                self.thin()
        self.count += 1

    def add_many(self, orders: Ints, lines: Ints, times: Floats, values: Floats, last: Reading) -> None:
        """Count many values in their order: the same as one after another."""
        import numpy as np

        if not self.count:
            self.first = self.last = float(values[0])
        before = np.concatenate(([self.last], values[:-1]))
        self.rises += int(np.count_nonzero(values > before))
        self.falls += int(np.count_nonzero(values < before))
        totals = np.cumsum(np.concatenate(([self.total], values)))[1:]  # one after another, so the sums are those of `add`
        self.total, self.last = float(totals[-1]), float(values[-1])
        self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
        self.last_reading, self.last_order = last, int(orders[-1])
        at, size = 0, len(values)
        while at < size:
            first = at + -(self.count + at) % self.stride
            stop = min(size, first + (LIMIT + 1 - len(self.orders)) * self.stride)
            kept = slice(first, stop, self.stride)
            for column, given in ((self.orders, orders), (self.lines, lines)):
                column.frombytes(given[kept].astype(np.int64).tobytes())
            for figures, floats in ((self.times, times), (self.values, values), (self.totals, totals)):
                figures.frombytes(floats[kept].astype(np.float64).tobytes())
            at = max(stop, at + 1)
            if len(self.orders) > LIMIT:
                self.thin()
        self.count += size

    def thin(self) -> None:
        """Let every second kept reading go."""
        for column in (self.orders, self.lines, self.times, self.values, self.totals):
            del column[1::2]
        self.stride *= 2

    def _keep(self) -> None:
        time = self.last_reading.time
        self.orders.append(self.last_order)
        self.lines.append(self.last_reading.line)
        self.times.append(math.nan if time is None else time)
        self.values.append(self.last)
        self.totals.append(self.total)

    def freeze(self, *, last: bool = False) -> Series:
        """The immutable view; the last reading is always in it, and an extreme of -0 is 0. `last`: nothing more will be counted."""
        orders, lines, times, values, totals = self.orders, self.lines, self.times, self.values, self.totals
        if not last:
            orders, lines, times, values, totals = orders[:], lines[:], times[:], values[:], totals[:]
        if orders[-1] != self.last_order:
            orders.append(self.last_order)
            lines.append(self.last_reading.line)
            times.append(math.nan if self.last_reading.time is None else self.last_reading.time)
            values.append(self.last)
            totals.append(self.total)
        return Series(
            self.key, self.path, self.pid, self.side, self.count, self.total, self.first, self.last, self.low + 0.0, self.high + 0.0, self.rises,
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
                tally.thin()
        self.orders.extend(order + shift for order in later.orders)
        self.lines.extend(later.lines)
        self.times.extend(later.times)
        self.values.extend(later.values)
        self.totals.extend(total + self.total for total in later.totals)
        self.count, self.total = self.count + later.count, self.total + later.total
        self.low, self.high = min(self.low, later.low), max(self.high, later.high)
        self.last, self.last_reading, self.last_order = later.last, later.last_reading, later.last_order + shift


def place_of(reading: Reading) -> Place:
    """Where a reading was read, with its text."""
    return Place(reading.path, reading.line, reading.time, reading.text)
