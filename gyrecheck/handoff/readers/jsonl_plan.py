"""What alike lines look like: the order of their quotes and braces (their frame), and which value stands behind which key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gyrecheck.handoff.rows import MAX_NEST

MAX_KEYS = 128


@dataclass(frozen=True, slots=True)
class Value:
    """One key of a line, and where its value stands."""

    key: str
    """Dotted where the object stands in another one."""
    text: bool
    at: int
    """Place in the frame of the key's closing quote."""
    behind: int
    """Bytes from there to where the value begins."""
    last: bool
    """The value ends with its object: no comma follows it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The frame of a line (quotes, braces, the newline), and what stands between its bytes."""

    frame: bytes
    commas: tuple[int, ...]
    """Commas behind each byte of the frame; -1 where a number, flag, null or list stands."""
    spans: tuple[tuple[int, bytes], ...]
    """Place of each key's opening quote, and the bytes from there to where its value begins."""
    values: tuple[Value, ...]
    texts: bool
    """A line holds text, or a key with commas or brackets in its name: what stands inside quotes is set aside."""


def plan_of(line: bytes, record: Any) -> Plan | None:  # noqa: ANN401 - decoded JSON
    """The plan for lines like `line` (no newline), which holds `record`; None when they cannot go the fast way."""
    if type(record) is not dict:
        return None
    build = _Builder(line)
    if not build.take("", record, 0) or build.at != len(line):
        return None
    texts = any(value.text for value in build.values) or any(set(span) & set(b",[]{}") for _, span in build.spans)
    return Plan(bytes([*build.frame, 10]), (*build.commas, 0), tuple(build.spans), tuple(build.values), texts)


class _Builder:
    """Walks through a line along its decoded record; every byte must be where the record says."""

    def __init__(self, line: bytes) -> None:
        self.line, self.at = line, 0
        self.frame = bytearray()
        self.commas: list[int] = []
        self.values: list[Value] = []
        self.spans: list[tuple[int, bytes]] = []

    def take(self, prefix: str, record: dict[str, Any], depth: int) -> bool:
        """Take the object that begins here; False when it does not fit."""
        if depth > MAX_NEST or not record or not self._take(b"{"):
            return False
        self._framed(b"{")
        for number, (name, value) in enumerate(record.items()):
            if number:
                if not self._take(b","):
                    return False
                self.commas[-1] += self.commas[-1] >= 0
            place, begin = len(self.frame), self.at
            quoted = b'"' + name.encode("utf-8", "surrogatepass") + b'"'
            if len(self.values) >= MAX_KEYS or not self._take(quoted) or not self._take(b":"):
                return False
            self._framed(b'""')
            self.spans.append((place, self.line[begin : self.at]))
            key = f"{prefix}.{name}" if prefix else name
            if type(value) is dict:
                if not self.take(key, value, depth + 1):
                    return False
                continue
            behind = self.at - begin - len(quoted) + 1
            self.values.append(Value(key, type(value) is str, place + 1, behind, number + 1 == len(record)))
            if not self._value(value):
                return False
        self._framed(b"}")
        return self._take(b"}")

    def _value(self, value: object) -> bool:
        if isinstance(value, str):
            self._framed(b'""')
            return self._take(b'"' + value.encode("utf-8", "surrogatepass") + b'"')
        self.commas[-1] = -1
        depth = 0
        for at in range(self.at, len(self.line)):
            byte = self.line[at]
            depth += (byte == 91) - (byte == 93)
            if byte in b'"{' or (byte in b",}" and depth == 0):
                self.at = at
                return byte in b",}"
        return False

    def _framed(self, more: bytes) -> None:
        self.frame += more
        self.commas += [0] * len(more)

    def _take(self, wanted: bytes) -> bool:
        """Take these bytes and the spaces behind them."""
        if not self.line.startswith(wanted, self.at):
            return False
        self.at += len(wanted)
        while self.line[self.at : self.at + 1] == b" ":
            self.at += 1
        return True
