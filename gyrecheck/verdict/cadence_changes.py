"""Copies into the target network that come more often than their setting says, from the start or from some line in mid-run on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Series
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.view import View

LEAST = 3
"""Steps of the counter on each side of the change."""
TIMES, EVEN = 2.0, 0.25
"""How many times the pace becomes, and the part of a pace by which its steps may differ; one more or less is never a difference."""


_ALL = re.compile(r"(?i)total|transition|(?<![a-z])env|sampled|lifetime|collected")
"""A counter of the steps of all environments, not of calls that step them at once."""
_NUMBER = re.compile(r"([A-Za-z][\w./-]*)[\"']?\s*[=:|]?\s*(\d+(?:\.\d+)?)(?![\w.%/])")


def judge_cadence_changes(run: View, docket: Docket) -> None:
    """Enter that target copies come more, or less, often from some line on, or all along more often than configured."""
    if not _changed(run, docket):
        _too_often(run, docket)


def _changed(run: View, docket: Docket) -> bool:
    updates = next((s for s in run.series("update", least=2 * LEAST) if s.rises >= 2 * LEAST and not s.falls), None)
    declared = run.snapshot.of("target_interval")
    if updates is None or any(s.low != s.high for s in declared):
        return False
    axis = next((s for s in run.series("step", "sampled", least=2 * LEAST) if s.rises >= 2 * LEAST and not s.falls), None)
    for series in run.series("target_syncs", least=2 * LEAST):
        windows = _windows(series, updates)
        at = _change(windows)
        if at is None or (axis is not None and not _even_pace(updates, axis, series, at)):
            continue
        before, after = _median([s for s, _ in windows[:at]]), _median([s for s, _ in windows[at:]])
        start = series.orders[at]
        opener = next((m for m in run.restarts if series.orders[max(at - 1, 0)] <= m.order <= series.orders[at + 1]), None)
        setting = declared[0] if declared else None
        said = f"; `{setting.name}` says {count(setting.last)} all along" if setting is not None else ""
        docket.add(
            "GYR509",
            State.BROKEN,
            f"`{series.name}` grows by {count(after)} a reading from line {series.place(at + 1).line} on and by {count(before)} before, for as many "
            f"updates{', after the restart' if opener else ''}{said}",
            quantity=series.name,
            value=after,
            first=series.place(at + 1),
            because=[Because(series.place(at), "the pace of before up to here")]
            + ([Because(setting.first_place, setting.name)] if setting is not None else [])
            + ([Because(opener.place, "restart")] if opener is not None and start else []),
            hint="see what is computed anew at each start: an interval that is divided by the number of environments is saved divided",
            at_most=Severity.WARNING,
        )
        return True
    return False


def _too_often(run: View, docket: Docket) -> None:
    """By updates and by steps alike there are as many times more copies than the interval has room for as environments are stepped at once."""
    interval = run.setting("target_interval")
    axes = [s for term in ("update", "sampled", "step") for s in run.series(term, least=LEAST) if s.rises >= LEAST and not s.falls]
    totals = [s for s in axes if s.key.term != "update" and _ALL.search(s.name)]
    # a bare step may be one of all environments at once
    series = next((s for s in run.series("target_syncs", least=LEAST) if not s.falls and s.last - s.first >= 2 * LEAST), None)
    if interval is None or series is None or interval.last <= 0 or not totals or all(s.key.term != "update" for s in axes):
        return
    windows = [(axis, _windows(series, axis)) for axis in axes]
    each = [(sum(x for _, x in w) / (series.last - series.first), axis) for axis, w in windows]
    most, axis = max(each, key=lambda item: item[0])
    copies = run.setting("env_copies")
    if most <= 0 or copies is None or copies.last < TIMES or abs(interval.last / most - copies.last) > EVEN * copies.last:
        return  # another factor may be one of units: frames of a step, steps of an update
    if _as_said(series, interval.last):
        return
    docket.add(
        "GYR509",
        State.BROKEN,
        f"`{series.name}` counts one copy in {most:.4g} by `{axis.name}`, `{interval.name}` says {count(interval.last)}: the target network "
        f"follows {interval.last / most:.3g} times as closely",
        quantity=series.name,
        value=series.last,
        first=interval.first_place,
        because=[Because(interval.first_place, interval.name), Because(series.last_place, series.name)],
        hint="see whether the interval is divided by the number of environments more than once",
        at_most=Severity.WARNING,
    )


def _as_said(series: Series, interval: float) -> bool:
    """Whether any number on the lines, understood or not, goes on by the interval from copy to copy: frames beside steps, say."""
    first, last = (dict(_NUMBER.findall(place.text)) for place in (series.first_place, series.last_place))
    went = [float(last[name]) - float(first[name]) for name in first.keys() & last.keys()]
    return any(abs(x / (series.last - series.first) - interval) <= EVEN * interval for x in went)


def _windows(series: Series, axis: Series) -> list[tuple[float, float]]:
    """Steps of the counter from reading to reading, each with the axis' step."""
    where = [axis.values[max(axis.index(order), 0)] for order in series.orders]
    return [(b - a, y - x) for (a, b), (x, y) in zip(pairwise(series.values), pairwise(where), strict=True)]


def _change(windows: Sequence[tuple[float, float]]) -> int | None:
    """Index of the first window of another pace, where both paces are even and lie a whole factor apart."""
    for at in range(LEAST, len(windows) - LEAST + 1):
        parts = windows[:at], windows[at:]
        if any(s <= 0 or x <= 0 for part in parts for s, x in part):
            continue
        paces = [sum(s for s, _ in part) / sum(x for _, x in part) for part in parts]
        even = all(abs(s - pace * x) < max(1.0, EVEN * pace * x) for part, pace in zip(parts, paces, strict=True) for s, x in part)
        if even and max(paces) >= TIMES * min(paces):
            return at
    return None


def _even_pace(updates: Series, axis: Series, series: Series, at: int) -> bool:
    """Whether the updates' own pace, by the steps of the environment, is the same on both sides."""
    windows = _windows(updates, axis)
    cut = max(updates.index(series.orders[at]), 1)
    paces = [_median([s / x for s, x in part if x > 0]) for part in (windows[:cut], windows[cut:])]
    return min(paces) > 0 and max(paces) <= (1.0 + 2 * EVEN) * min(paces)


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 0.0
