"""Small shapes of text: rows of bars, nested objects, anchors that stand as words of their own."""

from __future__ import annotations

import re
from itertools import pairwise

from gyrecheck.stream.spelling import NUMBER, number

_LETTERS = re.compile(rb"[a-z]+")
_FOLD = re.compile(r"[\W_]+")
NO_DIGITS = {ord(c): None for c in "0123456789."}


def head_of(anchor: str) -> bytes:
    """The first four letters of an anchor's longest word."""
    words: list[bytes] = _LETTERS.findall(anchor.encode())
    return max(words, key=len)[:4]


def bounded(text: str, anchor: str) -> bool:
    """Whether the anchor stands there as a word of its own: `old_dropped_stale=` holds no `dropped_stale=`."""
    at = text.find(anchor)
    while at >= 0:
        if at == 0 or not anchor[0].isalnum() or not (text[at - 1].isalnum() or text[at - 1] in "_/."):
            return True
        at = text.find(anchor, at + 1)
    return False


def boxed(line: str) -> str:
    """`| key | 3 | key | 4 |` as `key=3 | key=4`; other rows of bars as they are."""
    cells = [cell.strip() for cell in re.split(r"[|│┃]", line)]
    pairs = [f"{name} = {cell}" for name, cell in pairwise(cells) if name and NUMBER.fullmatch(cell) and not NUMBER.fullmatch(name)]
    return " | ".join(pairs) if pairs else line


def folded(name: str) -> str:
    """A name without case and separators, for comparing with what a user typed."""
    return _FOLD.sub(" ", name).strip().lower()


def flattened(value: object, prefix: str) -> list[tuple[str, float]]:
    """Numbers of a nested object, names joined with `/`; numbers spelled as text count, booleans do not."""
    if isinstance(value, dict):
        return [item for name, inner in value.items() for item in flattened(inner, f"{prefix}/{name}" if prefix else str(name))]
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, (int, float)):
        return [(prefix, float(value))]
    if isinstance(value, str) and NUMBER.fullmatch(value):
        return [(prefix, number(value))]
    return []
