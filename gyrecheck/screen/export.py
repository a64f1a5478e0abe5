"""A view as CSV, JSON or one line of text; files get a name that is free, nothing is overwritten."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
from pathlib import Path

from gyrecheck.model.finding import State, Verdict
from gyrecheck.screen.numbers import clock, short
from gyrecheck.screen.view import View


def as_json(view: View) -> str:
    """The whole view as one indented object; histories are left to the CSV."""
    table = dataclasses.asdict(dataclasses.replace(view, series=()))
    del table["series"]
    return json.dumps(table, indent=2, default=str) + "\n"


def as_csv(view: View) -> str:
    """All histories in long form: series, unit, at, value."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("series", "unit", "at", "value"))
    for series in view.series:
        writer.writerows((series.name, series.unit, at, value) for at, value in zip(series.at, series.values, strict=True))
    return out.getvalue()


def runs_csv(views: tuple[View, ...]) -> str:
    """The histories of several runs in long form: run, series, unit, at, value."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("run", "series", "unit", "at", "value"))
    for view in views:
        for series in view.series:
            writer.writerows((view.run, series.name, series.unit, at, value) for at, value in zip(series.at, series.values, strict=True))
    return out.getvalue()


def row_text(verdict: Verdict) -> str:
    """One verdict as a line for a message to a colleague."""
    place = f" ({verdict.first.path}:{verdict.first.line})" if verdict.first else ""
    word = verdict.state.value if verdict.state is not State.BROKEN else verdict.severity.value
    return f"{word} {verdict.code} {verdict.name}: {verdict.message}{place}"


def plain_line(view: View) -> str:
    """The status line of a run for pipes: span, counters, residual, greatest age, broken codes."""
    words = [clock(view.seconds)]
    words += [f"{row.name.replace(' ', '_')} {short(row.total)}" for row in view.counters]
    residual = next((row.value for row in view.balance if row.name == "residual"), None)
    words.append(f"residual {'?' if residual is None else short(residual)}")
    if view.ages:
        words.append(f"age max {max(row.age for row in view.ages):g}")
    words += list(dict.fromkeys(v.code for v in view.broken))
    if view.gaps:
        words.append("incomplete")
    return " ".join([*words, *([] if view.state == "live" else [view.state])])


def save(text: str, view: View, suffix: str, folder: Path) -> Path:
    """Write to a free name `gyrecheck-<run>[-n].<suffix>` in `folder`.

    Raises:
        OSError: the folder is not writable.
    """
    stem = "gyrecheck-" + (re.sub(r"[^A-Za-z0-9._-]+", "-", Path(view.run).name) or "watch")
    for at in range(10_000):
        path = folder / f"{stem}{f'-{at}' if at else ''}.{suffix}"
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            continue
        return path
    raise FileExistsError(f"{folder}: ten thousand saved views already")
