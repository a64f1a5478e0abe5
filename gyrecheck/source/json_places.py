"""JSON in which every text knows where it stands: the line and column of any of its characters in the file.

The standard decoder gives values without places; a finding in a notebook needs the line of the .ipynb. Strings are read by the standard
scanner, so escapes mean what they mean everywhere.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from json.decoder import scanstring  # type: ignore[attr-defined] # the stubs leave it out; every Python has it
from typing import Any

_SPACE = re.compile(r"[ \t\n\r]*")
_SCALAR = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null|NaN|-?Infinity")
_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.", re.DOTALL)


class Text(str):
    """A string value with its place: `raw` is its form in the file without the quotes, beginning at `row`, `column` (1-based)."""

    __slots__ = ("column", "raw", "row")
    raw: str
    row: int
    column: int

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column in the file of the character at `offset` (the end of the text when beyond it)."""
        at = seen = 0
        while seen < offset and at < len(self.raw):
            escape = _ESCAPE.match(self.raw, at) if self.raw[at] == "\\" else None
            at = escape.end() if escape else at + 1
            seen += 1
        return self.row, self.column + at


def read_json(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """The value with every string a `Text`.

    Raises:
        ValueError: no valid JSON; the message names the line.
        RecursionError: nested more deeply than Python's stack allows.
    """
    reader = _Reader(text)
    value, end = reader.value(reader.skip(0))
    if (end := reader.skip(end)) != len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def skip(self, at: int) -> int:
        match = _SPACE.match(self.text, at)
        return match.end() if match else at

    def string(self, at: int) -> tuple[Text, int]:
        value, end = scanstring(self.text, at + 1, True)
        text = Text(value)
        text.raw = self.text[at + 1 : end - 1]
        text.row = bisect_right(self.starts, at + 1)
        text.column = at + 1 - self.starts[text.row - 1] + 1
        return text, end

    def value(self, at: int) -> tuple[Any, int]:
        opening = self.text[at : at + 1]
        if opening == '"':
            return self.string(at)
        if opening == "{":
            return self.table(self.skip(at + 1))
        if opening == "[":
            return self.array(self.skip(at + 1))
        match = _SCALAR.match(self.text, at)
        if match is None:
            raise json.JSONDecodeError("Expecting value", self.text, at)
        return json.loads(match[0]), match.end()

    def table(self, at: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        if self.text[at : at + 1] == "}":
            return found, at + 1
        while True:
            if self.text[at : at + 1] != '"':
                raise json.JSONDecodeError("Expecting property name enclosed in double quotes", self.text, at)
            key, at = self.string(at)
            at = self.skip(at)
            if self.text[at : at + 1] != ":":
                raise json.JSONDecodeError("Expecting ':' delimiter", self.text, at)
            found[str(key)], at = self.value(self.skip(at + 1))
            at = self.skip(at)
            if self.text[at : at + 1] == "}":
                return found, at + 1
            at = self.skip(self.comma(at))

    def array(self, at: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        if self.text[at : at + 1] == "]":
            return found, at + 1
        while True:
            value, at = self.value(at)
            found.append(value)
            at = self.skip(at)
            if self.text[at : at + 1] == "]":
                return found, at + 1
            at = self.skip(self.comma(at))

    def comma(self, at: int) -> int:
        if self.text[at : at + 1] != ",":
            raise json.JSONDecodeError("Expecting ',' delimiter", self.text, at)
        return at + 1
