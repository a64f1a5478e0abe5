"""Follows several files, folders and patterns at once; files that appear later are picked up. What a folder's logs are is the ledger's."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from gyrecheck.stream.follow_file import Change, FollowedFile, Lines
from gyrecheck.stream.follow_packed import PACKED, unpacked
from gyrecheck.stream.open_log import is_live_log
from gyrecheck.stream.run_folder import is_run_folder

DEPTH, FOLDERS = 4, 256
"""How deep, and in how many folders each, logs are looked for at every poll."""


@dataclass(slots=True)
class FollowedPack:
    """A packed log, read once, when it is there; it is never written to again."""

    path: str
    behind: bool = False
    _read: bool = False

    def poll(self) -> list[Lines | Change]:
        """All its lines at the first look that finds it whole; one that cannot be read is a gap, once."""
        if self._read or not os.path.exists(self.path):
            return []
        self._read = True
        file = FollowedFile(self.path)
        out: list[Lines | Change] = []
        try:
            for block in unpacked(self.path):
                file.emit(block, out)
        except OSError as error:
            out.append(Change(self.path, "gap", f"cannot be read ({error.strerror or error}): lines may be missing"))
        return out

    def close(self) -> bytes:
        """Nothing is open."""
        return b""


class Source(Protocol):
    """What a follower polls: a file, or a pipe."""

    behind: bool

    def poll(self) -> list[Lines | Change]:
        """What came since the last poll."""

    def close(self) -> bytes:
        """Stop; the bytes of a last line without its end."""


@dataclass(slots=True)
class Follower:
    """Several files, folders and patterns at once; files that appear later are picked up. A folder's logs are those the ledger reads."""

    targets: tuple[str, ...]
    files: dict[str, Source] = field(default_factory=dict)

    def poll(self) -> list[Lines | Change]:
        """What is new in any file, file by file in name order."""
        for path, within in self._paths():
            if path not in self.files and os.path.splitext(path)[0] not in self.files:  # a log that was followed and then packed is known
                self.files[path] = FollowedPack(path) if path.endswith(PACKED) else FollowedFile(path, history=within)
        return [item for path in sorted(self.files) for item in self.files[path].poll()]

    @property
    def behind(self) -> bool:
        """True when more is known to be there: poll again at once."""
        return any(file.behind for file in self.files.values())

    def close(self) -> dict[str, bytes]:
        """Stop; the unfinished last line of each file that has one."""
        return {path: held for path, file in self.files.items() if (held := file.close())}

    def _paths(self) -> list[tuple[str, bool]]:
        """Each path with whether it was found in a folder."""
        found: list[tuple[str, bool]] = []
        for target in self.targets:
            if os.path.isdir(target):
                found += [(path, True) for path in logs_in(target)]
            elif glob.has_magic(target) and not os.path.exists(target):
                found += [(path, False) for path in sorted(glob.glob(target, recursive=True)) if os.path.isfile(path)]
            else:
                found.append((target, False))
        return found


def logs_in(folder: str, depth: int = DEPTH) -> list[str]:
    """The logs below a folder, packed ones too: no rotated ones, which belong to another log, no files of the hook, no segments."""
    own = is_run_folder(Path(folder))
    found, below = [], []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    below.append(entry.path)
                elif _log_here(entry.name, own=own) and entry.is_file():
                    found.append(entry.path)
    except OSError:
        return []
    if not own and depth > 1:
        for inner in below[:FOLDERS]:
            found += logs_in(inner, depth - 1)
    return sorted(found)


def _log_here(name: str, *, own: bool) -> bool:
    if own:
        return name.endswith(".log") and is_live_log(name)
    plain, end = os.path.splitext(name)
    return is_live_log(plain if end in PACKED else name)
