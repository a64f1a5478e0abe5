"""Colour and symbols: every coloured word is also a word, and every symbol has an ASCII twin."""

from __future__ import annotations

from dataclasses import dataclass

_PAINT = {
    "error": "bold red",
    "warning": "bold yellow",
    "note": "bold cyan",
    "undecided": "bold magenta",
    "code": "bold",
    "dim": "dim",
    "place": "blue",
    "good": "green",
    "FAIL": "bold red",
    "pass": "green",
    "skipped": "dim",
}
ASCII_TWINS = str.maketrans(
    {"→": "->", "▇": "#", "·": "-", "…": "...", "│": "|", "─": "-", "╭": "+", "╮": "+", "╰": "+", "╯": "+", "≥": ">=", "≤": "<=",
     "×": "x", "≈": "~", "±": "+-", "−": "-", "≠": "!=", "Δ": "d", "Σ": "sum", "ε": "eps", "“": '"', "”": '"', "’": "'", "–": "-", "—": "-"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Style:
    """How to write: with colour or without, symbols or their ASCII twins, full or two-decimal numbers."""

    color: bool = False
    width: int = 0
    """Columns of the terminal that tables are fitted to; 0 leaves everything whole."""

    def paint(self, text: str, kind: str) -> str:
        """`text` in the colour of `kind` (a severity or a state word), or as it is."""
        if not self.color or kind not in _PAINT:
            return text
        from rich.style import Style as RichStyle

        return RichStyle.parse(_PAINT[kind]).render(text)


def number(value: float | str | bool | None) -> str:
    """A cell as text: thousands separated, floats short, None as a dash."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if value != value or value in {float("inf"), float("-inf")}:  # noqa: PLR0124 - NaN is unequal to itself
            return str(value)
        if value == int(value) and abs(value) < 1e15:
            return f"{int(value):,}"
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.1f}"
    return value
