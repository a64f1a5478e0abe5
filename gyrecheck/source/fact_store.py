"""The facts of every file that was ever read, in one database: one transaction a run, any number of processes at once.

A row is named by the hash of the file's bytes. Beside the facts it holds their `mark`, the hash of all that an analysis reads of the
file: two files with one mark give the same findings, so a changed comment costs no analysis. A database that is torn, locked or of
another kind is an empty one; a row that does not decode is a miss.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from gyrecheck.model.facts import Module
from gyrecheck.source.cache import digest

_AT_ONCE = 400
"""Names in one query."""
_WAIT_S = 10.0
_TABLE = "CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, mark TEXT, lines INTEGER, data BLOB) WITHOUT ROWID"


class Row(msgspec.Struct, frozen=True):
    """The facts of one file's bytes, without its path."""

    name: str
    mark: str
    lines: int
    data: bytes


def row_of(name: str, module: Module) -> Row:
    """A file's facts as they are kept."""
    data = msgspec.msgpack.encode(module._replace(path="", lines=0))
    return Row(name, digest(data), module.lines, data)


def module_of(data: bytes, path: str, lines: int) -> Module | None:
    """The way back, under the name `path`; None for bytes that are no facts."""
    try:
        return _decoder().decode(data)._replace(path=path, lines=lines)
    except (msgspec.DecodeError, ValueError):
        return None


@cache
def _decoder() -> msgspec.msgpack.Decoder[Module]:
    return msgspec.msgpack.Decoder(Module)


class FactStore:
    """The database in `folder`; None keeps nothing. Every failure of the disk is a miss, and ends the keeping, not the run."""

    def __init__(self, folder: Path | None) -> None:
        self._place = None if folder is None else folder / "facts.sqlite"

    def marks(self, names: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Mark and lines of those files whose facts are known."""
        return {name: (mark, lines) for name, mark, lines in self._select("name, mark, lines", names)}

    def data(self, names: Sequence[str]) -> dict[str, bytes]:
        """The facts of those files that are known, encoded."""
        return {name: data for name, data in self._select("name, data", names) if isinstance(data, bytes)}

    def keep(self, rows: Iterable[Row]) -> None:
        """Add rows; all of them or, when the disk fails, none."""
        if self._place is None:
            return
        try:
            self._place.parent.mkdir(parents=True, exist_ok=True)
            self._write([(r.name, r.mark, r.lines, r.data) for r in rows])
        except (sqlite3.Error, OSError):
            self._place = None

    def _write(self, rows: list[tuple[str, str, int, bytes]]) -> None:
        try:
            self._insert(rows)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:  # torn, or no database at all: it is only ever a shortcut
            assert self._place is not None  # noqa: S101 - the caller asked
            self._place.unlink(missing_ok=True)
            self._insert(rows)

    def _insert(self, rows: list[tuple[str, str, int, bytes]]) -> None:
        base = self._open(writable=True)
        try:
            with base:
                base.execute(_TABLE)
                base.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?, ?, ?)", rows)
        finally:
            base.close()

    def _select(self, columns: str, names: Sequence[str]) -> list[tuple[Any, ...]]:
        if self._place is None or not names or not self._place.is_file():
            return []
        out: list[tuple[Any, ...]] = []
        try:
            base = self._open(writable=False)
            try:
                for at in range(0, len(names), _AT_ONCE):
                    asked = names[at : at + _AT_ONCE]
                    marks = ",".join("?" * len(asked))
                    out.extend(base.execute(f"SELECT {columns} FROM facts WHERE name IN ({marks})", tuple(asked)))  # noqa: S608 - ours
            finally:
                base.close()
        except sqlite3.Error:
            return []
        return out

    def _open(self, *, writable: bool) -> sqlite3.Connection:
        base = sqlite3.connect(str(self._place), timeout=_WAIT_S)
        if writable:
            base.execute("PRAGMA synchronous=OFF")  # a lost row is a miss
        return base
