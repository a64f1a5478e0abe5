"""Text of others made safe to show: a control, bidirectional or undecodable character becomes its escape, in sight and without effect.

What is data (names, paths, lines, fields) may hold anything; a terminal obeys some of it, and a row ends where a name holds a new line.
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")

# C0, DEL, C1, marks and embeddings of direction, separators of lines, invisible signs, tags, halves of pairs; joiners stay (emoji, Persian)
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_NO_TEXT = re.compile("[\ud800-\udfff]")
_SHORT = {"\n": "\\n", "\r": "\\r"}
_SGR = re.compile(r"\x1b\[[0-9;]*m")


def visible(text: str) -> str:
    """A name or one line of others on one line: only tabs stay; a byte that was no text is shown as `xff` with a backslash."""
    return text if text.isascii() and text.isprintable() else _UNSAFE.sub(_in_line, text)


def decodable(name: str) -> str:
    """A file's name in a form that can be written and kept: a byte of it that was no text as its escape, everything else as it is."""
    return name if name.isascii() else _NO_TEXT.sub(_in_line, name)


def visible_lines(text: str) -> str:
    """Text of several lines, new lines kept."""
    return _UNSAFE.sub(_in_text, text)


def visible_painted(text: str) -> str:
    """Text whose data is visible already and which was coloured since: colours and new lines are kept, nothing else."""
    parts, at = [], 0
    for colour in _SGR.finditer(text):
        parts += [visible_lines(text[at : colour.start()]), colour.group()]
        at = colour.end()
    return "".join([*parts, visible_lines(text[at:])])


def visible_json(text: str) -> str:
    """JSON with the same characters as escapes of JSON, so that a reader gets them back."""
    return _UNSAFE.sub(_in_json, text)


def visible_data(value: T) -> T:
    """A frozen dataclass, tuple or dict with every string in it `visible`; enums and numbers as they are."""
    if isinstance(value, str) and not isinstance(value, Enum):
        return cast("T", visible(value))
    if isinstance(value, tuple):
        return cast("T", tuple(visible_data(part) for part in value))
    if isinstance(value, dict):
        return cast("T", {visible_data(key): visible_data(part) for key, part in value.items()})
    if is_dataclass(value) and not isinstance(value, type):
        held = cast("DataclassInstance", value)
        changed = {f.name: new for f in fields(held) if (new := visible_data(old := getattr(held, f.name))) is not old and new != old}
        return cast("T", replace(held, **changed)) if changed else value
    return value


def _in_line(found: re.Match[str]) -> str:
    sign = found.group()
    number = ord(sign)
    if sign == "\t":
        return sign
    if 0xDC80 <= number <= 0xDCFF:
        return f"\\x{number - 0xDC00:02x}"
    if number < 0x100:
        return _SHORT.get(sign) or f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _in_text(found: re.Match[str]) -> str:
    return found.group() if found.group() == "\n" else _in_line(found)


def _in_json(found: re.Match[str]) -> str:
    number = ord(found.group())
    if number < 0x20:  # between tokens; within strings JSON has escaped it
        return found.group()
    if number < 0x10000:
        return f"\\u{number:04x}"
    high, low = divmod(number - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
