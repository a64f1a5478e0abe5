"""Keeps the lint cache small: what nobody has used for two weeks goes, then the oldest until the rest fits.

Once a day, by the first run that keeps something. Any number of processes may prune and use one folder at once: whatever is missing is
a miss, a file that another process holds open stays readable for it, and nothing here raises.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

_DAY_S = 86_400.0
_MARK = "pruned"
_OURS = re.compile(r"(codes|rules|results|alike|cells|facts)-[0-9a-f]{8}")
"""Folders of `Cache`; whatever else lies in the folder is not touched."""
DAYS = 14
MOST_BYTES = 200_000_000
"""For the facts of one version of the code, and for all its other entries together."""


def prune(folder: Path, current: str, *, now: float | None = None) -> bool:
    """Prune `folder` unless that was done within a day; `current` ends the names of the folders in use. Says whether it was done."""
    now = time.time() if now is None else now
    mark = folder / _MARK
    try:
        if mark.exists() and now - mark.stat().st_mtime < _DAY_S:
            return False
        mark.touch()  # first: others need not do the same
        os.utime(mark, (now, now))
        with os.scandir(folder) as entries:
            folders = [Path(e.path) for e in entries if e.is_dir(follow_symlinks=False) and _OURS.fullmatch(e.name)]
    except OSError:
        return False
    kept: list[tuple[float, int, Path]] = []
    for place in folders:
        found = list(_files(place))
        if not place.name.endswith(current) and all(now - at > DAYS * _DAY_S for at, _, _ in found):
            shutil.rmtree(place, ignore_errors=True)
        elif place.name.startswith("facts-"):
            if sum(size for _, size, _ in found) > MOST_BYTES:  # rows have no age: the next run reads the files that still matter
                _remove(path for _, _, path in found)
        else:
            kept += found
    _remove(path for at, _, path in kept if now - at > DAYS * _DAY_S)
    _remove(_beyond([entry for entry in kept if now - entry[0] <= DAYS * _DAY_S]))
    return True


def _files(folder: Path) -> Iterator[tuple[float, int, Path]]:
    """Time of last use, size and path of every file below."""
    for at, _, names in os.walk(folder):
        for name in names:
            path = Path(at, name)
            with contextlib.suppress(OSError):
                seen = path.stat()
                yield seen.st_mtime, seen.st_size, path


def _beyond(entries: list[tuple[float, int, Path]]) -> Iterator[Path]:
    """The oldest files that no longer fit."""
    total = 0
    for _, size, path in sorted(entries, reverse=True):
        total += size
        if total > MOST_BYTES:
            yield path


def _remove(paths: Iterator[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()
