"""Several runs side by side: one row a run, the same columns for all; the letter of a run is its sign in the plot."""

from __future__ import annotations

import string

from rich.text import Text

from gyrecheck.model.finding import State
from gyrecheck.screen.glyphs import Pen
from gyrecheck.screen.numbers import clock, short
from gyrecheck.screen.view import View

TITLE = "runs"
LETTERS = string.ascii_uppercase + string.ascii_lowercase
HEAD = ("", "run", "state", "span", "sampled", "consumed", "steps", "residual", "age max", "gravest verdict")
_LEAST = (1, 8, 7, 8, 7, 8, 5, 8, 7)
"""Widths of all columns but the last; that one takes what is left."""
_DROPPED = ("span", "steps", "age max")
"""What a narrow terminal leaves out, in this order."""


VERDICT = 32
"""Cells for the verdict, below which other columns are left out."""


def letter(at: int) -> str:
    """The sign of the run at this place; beyond 52 runs all share one."""
    return LETTERS[at] if at < len(LETTERS) else "+"


def cells(view: View) -> tuple[str, ...]:
    """The figures of one run, without its letter: run, state, span, three counters, residual, greatest age, gravest verdict."""
    counts = {row.name: row.total for row in view.counters}
    consumed = counts.get("consumed")
    steps = counts.get("train steps", counts.get("update calls"))
    residual = next((row.value for row in view.balance if row.name == "residual"), None)
    age = max((row.age for row in view.ages if row.share), default=None)
    first = gravest(view)
    return (
        view.run,
        view.state,
        clock(view.seconds),
        short(counts.get("sampled", counts.get("sample calls"))),
        short(consumed),
        short(steps),
        "?" if residual is None else short(residual),
        "-" if age is None else f"{age:g}",
        first,
    )


def gravest(view: View) -> str:
    """The gravest verdict in words: broken, else undecided, else that all hold."""
    if view.broken:
        return f"{view.broken[0].severity.value} {view.broken[0].code} {view.broken[0].name}"
    if view.open_questions:
        return f"undecided {view.open_questions[0].code} {view.open_questions[0].name}"
    return "ok" if any(v.state is State.HOLDS for v in view.verdicts) else "nothing judged yet"


def body(views: tuple[View, ...], pen: Pen, width: int, height: int, *, cursor: int = -1) -> Text:
    """A table; runs that do not fit the height are counted in words."""
    rows = [(letter(at), *cells(view)) for at, view in enumerate(views)]
    shown = list(range(len(HEAD)))
    widths = [max([least, len(name), *(len(row[at]) for row in rows)]) for at, (name, least) in enumerate(zip(HEAD, _LEAST, strict=False))]
    widths[1] = min(widths[1], max(8, width // 4))
    for name in _DROPPED:
        if sum(widths[at] + 2 for at in shown[:-1]) + VERDICT > width:
            shown.remove(HEAD.index(name))
    lines = [_line(HEAD, shown, widths, width)]
    lines[0].stylize("dim" if pen.color else "")
    room = max(1, height - 1)
    for at, row in enumerate(rows[:room]):
        line = _line(row, shown, widths, width)
        if pen.color:
            word = row[-1].split(" ", 1)[0]
            begin = line.plain.rfind(row[-1])
            if begin >= 0:
                line.stylize(pen.word(word).style, begin)
        if at == cursor:
            line.stylize("reverse")
        lines.append(line)
    if len(rows) > room:
        lines[-1] = Text(f"and {len(rows) - room + 1} more runs")
    return Text("\n").join(lines)


def _line(row: tuple[str, ...], shown: list[int], widths: list[int], width: int) -> Text:
    parts = []
    for at in shown[:-1]:
        text = row[at][: widths[at]]
        parts.append(text.rjust(widths[at]) if 3 < at < 9 else text.ljust(widths[at]))
    line = Text("  ".join([*parts, row[-1]]))
    line.truncate(width)
    return line
