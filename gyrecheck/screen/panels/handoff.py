"""Handoff health: the carrier between the sides, and the way back of the weights."""

from __future__ import annotations

from rich.text import Text

from gyrecheck.screen.glyphs import Pen
from gyrecheck.screen.view import View

TITLE = "handoff"


def body(view: View, pen: Pen, width: int, height: int) -> Text:
    """One figure a row."""
    del width
    if not view.handoff:
        return Text(view.nothing, style="dim" if pen.color else "")
    return Text("\n").join([Text(pen.plain(f"{name.ljust(16)} {value}")) for name, value in view.handoff][:height])
