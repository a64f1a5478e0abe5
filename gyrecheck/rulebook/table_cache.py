"""Rule files that were parsed and found whole before, as plain values: a start without a TOML parser. Losing the cache changes nothing.

One file a folder of rules and Python version, written beside and renamed, so any number of processes may share it; a torn or foreign
one is a miss. An entry counts only for a file of the same size and time of change, and for a schema whose code has not changed since.
"""

from __future__ import annotations

import atexit
import functools
import marshal
import os
import sys
import zlib
from pathlib import Path
from typing import Any

from gyrecheck import __version__

_FORM = f"{__version__} {sys.version_info[0]}.{sys.version_info[1]} {marshal.version}"
_OURS = f"{Path(__file__).resolve().parents[2]}{os.sep}"
"""Only rule files that come with gyrecheck are kept; a project's own are few and change."""
_Entry = tuple[int, int, int, dict[str, Any]]


class TableCache:
    """Raw tables by path and schema. `folder` None keeps nothing."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._entries: dict[str, dict[str, _Entry]] = {}
        self._fresh: set[str] = set()

    def get(self, path: Path, schema: type) -> dict[str, Any] | None:
        """The table of an unchanged file that once fitted `schema`."""
        if self.folder is None:
            return None
        place, name = os.path.split(path)
        entry = self._known(place).get(f"{name} {schema.__qualname__}")
        mark = _mark(path, schema) if entry is not None else None
        return entry[3] if entry is not None and mark is not None and entry[:3] == mark else None

    def put(self, path: Path, schema: type, table: dict[str, Any]) -> None:
        """Keep a table that fits; written when the process ends."""
        mark = _mark(path, schema)
        if self.folder is None or mark is None or not str(path).startswith(_OURS):
            return
        place, name = os.path.split(path)
        self._known(place)[f"{name} {schema.__qualname__}"] = (*mark, table)
        if not self._fresh:
            atexit.register(self.save)
        self._fresh.add(place)

    def save(self) -> None:
        """Write what is kept; a folder that cannot be written is no error."""
        fresh, self._fresh = self._fresh, set()
        for place in fresh:
            target = self._file(place)
            partial = target.with_name(f".{target.name}.{os.getpid()}")
            try:
                data = marshal.dumps((_FORM, place, self._entries[place]))
                target.parent.mkdir(parents=True, exist_ok=True)
                partial.write_bytes(data)
                partial.replace(target)
            except (OSError, ValueError):  # a table may hold what marshal does not know, such as a date
                del self._entries[place]

    def _known(self, place: str) -> dict[str, _Entry]:
        """What is kept of one folder of rules."""
        if place not in self._entries:
            self._entries[place] = {}
            try:
                form, folder, entries = marshal.loads(self._file(place).read_bytes())  # noqa: S302 - plain values, the user's own folder
                if (form, folder) == (_FORM, place) and isinstance(entries, dict):
                    self._entries[place] = entries
            except (OSError, ValueError, EOFError, TypeError):
                pass
        return self._entries[place]

    def _file(self, place: str) -> Path:
        assert self.folder is not None  # noqa: S101 - callers asked
        mark = f"{zlib.crc32(place.encode('utf-8', 'surrogateescape')):08x}"
        return self.folder / f"rules-{sys.version_info[0]}{sys.version_info[1]}-{Path(place).name}-{mark}"


def cache_folder() -> Path | None:
    """`GYRECHECK_CACHE_DIR`, else the user's cache folder; None without a home."""
    named = os.environ.get("GYRECHECK_CACHE_DIR")
    if named:
        return Path(named)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or (Path.home() / ".cache")) / "gyrecheck"
    except RuntimeError:
        return None


def _mark(path: Path, schema: type) -> tuple[int, int, int] | None:
    """What an entry depends on: the file's size and time of change, and that of the schema's code."""
    try:
        seen = path.stat()
        return seen.st_size, seen.st_mtime_ns, _code_changed(schema.__module__)
    except (OSError, KeyError, AttributeError):
        return None


@functools.cache
def _code_changed(module: str) -> int:
    return Path(sys.modules[module].__file__ or "").stat().st_mtime_ns


CACHE = TableCache(None)
"""The command line gives it a folder; libraries and hooked programs keep nothing."""
