"""Where a command writes: standard output that any terminal can take, and files whole or not at all. Loads no option parser."""

from __future__ import annotations

import sys
from pathlib import Path

from gyrecheck.model.errors import GyreError
from gyrecheck.model.whole_file import exists_as_file, write_whole


def write_stdout(text: str) -> None:
    """Text to standard output, in ASCII twins where the stream's encoding lacks a symbol; flushed, so that stderr follows it."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        from gyrecheck.report.style import ASCII_TWINS

        text = text.translate(ASCII_TWINS).encode(encoding, "backslashreplace").decode(encoding)
    sys.stdout.write(text)
    sys.stdout.flush()


def write_stderr(line: str) -> None:
    """One line to standard error."""
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    sys.stderr.flush()


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
