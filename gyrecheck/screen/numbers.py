"""Numbers and spans for narrow places; imports nothing, so that the screenless forms stay quick."""

from __future__ import annotations


def short(value: float | None, digits: int = 1) -> str:
    """A number for a narrow place: thousands separated, whole where it is whole; a dash for none."""
    if value is None:
        return "-"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.{digits}f}"


def clock(seconds: float | None) -> str:
    """A span as hh:mm:ss."""
    if seconds is None:
        return "--:--:--"
    whole = int(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"
