"""Replacements on the bytes of a file, all of a fix or none of it, and the difference as a patch that `git apply` takes.

Outside the replaced spans every byte stays: the text is decoded by its own coding cookie without touching line ends, and only a text that
encodes back to the very same bytes is edited.
"""

from __future__ import annotations

import codecs
import difflib
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gyrecheck.model.errors import GyreError
from gyrecheck.model.fix import Fix, Replacement

_LONE_RETURN = re.compile(r"\r(?!\n)")


@dataclass(frozen=True, slots=True)
class Edited:
    """A file's bytes after some fixes, those that were made, and those that were not because another one touches the same place."""

    source: bytes
    made: tuple[Fix, ...]
    left: tuple[Fix, ...]


def encoding_of(source: bytes) -> str | None:
    """The encoding by BOM or cookie, UTF-8 otherwise; None when it is unknown."""
    try:
        return tokenize.detect_encoding(io.BytesIO(source).readline)[0]
    except (SyntaxError, UnicodeError):
        return None


def decode(source: bytes) -> str | None:
    """The text without its BOM, or None when it would not encode back to the same bytes, or lines end in a bare carriage return."""
    encoding = encoding_of(source)
    if encoding is None:
        return None
    try:
        text = source.decode(encoding)
        same = text.encode(encoding) == source
    except (UnicodeError, LookupError):
        return None
    return text if same and not _LONE_RETURN.search(text) and "\f" not in text else None


def apply_fixes(source: bytes, fixes: Sequence[Fix]) -> Edited:
    """The fixes made in the order given; one that overlaps an earlier one is left for the next run, equal insertions are made once.

    Nothing is made in a file that cannot be edited, or that would no longer parse.
    """
    text, encoding = decode(source), encoding_of(source)
    if text is None or encoding is None or not fixes:
        return Edited(source, (), tuple(fixes))
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    taken: dict[tuple[int, int], str] = {}
    made: list[Fix] = []
    left: list[Fix] = []
    for fix in fixes:
        cuts: dict[tuple[int, int], str] = {}
        for span, new in _cuts(fix.replacements, starts, len(text)):
            cuts[span] = cuts.get(span, "") + new  # a fix may insert twice at one place, in its own order
        known = all(taken.get(span) == new for span, new in cuts.items() if span in taken)
        free = all(span in taken or not any(_touch(span, other) for other in taken) for span in cuts)
        if cuts and known and free:
            taken.update(cuts)
            made.append(fix)
        else:
            left.append(fix)
    edited = text
    for (start, end), new in sorted(taken.items(), reverse=True):
        edited = edited[:start] + new + edited[end:]
    from gyrecheck.source.concrete import parses

    try:
        result = edited.encode(encoding)
    except UnicodeError:
        return Edited(source, (), tuple(fixes))
    if not parses(edited):
        return Edited(source, (), tuple(fixes))
    return Edited(result, tuple(made), tuple(left))


def _cuts(replacements: Sequence[Replacement], starts: Sequence[int], length: int) -> Iterator[tuple[tuple[int, int], str]]:
    def offset(line: int, column: int) -> int:
        return min(starts[line - 1] + column - 1, length) if line <= len(starts) else length

    for r in replacements:
        yield (offset(r.line, r.column), offset(r.end_line, r.end_column)), r.text


def _touch(a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Spans that share a character, an insertion within a span, or two insertions at one place (whose order nobody knows)."""
    if a[0] == a[1] or b[0] == b[1]:
        return a == b or (a[0] < b[0] < a[1]) or (b[0] < a[0] < b[1])
    return a[0] < b[1] and b[0] < a[1]


def unified_diff(path: str, before: bytes, after: bytes) -> str:
    """The change as a patch for `git apply` or `patch -p1`; empty when nothing changed. Line ends are kept as they are."""
    if before == after:
        return ""
    bom = before.startswith(codecs.BOM_UTF8) and after.startswith(codecs.BOM_UTF8)
    encoding = encoding_of(before) or "utf-8"
    name = "utf-8" if bom else encoding
    old, new = (data.decode(name, "replace").split("\n") for data in (before, after))
    for lines in (old, new):
        last = lines.pop()
        lines[:] = [f"{line}\n" for line in lines] + ([f"{last}\n\\ No newline at end of file\n"] if last else [])
    return "".join(difflib.unified_diff(old, new, f"a/{path}", f"b/{path}"))


def write_source(path: Path, before: bytes, after: bytes) -> None:
    """Write the new bytes over the old ones in place, so that mode and links stay.

    Raises:
        GyreError: the file changed since it was read, or cannot be written.
    """
    try:
        if path.read_bytes() != before:
            raise GyreError(f"{path}: changed while it was checked, so it was not fixed", hint="run the command again")
        path.write_bytes(after)
    except OSError as error:
        raise GyreError(f"{path}: cannot be written ({error.strerror or error})") from error
