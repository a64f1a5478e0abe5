"""A hooked run's folder, looked at again and again: every look gives what `read_run` would, and costs what has changed.

Stores into a mapped file raise no event and change no time stamp, so contents are compared. Read with plain calls, never mapped: a
file that somebody cuts short would end a reader that maps it.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from gyrecheck.model import shard_layout as layout
from gyrecheck.model.live import HookedRun, HookEvent, ProcessCounts, SiteCount
from gyrecheck.stream.follow_file import FollowedFile, Lines
from gyrecheck.stream.shards import PROCESSES, event_lines, read_shard

TABLE = "hooks.json"
OUTPUTS = ("stdout.log", "stderr.log")
_CELLS = struct.Struct(f"={len(layout.CELLS)}q")
_SEQUENCE = 8 * layout.INDEX["sequence"] + (0 if sys.byteorder == "little" else 7)
"""The byte that says whether the ledger's cells are being written: their sequence is odd then."""
_ROWS = layout.SITES_AT - layout.CELLS_AT
_Site = tuple[str, str, str, bool]
"""Letter (empty where the row's name is none), role, label, whether it is an entry."""
_made = tuple.__new__
_PATIENCE = 2
"""Looks that find one set of totals half written before it is taken as it stands: its writer was killed."""


def is_hooked(folder: Path) -> bool:
    """Whether the hook writes, or wrote, into this folder."""
    return (folder / TABLE).is_file() or (folder / PROCESSES).is_file() or any(folder.glob(f"*{layout.SUFFIX}"))


@dataclass(slots=True)
class _Shard:
    """One shard as it was last seen. `sites` are the parsed names of its rows, in their order; `changed` is a monotonic time."""

    counts: ProcessCounts
    changed: float
    raw: bytes = b""
    sites: list[_Site | None] = field(default_factory=list)
    size: int = _ROWS + layout.SITE.size
    """Bytes that a look reads: the cells, the known rows and one more."""
    torn: int = 0
    descriptor: int = -1
    """Kept open where the process may have that many: a shard's name is its own for ever."""

    def see(self, raw: bytes) -> None:
        """Take what was read; a row's name is whole once its count has left 0."""
        old = self.counts
        cells = old.cells
        if raw[: _CELLS.size] != self.raw[: _CELLS.size]:
            cells = dict(zip(layout.CELLS, _CELLS.unpack_from(raw)))  # noqa: B905 - both as long as the layout says
        size, sites = layout.SITE.size, self.sites
        for at in range(_ROWS + size * len(sites) + 8, len(raw), size):  # the first byte of each further row's name
            if not raw[at]:
                break
            sites.append(None)
        found = []
        for at, calls in enumerate(_calls(len(sites)).unpack_from(raw, _ROWS)):
            if not calls:
                continue
            site = sites[at]
            if site is None:
                site = sites[at] = _named(raw[_ROWS + size * at + 8 : _ROWS + size * (at + 1)])
            if site[0]:
                found.append(_made(SiteCount, (*site, calls)))
        self.size = _ROWS + size * min(layout.SITE_ROOM, len(sites) + 1)
        self.raw = raw[: self.size]
        self.counts = ProcessCounts(
            old.path, old.pid, old.parent, old.host, old.run_id, old.line, old.python, old.start, cells, tuple(found)
        )  # fmt: skip

    def close(self) -> None:
        """Let go of the file."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


@dataclass(slots=True)
class FollowedShards:
    """The shards, events and reached pids of one folder."""

    folder: Path
    run: HookedRun | None = None
    _shards: dict[str, _Shard] = field(default_factory=dict)
    _bad: dict[str, str] = field(default_factory=dict)
    _logs: dict[str, FollowedFile] = field(default_factory=dict)
    _events: list[HookEvent] = field(default_factory=list)
    _lines: dict[str, list[tuple[bytes, int]]] = field(default_factory=dict)
    _reached: list[int] = field(default_factory=list)
    _torn: list[str] = field(default_factory=list)
    _kept: int = 0

    def poll(self) -> tuple[HookedRun | None, bool]:
        """The run as it is now, and whether anything changed since the last look; None when nothing there was written by the hook."""
        try:
            with os.scandir(self.folder) as entries:
                names = [entry.name for entry in entries]
        except OSError:
            return self.run, False
        shards = [name for name in names if name.endswith(layout.SUFFIX)]
        if not shards and PROCESSES not in names:
            return self.run, False
        changed = self.run is None
        for name in shards:
            changed |= self._look(name)
        for name in names:
            if name.endswith(layout.EVENTS_SUFFIX) or name == PROCESSES:
                changed |= self._follow(name)
        if changed:
            self.run = self._whole()
        return self.run, changed

    def quiet(self, path: str) -> float:
        """Seconds since the shard `path` was last seen to change."""
        known = self._shards.get(Path(path).name)
        return time.monotonic() - known.changed if known else 0.0

    def close(self) -> None:
        """Close every file."""
        for file in self._logs.values():
            file.close()
        for shard in self._shards.values():
            shard.close()
        self._kept = 0

    def _look(self, name: str) -> bool:
        known = self._shards.get(name)
        try:
            if known is None:
                return self._first(name)
            raw = self._part(known, known.size)
            if raw == known.raw or len(raw) < _ROWS:
                return False
            if raw[-layout.SITE.size + 8 : -layout.SITE.size + 9] > b"\0":
                raw = self._part(known, layout.SIZE)  # rows came: how many is seen only in the whole
        except (OSError, ValueError) as error:
            news = self._bad.get(name) != str(error)
            self._bad[name] = str(error)
            return news
        if raw[_SEQUENCE] % 2 and known.torn < _PATIENCE:  # a set of ledger totals is being written: the next look has it whole
            known.torn += 1
            return False
        known.torn, known.changed = 0, time.monotonic()
        known.see(raw)
        return True

    def _part(self, shard: _Shard, size: int) -> bytes:
        """So many bytes from the cells on."""
        if shard.descriptor >= 0:
            return os.pread(shard.descriptor, size, layout.CELLS_AT)
        descriptor = os.open(shard.counts.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        if self._kept < _keepable():
            self._kept += 1
            shard.descriptor = descriptor
            return os.pread(descriptor, size, layout.CELLS_AT)
        try:
            return os.pread(descriptor, size, layout.CELLS_AT)
        finally:
            os.close(descriptor)

    def _first(self, name: str) -> bool:
        counts = read_shard(Path(f"{self.folder}/{name}"))
        self._shards[name] = _Shard(counts, time.monotonic())
        self._bad.pop(name, None)
        for line, number in self._lines.pop(_stem(name), ()):  # events that were there before the shard told their pid
            self._events += event_lines(line, number, counts.pid, f"{self.folder}/{_stem(name)}{layout.EVENTS_SUFFIX}", self._torn)
        return True

    def _follow(self, name: str) -> bool:
        file = self._logs.get(name)
        if file is None:
            file = self._logs[name] = FollowedFile(f"{self.folder}/{name}")
        fresh = [item for item in file.poll() if isinstance(item, Lines)]
        for item in fresh:
            if name == PROCESSES:
                self._reached += [int(e.number("pid")) for e in event_lines(item.data, item.first_line, 0, item.path, self._torn)]
                continue
            shard = self._shards.get(_stem(name) + layout.SUFFIX)
            if shard is None:
                self._lines.setdefault(_stem(name), []).append((item.data, item.first_line))
            else:
                self._events += event_lines(item.data, item.first_line, shard.counts.pid, item.path, self._torn)
        return bool(fresh)

    def _whole(self) -> HookedRun:
        orphans = [
            event
            for stem, parts in self._lines.items()
            for data, number in parts
            for event in event_lines(data, number, 0, f"{self.folder}/{stem}{layout.EVENTS_SUFFIX}", [])
        ]
        problems = [f"{name}: {what}" for name, what in sorted(self._bad.items())]
        return HookedRun(
            str(self.folder),
            tuple(sorted((shard.counts for shard in self._shards.values()), key=lambda p: (p.start, p.pid))),
            tuple(sorted((*self._events, *orphans), key=lambda e: (e.at, e.path, e.line))),
            tuple(self._reached),
            (*problems, *self._torn),
        )


@cache
def _calls(rows: int) -> struct.Struct:
    """The counts of so many rows."""
    return struct.Struct("=" + f"q{layout.SITE.size - 8}x" * rows)


def _named(raw: bytes) -> _Site:
    parts = raw.split(b"\0", 1)[0].decode("utf-8", "replace").split(" ", 3)
    return (parts[1], parts[2], parts[3], parts[0] == "E") if len(parts) == 4 else ("", "", "", False)


@cache
def _keepable() -> int:
    """How many shards may stay open: half of what the process may have."""
    try:
        import resource
    except ModuleNotFoundError:  # no such limit is told on this system
        return 64
    return min(1024, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)


def _stem(name: str) -> str:
    return name.removesuffix(layout.EVENTS_SUFFIX).removesuffix(layout.SUFFIX)
