"""One series of several runs on one pair of axes: the letter of each run stands where its value is, `*` where several meet."""

from __future__ import annotations

import math

from rich.text import Text

from gyrecheck.screen.glyphs import Pen
from gyrecheck.screen.numbers import short
from gyrecheck.screen.panels.runs import letter
from gyrecheck.screen.view import SeriesView, View

AXIS = 12
STYLES = ("cyan", "yellow", "magenta", "green", "blue", "red")


def names(views: tuple[View, ...]) -> tuple[str, ...]:
    """Every series that some run has, those of most runs first."""
    counted: dict[str, int] = {}
    for view in views:
        for name in dict.fromkeys(series.name for series in view.series):
            counted[name] = counted.get(name, 0) + 1
    return tuple(sorted(counted, key=lambda name: -counted[name]))


def body(views: tuple[View, ...], name: str, pen: Pen, width: int, height: int, *, log: bool) -> Text:
    """Each run from its own start, all to one scale; runs without the series are named below."""
    found = [(at, next((s for s in view.series if s.name == name), None)) for at, view in enumerate(views)]
    drawn = [(at, series) for at, series in found if series is not None and series.values]
    if not drawn:
        return Text("no series yet")
    rows, columns = max(3, height - 3), max(10, width - AXIS - 1)
    values = [v for _, s in drawn for v in s.values if math.isfinite(v) and (v > 0 or not log)]
    if not values:
        return Text("no positive values for a logarithmic plot: y changes the axis")
    low, high = min(values if log else [0.0, *values]), max(values)
    span = max(s.at[-1] - s.at[0] for _, s in drawn) or 1.0
    grid = [[" "] * columns for _ in range(rows)]
    for at, series in drawn:
        for column, value in _points(series, span, columns):
            level = _level(value, low, high, rows, log=log)
            if level is not None:
                cell = grid[level][column]
                grid[level][column] = letter(at) if cell in {" ", letter(at)} else "*"
    styles = {letter(at): STYLES[at % len(STYLES)] for at, _ in drawn}
    lines = []
    for row in range(rows - 1, -1, -1):
        label = short(high, 3) if row == rows - 1 else short(low, 3) if row == 0 else ""
        line = Text(label.rjust(AXIS - 1)[: AXIS - 1] + " ")
        for sign in grid[row]:
            line.append(sign, style=styles.get(sign, "bold") if pen.color else "")
        lines.append(line)
    lines.append(Text(" " * AXIS + f"0 .. {short(span)}   {name}   {'logarithmic' if log else 'linear'}   * several runs"))
    legend = Text(" " * AXIS)
    for at, _ in drawn:
        legend.append(f"{letter(at)} {views[at].run}  ", style=styles[letter(at)] if pen.color else "")
    lines.append(legend)
    without = [views[at].run for at, missing in found if missing is None]
    if without:
        lines.append(Text(" " * AXIS + "not in " + ", ".join(without)))
    return Text("\n").join(lines)


def _points(series: SeriesView, span: float, columns: int) -> list[tuple[int, float]]:
    """The last value of each column's span, carried on where the run logged nothing, up to its own end."""
    last: dict[int, float] = {}
    for at, value in zip(series.at, series.values, strict=True):
        if math.isfinite(value):
            last[min(columns - 1, int((at - series.at[0]) / span * (columns - 1)))] = value
    points: list[tuple[int, float]] = []
    known: float | None = None
    for column in range(max(last, default=-1) + 1):
        known = last.get(column, known)
        if known is not None:
            points.append((column, known))
    return points


def _level(value: float, low: float, high: float, rows: int, *, log: bool) -> int | None:
    if log:
        if value <= 0:
            return None
        value, low, high = math.log10(value), math.log10(low), math.log10(high)
    return min(rows - 1, round((value - low) / (high - low) * (rows - 1))) if high > low else rows // 2
