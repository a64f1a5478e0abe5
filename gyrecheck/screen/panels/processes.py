"""Processes: who writes lines, on which side, and who has fallen silent."""

from __future__ import annotations

from rich.text import Text

from gyrecheck.screen.glyphs import Pen
from gyrecheck.screen.view import View

TITLE = "processes"


def body(view: View, pen: Pen, width: int, height: int) -> Text:
    """One row a process, the silent ones first when there is no room for all; the topology in words below."""
    if not view.processes and not view.processes_note:
        return Text(view.nothing, style="dim" if pen.color else "")
    rows = [Text(f"{'pid':<9}{'side':<10}{'state':<15}last line", style="dim" if pen.color else "")]
    room = max(1, height - 2)
    ranked = sorted(view.processes, key=lambda p: p.state in {"alive", "ended"}) if len(view.processes) > room else list(view.processes)
    for process in ranked[:room]:
        line = Text(f"{process.pid:<9}{'both' if '+' in process.side else process.side or '-':<10}")
        style = "warning" if process.state not in {"alive", "ended"} else ""
        line.append_text(pen.word(style, process.state.ljust(15)))
        line.append(process.last)
        rows.append(line)
    if len(ranked) > room:
        rows[-1] = Text(f"and {len(ranked) - room + 1} more, {sum(p.state == 'alive' for p in ranked)} of {len(ranked)} alive")
    if view.processes_note and len(rows) < height:
        rows.append(Text(pen.plain(view.processes_note)[: max(20, width)]))
    return Text("\n").join(rows[:height])
