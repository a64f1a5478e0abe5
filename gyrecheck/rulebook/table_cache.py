"""Rule files that were parsed and found whole before, as plain values: a start without a TOML parser. Losing the cache changes nothing.

One file a Python version, written beside and renamed, so any number of processes may share it; a torn or foreign one is a miss. An
entry counts only for a file of the same path, size and time of change, and for a schema whose code has not changed since.
"""

from __future__ import annotations

import atexit
import marshal
import os
import sys
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
        self._entries: dict[str, _Entry] | None = None
        self._fresh = False

    def get(self, path: Path, schema: type) -> dict[str, Any] | None:
        """The table of an unchanged file that once fitted `schema`."""
        if self.folder is None:
            return None
        entry = self._known().get(f"{path} {schema.__qualname__}")
        mark = _mark(path, schema)
        return entry[3] if entry is not None and mark is not None and entry[:3] == mark else None

    def put(self, path: Path, schema: type, table: dict[str, Any]) -> None:
        """Keep a table that fits; written when the process ends."""
        mark = _mark(path, schema)
        if self.folder is None or mark is None or not str(path).startswith(_OURS):
            return
        self._known()[f"{path} {schema.__qualname__}"] = (*mark, table)
        if not self._fresh:
            self._fresh = True
            atexit.register(self.save)

    def save(self) -> None:
        """Write what is kept; a folder that cannot be written is no error."""
        if self.folder is None or not self._fresh or self._entries is None:
            return
        self._fresh = False
        place = self._place()
        partial = place.with_name(f".{place.name}.{os.getpid()}")
        try:
            data = marshal.dumps((_FORM, self._entries))
            place.parent.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(data)
            partial.replace(place)
        except (OSError, ValueError):  # a table may hold what marshal does not know, such as a date
            self._entries = {}

    def _known(self) -> dict[str, _Entry]:
        if self._entries is None:
            self._entries = {}
            try:
                form, entries = marshal.loads(self._place().read_bytes())  # noqa: S302 - plain values only, in the user's own folder
                if form == _FORM and isinstance(entries, dict):
                    self._entries = entries
            except (OSError, ValueError, EOFError, TypeError):
                pass
        return self._entries

    def _place(self) -> Path:
        assert self.folder is not None  # noqa: S101 - callers asked
        return self.folder / f"rules-{sys.version_info[0]}{sys.version_info[1]}"


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
        code = Path(sys.modules[schema.__module__].__file__ or "").stat()
    except (OSError, KeyError, AttributeError):
        return None
    return seen.st_size, seen.st_mtime_ns, code.st_mtime_ns


CACHE = TableCache(None)
"""The command line gives it a folder; libraries and hooked programs keep nothing."""
