"""Counters: exact totals, rates and recent increments, then the policy versions of both sides."""

from __future__ import annotations

from rich.text import Text

from gyrecheck.screen.glyphs import Pen
from gyrecheck.screen.numbers import short
from gyrecheck.screen.view import View

TITLE = "counters"


def body(view: View, pen: Pen, width: int, height: int) -> Text:
    """One row a counter; the sparkline takes what width is left."""
    rows: list[Text] = []
    name_width = max([len(row.name) for row in view.counters] + [12])
    total_width = max([len(short(row.total)) for row in view.counters] + [6])
    unit_width = max([len(row.unit) for row in view.counters] + [0])
    versions = 1 if view.versions else 0
    for row in view.counters[: max(1, height - versions)]:
        line = Text(row.name.ljust(name_width) + " " + short(row.total).rjust(total_width) + " " + row.unit.ljust(unit_width))
        rate = "" if row.per_second is None else f" {row.per_second:+,.1f}/s"
        line.append(rate.rjust(10), style="dim" if pen.color else "")
        if (left := width - line.cell_len - 2) >= 5 and row.recent:
            line.append("  ")
            line.append_text(pen.spark(row.recent, min(left, 40)))
        rows.append(line)
    if view.versions and len(rows) < height:
        said = "  ".join(f"{side} {version}" for side, version in view.versions)
        rows.append(Text(f"policy version  {said}" if len(said) + 16 <= width else f"policy ver. {said.replace('  ', ' ')}"))
    return Text("\n").join(rows or [Text(view.nothing, style="dim" if pen.color else "")])
