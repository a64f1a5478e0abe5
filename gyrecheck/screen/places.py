"""What the file system and the process table of this host say beside the logs: asked, never touched."""

from __future__ import annotations

import os
import time
from pathlib import Path

from gyrecheck.model.folder import FolderBalance
from gyrecheck.model.snapshot import Snapshot


def handoff_rows(targets: tuple[str, ...], snapshot: Snapshot, folder: FolderBalance | None, *, live: bool) -> tuple[tuple[str, str], ...]:
    """The carrier's files and their age, publication and loading of weights with their age, waits, and segments that are missing."""
    rows: list[tuple[str, str]] = []
    place = next((Path(t) for t in targets if Path(t, "ready").is_dir()), None)
    if place is not None:
        ready = newest_of(place / "ready")
        taken = sum(newest_of(inner)[0] for inner in _folders(place / "taken"))
        rows.append(("in ready", f"{ready[0]} files"))
        rows.append(("in taken", f"{taken} files"))
        if ready[1] is not None and live:
            rows.append(("newest ready", f"{max(0.0, time.time() - ready[1]):.1f} s old"))
    for name, term in (("published", "published"), ("loaded", "loaded"), ("waiting", "waiting")):
        found = snapshot.of(term)
        if found:
            last = max(found, key=lambda s: s.orders[-1])
            ago = max((s.times[-1] for s in found if s.times and s.times[-1] > 1e9), default=None)
            since = "" if ago is None or not live else f", {max(0.0, time.time() - ago):.0f} s ago"
            rows.append((name, f"version {last.last:g}{since}" if term != "waiting" else f"{last.count} times{since}"))
    weights = next((Path(t) for t in targets if Path(t, "weights").is_dir()), None)
    if weights is not None and (newest := newest_of(weights / "weights")[1]) is not None and live:
        rows.append(("newest weights", f"{max(0.0, time.time() - newest):.1f} s old"))
    if folder is not None and folder.missing:
        rows.append(("missing", f"{len(folder.missing)} segments"))
    return tuple(rows)


def alive(pid: int) -> bool:
    """Whether a process of this host runs; it is asked about, never signalled."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rsplit(")", 1)[1].split()[0]
    except (OSError, IndexError):
        return not Path("/proc/self").is_dir()
    return state not in {"Z", "X"}


def size_of(path: str) -> int:
    """A file's size, 0 when it cannot be asked."""
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def newest_of(folder: Path) -> tuple[int, float | None]:
    """How many files a folder has, and when the newest was written."""
    count, newest = 0, None
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.name.startswith("."):
                    count += 1
                    written = entry.stat().st_mtime
                    newest = written if newest is None else max(newest, written)
    except OSError:
        return 0, None
    return count, newest


def _folders(place: Path) -> list[Path]:
    try:
        return [p for p in place.iterdir() if p.is_dir()]
    except OSError:
        return []


def not_begun(targets: tuple[str, ...], logs: int) -> tuple[str, ...]:
    """What to say while nothing has come: where we look, how many logs were read, what to try."""
    rows = ["No events yet.", ""]
    for target in targets:
        place = Path(target)
        state = "folder exists" if place.is_dir() else "file exists" if place.exists() else "does not exist yet"
        word = "Watching" if place.exists() else "Waits for"
        rows.append(f"{word:<9}  {target}   ({state}, {logs} logs read)")
    rows += ["", "If the program runs but logs elsewhere:   gyrecheck watch PATH"]
    return (*rows, "If it does not log counts at all:         gyrecheck run -- python train.py")
