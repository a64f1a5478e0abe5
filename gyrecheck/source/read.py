"""Bytes of one file into facts; what does not parse becomes an `Unreadable`, never an exception, and never hides the other files."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
import warnings

from gyrecheck.model.facts import Module, Unreadable
from gyrecheck.source.facts import facts_of

_DEEP = 12_000
"""Frames allowed while reading: long `a + b + c` chains and `elif` ladders nest that deeply in honest files."""


def read_source(data: bytes, path: str) -> Module | Unreadable:
    """The facts of a file's bytes."""
    limit = sys.getrecursionlimit()
    try:
        if b"\0" in data:
            return Unreadable(path, data[: data.find(b"\0")].count(b"\n") + 1, 1, "does not parse: source code cannot contain null bytes")
        text = decode(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                tree = ast.parse(text, path)
            except SyntaxError as error:
                newer = _newer(text)
                if newer is None:
                    return Unreadable(path, error.lineno or 1, error.offset or 1, f"does not parse: {error.msg}")
                tree = newer
        sys.setrecursionlimit(max(limit, _DEEP))  # only now: the parser's own recursion is in C and its guard follows this limit
        return facts_of(tree, path, text.count("\n") + (not text.endswith("\n")))
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        line = getattr(error, "lineno", None) or (data[: error.start].count(b"\n") + 1 if isinstance(error, UnicodeDecodeError) else 1)
        return Unreadable(path, line, 1, f"cannot be decoded: {_plain(error)}")
    except ValueError as error:
        return Unreadable(path, 1, 1, f"does not parse: {_plain(error)}")
    except (RecursionError, MemoryError):
        return Unreadable(path, 1, 1, "does not parse: nested too deeply")
    finally:
        sys.setrecursionlimit(limit)


def decode(data: bytes) -> str:
    """Source text as Python itself would read it: coding cookie, byte order mark, any line ends.

    Raises:
        SyntaxError: an unknown or contradictory coding cookie.
        UnicodeDecodeError: bytes that the coding does not have.
    """
    if b"coding" not in data[:400] and not data.startswith(b"\xef\xbb\xbf"):
        return data.decode("utf-8")
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return data.decode(encoding)


def _plain(error: Exception) -> str:
    return str(error.args[0] if isinstance(error, SyntaxError) and error.args else error).partition("\n")[0]


def _newer(text: str) -> ast.Module | None:
    """Syntax that this Python does not have yet: read by libcst, rewritten to what it has, line for line; None when that fails too."""
    from gyrecheck.source.newer_syntax import older

    try:
        rewritten = older(text)
        return None if rewritten is None else ast.parse(rewritten)
    except (SyntaxError, ValueError, RecursionError):
        return None
