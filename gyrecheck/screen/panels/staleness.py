"""Staleness: the ages at which trajectories were used, with their limit."""

from __future__ import annotations

from rich.text import Text

from gyrecheck.screen.glyphs import Pen
from gyrecheck.screen.view import View

TITLE = "staleness in versions"


def body(view: View, pen: Pen, width: int, height: int) -> Text:
    """A histogram by age; ages over the limit are marked in words, the notes stand below."""
    notes = list(view.ages_note)[: max(1, height // 3)]
    room = max(1, height - len(notes))
    bar_width = max(4, width - 20)
    rows: list[Text] = []
    for row in view.ages[:room]:
        line = Text(f"{row.age:>4g} ")
        line.append_text(pen.bar(row.share, bar_width))
        line.append(" " * max(0, bar_width + 5 - line.cell_len))
        line.append(f"{row.share:7.1%}")
        if row.over:
            line.append(" over", style="bold red" if pen.color else "")
        rows.append(line)
    if len(view.ages) > room:
        rows[-1] = Text(f"  … {len(view.ages) - room + 1} more ages" if not pen.ascii else f"  ... {len(view.ages) - room + 1} more ages")
    rows += [Text(pen.plain(note), style="dim" if pen.color else "") for note in notes]
    return Text("\n").join(rows or [Text(view.nothing, style="dim" if pen.color else "")])
