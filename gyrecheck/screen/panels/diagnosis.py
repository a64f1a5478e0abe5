"""The diagnosis ladder: where the flow stops, and the first cause that fails."""

from __future__ import annotations

from rich.text import Text

from gyrecheck.screen.glyphs import Pen
from gyrecheck.screen.view import View

TITLE = "diagnosis"


def body(view: View, pen: Pen, width: int, height: int) -> Text:
    """One rung a row; a failed chain leaves the later rungs skipped, never passed."""
    del width
    rows: list[Text] = []
    name_width = max([len(step.name) for step in view.ladder] + [12])
    for at, step in enumerate(view.ladder, 1):
        line = Text(f"{at} {step.name.ljust(name_width)} ")
        line.append_text(pen.word(step.state, step.state.ljust(9)))
        line.append(" " + pen.plain(step.message))
        rows.append(line)
    if view.ladder_note:
        rows.append(Text(pen.plain(view.ladder_note), style="bold" if pen.color else ""))
    if not rows:
        rows = [Text("nothing to diagnose: all three counters grow" if view.counters else "no counters yet")]
    return Text("\n").join(rows[:height])
