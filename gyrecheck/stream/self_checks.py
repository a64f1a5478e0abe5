"""Reads what a program measured of itself and printed: numbers behind a name that says what they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from gyrecheck.model.live import Measured

_NUMBER = rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_NAMED = re.compile(rb"(?<![\w.])([A-Za-z]\w*)[\'\"]?(?:\s*[=:]\s*|\s+)((?:" + _NUMBER + rb")(?:[ ,]+" + _NUMBER + rb")*)(?![\w.])")
_LINE = 4096


def read_measured(path: Path, names: tuple[tuple[str, ...], ...], most: int = 1000) -> Iterator[Measured]:
    """Each name in the file that holds all words of one of `names`, with its numbers; at most `most` of them.

    Raises:
        OSError: the file cannot be read.
    """
    found = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            low = line[:_LINE].lower()
            if not any(all(word.encode() in low for word in words) for words in names):
                continue
            for match in _NAMED.finditer(line[:_LINE]):
                name = match[1].decode("ascii", "replace")
                if any(all(word in name.lower() for word in words) for words in names):
                    values = tuple(float(value) for value in re.split(rb"[ ,]+", match[2]) if value)
                    yield Measured(name, values, str(path), number, line.decode("utf-8", "replace").strip()[:200])
                    found += 1
                    if found >= most:
                        return
