"""Reads what a program measured of itself and printed: numbers behind a name or a phrase that says what they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from gyrecheck.model.live import Measured

Phrases = tuple[tuple[str, ...], ...]

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_WORD = r"[A-Za-z][\w()/-]*"
_NAMED = re.compile(
    rf"(?<![\w.-])({_WORD}(?::? {_WORD}){{0,11}})[\'\"]?(\s*[=:]\s*|\s+)[\[(]?\s*({_NUMBER}(?:\s*[ ,|/]\s*{_NUMBER})*)(?![\w.%])"
)
_PROSE = frozenset(("on", "of", "was", "in", "for", "over", "with", "by", "to", "a", "and", "from", "within", "took"))
"""Words of a sentence: the number that follows one without `=` or `:` belongs to the sentence."""
_LESS_ONE = re.compile(r"\|?\(?\b(ratio\w*)\s*-\s*1(?:\.0*)?\b\)?\|?", re.IGNORECASE)
"""What is written as a difference from 1 is how far off it is."""
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_LINE = 4096


def read_measured(
    path: Path, zero: Phrases, one: Phrases = (), zero_first: Phrases = (), never: tuple[str, ...] = (), most: int = 1000
) -> Iterator[Measured]:
    """Each phrase in the file that one of the lists is about, with its numbers and what they must be; at most `most` of them.

    Whole numbers are counts, unless 0 or 1. Raises:
        OSError: the file cannot be read.
    """
    lists = tuple((_patterns(rows), must, first) for rows, must, first in ((zero, 0.0, False), (one, 1.0, False), (zero_first, 0.0, True)))
    near = tuple(
        tuple(tuple(word.rstrip("*").encode() for word in entry.split("|")) for entry in row) for row in (*zero, *one, *zero_first)
    )
    stop = _pattern("|".join(never))
    found = 0
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            low = raw[:_LINE].lower()
            if b"- 1" in low or b"-1" in low:
                low += b" off"
            if not any(all(any(word in low for word in words) for words in row) for row in near):
                continue
            line = raw[:_LINE].decode("utf-8", "replace")
            for match in _NAMED.finditer(_LESS_ONE.sub(r"\1 off", line)):
                name, between = match[1], match[2]
                words = [word.lower() for word in _PARTS.findall(name)]
                if not (words and match[3]) or (not between.strip() and set(name.lower().split()) & _PROSE):
                    continue
                if any(stop.fullmatch(word) for word in words):
                    continue
                for patterns, must, first in lists:
                    if any(all(any(pattern.fullmatch(word) for word in words) for pattern in row) for row in patterns):
                        values = tuple(float(value) for value in re.findall(_NUMBER, match[3]) if not value.isdigit() or int(value) < 2)
                        if values:
                            yield Measured(name, values, str(path), number, line.strip()[:200], must, first)
                            found += 1
                        break
                if found >= most:
                    return


def _patterns(rows: Phrases) -> tuple[tuple[re.Pattern[str], ...], ...]:
    """Of each list the patterns of its words."""
    return tuple(tuple(_pattern(entry) for entry in row) for row in rows)


def _pattern(entry: str) -> re.Pattern[str]:
    """A plural is the same word."""
    return re.compile("|".join(f"{word[:-1]}.*" if word.endswith("*") else f"{word}s?" for word in entry.split("|")))
