"""Lines of known shapes collected over a piece of a log, and turned into columns at its end."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

from gyrecheck.model.events import Reading
from gyrecheck.model.rows import Batch, Rows
from gyrecheck.stream.layouts import Layout

Row = tuple[int, int, int, bytes, tuple[bytes, ...]]
"""Order, line, offset, the line itself, the groups of its layout."""
SlowReading = Callable[[bytes, int, int], list[Reading]]


def columns(path: str, layout: Layout, rows: list[Row], keep: int, batch: Batch, slow: SlowReading) -> None:
    """Add the rows of one layout to a batch; rows whose time is none are read the long way."""
    orders, lines, _, _, groups = zip(*rows, strict=True)
    fields = list(zip(*groups, strict=True)) if groups[0] else []
    times = layout.times(fields)
    if times is not None and None in times:
        good = [row for row, time in zip(rows, times, strict=True) if time is not None]
        for row, time in zip(rows, times, strict=True):
            if time is None:
                batch.others.extend((row[0], reading) for reading in slow(row[3], row[1], row[2]))
        if good:
            columns(path, layout, good, keep, batch, slow)
        return
    pids = layout.pids(fields)
    if isinstance(pids, list):
        for pid in dict.fromkeys(pids):
            own = [row for row, one in zip(rows, pids, strict=True) if one == pid]
            if len(own) == len(rows):
                pids = int(pid)
                break
            columns(path, layout, own, keep, batch, slow)
        else:
            return
    values = layout.columns(fields, len(rows))
    if not all(all(map(isfinite, column)) for column in values):
        batch.others.extend((row[0], one) for row in rows for one in slow(row[3], row[1], row[2]))
        return
    marks, host, side = layout.rest

    def reading(at: int) -> Reading:
        _, line, offset, raw, _ = rows[at]
        said = tuple((key, column[at]) for key, column in zip(layout.keys, values, strict=True))
        time = times[at] if times is not None else None
        return Reading(path, line, offset, raw[:keep], said, marks, time, pids, host, side)

    known = [time for time in times if time is not None] if times is not None else None
    batch.rows.append(Rows(layout.keys, values, list(orders), list(lines), known, reading(0), reading(-1)))
