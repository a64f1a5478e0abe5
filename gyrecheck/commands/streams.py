"""Where a command writes: standard output that any terminal can take, and files whole or not at all. Loads no option parser.

The last step before a terminal: what is not ours to send there (escapes, signs that turn the direction of text) is shown, not sent.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from gyrecheck.model.errors import GyreError
from gyrecheck.model.visible import visible_lines, visible_painted
from gyrecheck.model.whole_file import exists_as_file, write_whole

if TYPE_CHECKING:
    from pathlib import Path


class _Closed(io.TextIOBase):
    """Stands where the caller closed standard output."""

    encoding = "utf-8"

    def write(self, text: str, /) -> int:  # noqa: ARG002 - the form of a stream
        """Nothing can be said there.

        Raises:
            GyreError: always.
        """
        raise GyreError("standard output is closed", hint="open it, or give --output FILE")


def stand_in_for_closed() -> None:
    """Closed streams (`>&-`) get a stand-in: to write to standard output is then an error in a sentence; standard error is lost."""
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - for the life of the process


def write_stdout(text: str, *, painted: bool = False, exact: bool = False, last: bool = False) -> None:
    """Text to standard output, in ASCII twins where the stream's encoding lacks a symbol; flushed, so that stderr follows it.

    `painted` keeps colours (the data in it must be visible already), `exact` keeps every character (a patch for a program). A reader
    that has closed its end ends the command, but not at its `last` text: what it was to find out, it has found out.

    Raises:
        GyreError: standard output is closed or full.
        BrokenPipeError: nobody reads any more, and this was not the `last`.
    """
    if not exact:
        text = visible_painted(text) if painted else visible_lines(text)
    encoding = sys.stdout.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        from gyrecheck.report.style import ASCII_TWINS

        text = text if exact else text.translate(ASCII_TWINS).encode(encoding, "backslashreplace").decode(encoding)
    try:
        _send(sys.stdout, text, exact=exact)
    except BrokenPipeError:
        _let_go(sys.stdout)
        if not last:
            raise
    except OSError as error:
        _let_go(sys.stdout)
        raise GyreError(f"standard output cannot be written ({error.strerror or error})") from error


def write_stderr(text: str) -> None:
    """A line, or several, to standard error; where nobody takes it, it is lost."""
    encoding = sys.stderr.encoding or "utf-8"
    try:
        _send(sys.stderr, visible_lines(text).encode(encoding, "backslashreplace").decode(encoding) + "\n")
    except OSError:
        _let_go(sys.stderr)


def flush_stdout() -> None:
    """What was printed before an error comes before it; where it cannot be, it is lost."""
    try:
        sys.stdout.flush()
    except OSError:
        _let_go(sys.stdout)


def _send(stream: TextIO, text: str, *, exact: bool = False) -> None:
    if exact and hasattr(stream, "buffer"):
        stream.flush()
        stream.buffer.write(text.encode(stream.encoding or "utf-8", "surrogateescape"))
    else:
        stream.write(text)
    stream.flush()


def _let_go(stream: TextIO) -> None:
    """What is left in the stream goes nowhere, so that the interpreter's own flush at the end does not fail again."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def write_file(path: Path, text: str, *, force: bool) -> None:
    """Text to a file, whole or not at all.

    Raises:
        GyreError: the file exists and `force` is off, or it cannot be written.
    """
    if exists_as_file(path) and not force:
        raise GyreError(f"{path}: exists already", hint="--force overwrites it")
    try:
        write_whole(path, text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise GyreError(f"{path}: cannot be written ({error.strerror or error})") from error
