"""The themes that the key steps through: dark, light, and the terminal's own sixteen colours."""

from __future__ import annotations

from collections.abc import Iterable

THEMES = ("textual-dark", "textual-light", "nord", "gruvbox", "solarized-light", "ansi-dark", "ansi-light", "textual-ansi")


def next_theme(now: str, known: Iterable[str]) -> str:
    """The theme after `now` that this Textual knows."""
    there = [name for name in THEMES if name in set(known)]
    if not there:
        return now
    return there[(there.index(now) + 1) % len(there)] if now in there else there[0]
