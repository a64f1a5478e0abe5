"""One large plot of any series over the run: block columns, linear or logarithmic, with the breach marked."""

from __future__ import annotations

import math

from rich.text import Text

from gyrecheck.screen.glyphs import ASCII_BLOCKS, BLOCKS, Pen
from gyrecheck.screen.numbers import short
from gyrecheck.screen.view import SeriesView

AXIS = 12


def body(series: SeriesView, pen: Pen, width: int, height: int, *, log: bool) -> Text:
    """The largest value of each column's span, so that no spike is lost; the breach is a column of `!`."""
    rows_of_plot = max(3, height - 2)
    columns = max(10, width - AXIS - 1)
    if not series.values:
        return Text("no values yet")
    tops = _columns(series, columns)
    shown = [v for v in tops if v is not None]
    low, high = min([0.0, *shown]) if not log else min([v for v in shown if v > 0] or [1.0]), max(shown)
    blocks = ASCII_BLOCKS if pen.ascii else BLOCKS
    steps = len(blocks) - 1
    heights = [_height(v, low, high, rows_of_plot * steps, log=log) for v in tops]
    breach = _column_of(series, series.breach_at, columns)
    lines: list[Text] = []
    for row in range(rows_of_plot - 1, -1, -1):
        label = short(high, 3) if row == rows_of_plot - 1 else short(low, 3) if row == 0 else ""
        line = Text(label.rjust(AXIS - 1)[: AXIS - 1] + " ")
        for at, level in enumerate(heights):
            sign = blocks[max(0, min(steps, level - row * steps))]
            mark = at == breach
            line.append("!" if mark and sign == " " else sign, style=("bold red" if mark else "cyan") if pen.color else "")
        lines.append(line)
    span = f"{short(series.at[0])} .. {short(series.at[-1])}"
    lines.append(Text(" " * AXIS + span + ("   logarithmic" if log else "   linear") + ("   ! first breach" if breach is not None else "")))
    return Text("\n").join(lines)


def _columns(series: SeriesView, columns: int) -> list[float | None]:
    tops: list[float | None] = [None] * columns
    for at, value in zip(series.at, series.values, strict=True):
        column = _column_of(series, at, columns)
        if column is not None and math.isfinite(value):
            known = tops[column]
            tops[column] = value if known is None else max(known, value)
    last: float | None = None
    filled: list[float | None] = []
    for top in tops:
        last = last if top is None else top
        filled.append(last)
    return filled


def _column_of(series: SeriesView, at: float | None, columns: int) -> int | None:
    if at is None or not series.at:
        return None
    span = series.at[-1] - series.at[0]
    return min(columns - 1, int((at - series.at[0]) / span * (columns - 1))) if span > 0 else columns - 1


def _height(value: float | None, low: float, high: float, cells: int, *, log: bool) -> int:
    if value is None or (log and value <= 0):
        return 0
    if log:
        value, low, high = math.log10(value), math.log10(low), math.log10(max(high, low))
    return round((value - low) / (high - low) * cells) if high > low else max(1, cells // 2)
