"""Coupling: how sample calls and update calls grow against each other."""

from __future__ import annotations

from rich.text import Text

from gyrecheck.screen.glyphs import Pen
from gyrecheck.screen.view import View

TITLE = "coupling"


def body(view: View, pen: Pen, width: int, height: int) -> Text:
    """The figures, then the recent ratio and the state in words."""
    pad = 14 if all(len(value) + 15 <= width for _, value in view.coupling) else 0
    rows = [Text(f"{name.ljust(pad)} {value}") for name, value in view.coupling][: max(1, height - 1)]
    last = pen.spark(view.coupling_recent, max(8, width - 12)) if view.coupling_recent else Text()
    if view.coupling_state:
        last.append(" " if last else "")
        last.append_text(pen.word(view.coupling_state))
    if last:
        rows.append(last)
    return Text("\n").join(rows[:height] or [Text(view.nothing, style="dim" if pen.color else "")])
