"""Whether libcst may be given a text: its native parser has no limit of its own and takes the process with it on deep nesting."""

from __future__ import annotations

import ast
import re
import warnings

DEEPEST = 200
"""The limit of CPython's own parser for brackets; libcst's stack ends at a multiple of it."""
_BRACKET = re.compile(r"[()\[\]{}]")


def libcst_can_read(text: str) -> bool:
    """True when CPython's parser takes the text, or refuses only its syntax while brackets nest no deeper than `DEEPEST`.

    A text on which CPython runs out of stack or memory, or that holds NUL, is never given on.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning about the checked file is not ours to print
            ast.parse(text)
    except SyntaxError:
        return "\0" not in text and _bracket_depth(text) <= DEEPEST
    except (RecursionError, MemoryError, ValueError):
        return False
    return True


def _bracket_depth(text: str) -> int:
    """The deepest nesting of brackets, those in strings and comments counted too, which only makes it larger."""
    depth = deepest = 0
    for bracket in _BRACKET.findall(text):
        depth = depth + 1 if bracket in "([{" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest
