"""What was found out before: compiled rules and whole results, by the hash of everything that made them; `fact_store` keeps facts.

Entries are named by what they depend on (bytes, Python version, this code), written beside and renamed, so any number of processes
may share one folder and a torn or foreign entry is merely a miss. The cache is only ever a shortcut: losing it changes nothing. What is
used is marked with the time, and `prune` takes away what is not.
"""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from gyrecheck import __version__

_MADE_BY = (
    "model/facts.py",
    "model/finding.py",
    "rulebook/lexicon.py",
    "rulebook/vocabulary.py",
    "rulebook/regions.py",
    "rulebook/lint_words.py",
    "rulebook/codes.py",
    "verdict/static.py",
    "commands/lint_check.py",
    "commands/lint_rules.py",
)
"""Beside `source`, `program` and the shapes: the code that a kept result depends on."""


@cache
def code_stamp() -> str:
    """Changes when this tool's own code does."""
    root = Path(__file__).resolve().parents[1]
    newest = max((root / name).stat().st_mtime_ns for name in _MADE_BY)
    for folder in ("source", "program", "verdict/shapes"):
        with os.scandir(root / folder) as entries:
            newest = max([newest, *(e.stat().st_mtime_ns for e in entries if e.name.endswith(".py"))])
    return f"{__version__}-{sys.version_info[0]}.{sys.version_info[1]}-{newest}"


def digest(*parts: bytes) -> str:
    """A name for content: 32 hex digits."""
    out = hashlib.blake2b(digest_size=16)
    for part in parts:
        out.update(len(part).to_bytes(8, "little"))
        out.update(part)
    return out.hexdigest()


def default_folder() -> Path:
    """`GYRECHECK_CACHE_DIR`, else the user's cache folder."""
    named = os.environ.get("GYRECHECK_CACHE_DIR")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or (Path.home() / ".cache")
    return Path(base) / "gyrecheck"


class Cache:
    """One cache folder; `folder` None keeps nothing."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._stamp = digest(code_stamp().encode())[:8]

    @property
    def facts(self) -> Path | None:
        """Where facts of this very code are kept."""
        return None if self.folder is None else self.folder / f"facts-{self._stamp}"

    def load(self, kind: str, name: str) -> bytes | None:
        """An entry's bytes, or None."""
        if self.folder is None:
            return None
        place = self._place(kind, name)
        try:
            data = place.read_bytes()
        except OSError:
            return None
        with suppress(OSError):  # a folder that may only be read is as good
            os.utime(place)  # its last use
        return data

    def save(self, kind: str, name: str, data: bytes) -> None:
        """Keep an entry; a folder that cannot be written is no error."""
        if self.folder is None:
            return
        place = self._place(kind, name)
        partial = place.with_name(f".{place.name}.{os.getpid()}")
        try:
            try:
                partial.write_bytes(data)
            except FileNotFoundError:
                place.parent.mkdir(parents=True, exist_ok=True)
                partial.write_bytes(data)
            partial.replace(place)
        except OSError:
            self.folder = None

    def prune(self) -> None:
        """Take away what nobody uses, once a day."""
        if self.folder is not None:
            from gyrecheck.source.prune import prune

            prune(self.folder, self._stamp)

    def _place(self, kind: str, name: str) -> Path:
        assert self.folder is not None  # noqa: S101 - callers asked
        return self.folder / f"{kind}-{self._stamp}" / name[:2] / name[2:]
