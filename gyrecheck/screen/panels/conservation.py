"""Conservation: sampled against what became of it, and the residual."""

from __future__ import annotations

from rich.text import Text

from gyrecheck.screen.glyphs import Pen
from gyrecheck.screen.numbers import short
from gyrecheck.screen.view import View

TITLE = "conservation"


def body(view: View, pen: Pen, width: int, height: int) -> Text:
    """One row a term; the residual is always the last row shown."""
    if not view.balance:
        return Text(view.nothing, style="dim" if pen.color else "")
    inner = [row for row in view.balance if row.name != "residual"]
    residual = [row for row in view.balance if row.name == "residual"]
    name_width = max(16, min(22, width - 18))
    rows: list[Text] = []
    for row in [*inner[: max(1, height - len(residual))], *residual]:
        name = "  " * row.level + row.name
        value = "?" if row.value is None else short(row.value)
        line = Text(name.ljust(name_width) + value.rjust(12))
        if row.share is not None and width >= 44:
            line.append(f"{row.share:7.1%}", style="dim" if pen.color else "")
        if row.name == "residual" and view.balance_state:
            line.append("  ")
            line.append_text(pen.word(view.balance_state))
        rows.append(line)
    if view.balance_unit and len(rows) < height:
        rows.append(Text(f"unit {view.balance_unit}", style="dim" if pen.color else ""))
    return Text("\n").join(rows)
