"""The screen's content without a screen: panels under each other in 80 columns, from the same drawing functions."""

from __future__ import annotations

from gyrecheck.screen import lines
from gyrecheck.screen.glyphs import Pen
from gyrecheck.screen.panel_order import PANELS
from gyrecheck.screen.view import View

WIDTH = 78


def page(view: View, *, ascii_only: bool) -> str:
    """All panels that have something to say, each under its title; nothing is cut."""
    pen = Pen(ascii=ascii_only, color=False)
    blocks = [lines.title(view, pen, 79).plain.rstrip()]
    for title, draw in PANELS:
        body = "\n".join(line.rstrip() for line in draw(view, pen, WIDTH, 1000).plain.splitlines())
        if body.strip():
            blocks.append(f"{title}\n" + "\n".join(f"  {line}" for line in body.splitlines()))
    blocks.append(lines.status(view, view, pen, 1000, paused=False, sort="severity").plain.strip())
    return "\n\n".join(blocks) + "\n"
