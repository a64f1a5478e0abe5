"""Signs of the screen and their ASCII twins: a state is always a glyph and a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

BLOCKS = " ▁▂▃▄▅▆▇█"
ASCII_BLOCKS = " ._-=+*%#"
STATE_STYLE = {
    "error": "bold red",
    "warning": "bold yellow",
    "note": "cyan",
    "undecided": "magenta",
    "ok": "green",
    "holds": "green",
    "pass": "green",
    "FAIL": "bold red",
    "skipped": "dim",
    "live": "green",
    "waiting": "yellow",
    "paused": "yellow",
    "ended": "bold",
    "silent": "yellow",
    "disconnected": "bold red",
    "replay": "cyan",
}
GLYPH = {"error": "✖", "warning": "▲", "note": "●", "undecided": "?", "ok": "✔", "pass": "✔", "FAIL": "✖", "skipped": "·"}
ASCII_GLYPH = {"error": "X", "warning": "!", "note": "*", "undecided": "?", "ok": "+", "pass": "+", "FAIL": "X", "skipped": "."}


@dataclass(frozen=True, slots=True)
class Pen:
    """How to draw: with signs or their ASCII twins, with colour or in plain weight."""

    ascii: bool = False
    color: bool = True

    def word(self, state: str, text: str | None = None) -> Text:
        """A state word in its colour; the word itself is always there."""
        return Text(state if text is None else text, style=STATE_STYLE.get(state, "") if self.color else "")

    def glyph(self, state: str) -> Text:
        """The sign of a state, one cell wide."""
        table = ASCII_GLYPH if self.ascii else GLYPH
        return Text(table.get(state, " "), style=STATE_STYLE.get(state, "") if self.color else "")

    def bar(self, share: float, width: int) -> Text:
        """A horizontal bar of `share` (0..1) of `width` cells."""
        cells = max(0, min(width, round(share * width)))
        return Text(("#" if self.ascii else "▇") * cells, style="blue" if self.color else "")

    def spark(self, values: Sequence[float], width: int) -> Text:
        """The last `width` values as one row of blocks, scaled from zero to their largest."""
        shown = list(values)[-width:]
        top = max(shown, default=0.0)
        blocks = ASCII_BLOCKS if self.ascii else BLOCKS
        signs = "".join(blocks[1 + round((len(blocks) - 2) * max(v, 0.0) / top)] if top > 0 else blocks[1] for v in shown)
        return Text(signs, style="cyan" if self.color else "")

    def plain(self, text: str) -> str:
        """Text with its signs replaced where the terminal knows ASCII only."""
        if not self.ascii:
            return text
        for sign, twin in (("→", "->"), ("·", "-"), ("−", "-"), ("≥", ">="), ("≤", "<="), ("×", "x"), ("…", "...")):
            text = text.replace(sign, twin)
        return text.encode("ascii", "replace").decode("ascii")
