"""The sampler's half of the hand-over: a segment is born once, under one name, and is never lost after that.

Order: temporary file in `ready/`, journal line, rename. The journal line is the moment of birth: a segment it names counts
as sampled, published or not, and the next start publishes it; a temporary file that no line names was never counted and is
removed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reference_loop.segment import SegmentName
from reference_loop.store import READY, Lines, segments, sync_folder, write_whole


class Producer:
    """Publishes segments and keeps the journal `journal/<producer>.jsonl`."""

    def __init__(self, folder: Path, name: str, *, fsync: bool) -> None:
        self._ready = folder / READY
        self._ready.mkdir(parents=True, exist_ok=True)
        self._fsync = fsync
        self._journal = Lines(folder / "journal" / f"{name}.jsonl", fsync=fsync)
        lines = self._journal.found
        born = [line for line in lines if line["kind"] == "segment"]
        self.last: dict[str, Any] = born[-1] if born else {}
        """The journal's newest segment line; empty before the first."""
        self.sampled_total = sum(line["trajectories"] for line in born)
        self.recovered = self._recover(name, {line["segment"]: line["trajectories"] for line in born})
        """Trajectories that were counted but not yet published when the last program died; published now."""

    def _recover(self, producer: str, born: dict[str, int]) -> int:
        recovered = 0
        for path in self._ready.glob(f".{producer}-*.tmp"):
            name = path.name[1 : -len(".tmp")]
            if name in born:
                path.replace(self._ready / name)
                recovered += born[name]
            else:
                path.unlink()
        return recovered

    def publish(self, name: SegmentName, content: bytes, journal_line: dict[str, Any]) -> None:
        """Bring a segment into the world; after an OSError nothing has happened, and the call may be repeated."""
        temporary = self._ready / f".{name}.tmp"
        write_whole(temporary, content, fsync=self._fsync)
        try:
            self._journal.append({"kind": "segment", "segment": str(name)} | journal_line)
        except OSError:
            temporary.unlink()
            raise
        temporary.replace(self._ready / str(name))
        if self._fsync:
            sync_folder(self._ready)
        self.sampled_total += name.trajectories

    def unread(self) -> int:
        """Segments that no consumer has claimed."""
        return len(segments(self._ready))

    def close(self, reason: str) -> None:
        """Write the journal's last line: this producer will add nothing until it is started again."""
        self._journal.append({"kind": "end", "reason": reason})
        self._journal.close()
