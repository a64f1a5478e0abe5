"""The trainer's half of the hand-over: each trajectory gets one fate, once, whatever dies in between.

Order: rename from `ready/` into `taken/<consumer>/` (the claim), use, one ledger line a segment (the settlement), rename
into `settled/<consumer>/`. A segment in `taken/` whose ledger line is missing is put back at the next start; one whose line
is there is only moved on. Where use changes weights, `checkpoint` holds the ledger lines until they are written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reference_loop.segment import SegmentName
from reference_loop.store import DAMAGED, READY, SETTLED, TAKEN, Lines, segments


@dataclass(slots=True)
class Totals:
    """Trajectories by fate, over the run's whole life."""

    taken: int = 0
    dropped_stale: int = 0
    dropped_other: int = 0

    def add(self, line: dict[str, Any]) -> None:
        """Count one ledger line."""
        self.taken += len(line["taken"])
        self.dropped_stale += len(line["dropped_stale"])
        self.dropped_other += sum(len(ids) for ids in line["dropped_other"].values())


@dataclass(slots=True)
class Fates:
    """What became of one segment's trajectories; one line of the ledger."""

    segment: SegmentName
    taken: list[str] = field(default_factory=list)
    dropped_stale: list[str] = field(default_factory=list)
    dropped_other: dict[str, list[str]] = field(default_factory=dict)

    def line(self, trainer_version: int, train_step: int) -> dict[str, Any]:
        """Write the line; `trainer_version` is the version that the ages were measured against."""
        return {
            "kind": "settled",
            "segment": str(self.segment),
            "policy_version": self.segment.policy_version,
            "trainer_version": trainer_version,
            "train_step": train_step,
            "taken": self.taken,
            "dropped_stale": self.dropped_stale,
            "dropped_other": self.dropped_other,
        }


class Consumer:
    """Claims and settles segments and keeps the ledger `ledger/<consumer>.jsonl`."""

    def __init__(self, folder: Path, name: str, *, keep: int, fsync: bool) -> None:
        self._folder = folder
        self._ready = folder / READY
        self._taken = folder / TAKEN / name
        self._settled = folder / SETTLED / name
        self._damaged = folder / DAMAGED / name
        for place in (self._ready, self._taken, self._settled):
            place.mkdir(parents=True, exist_ok=True)
        self._keep = keep
        self._ledger = Lines(folder / "ledger" / f"{name}.jsonl", fsync=fsync)
        self.totals = Totals()
        self._done: set[str] = set()
        for line in self._ledger.found:
            self._book(line)

    def _book(self, line: dict[str, Any]) -> None:
        self.totals.add(line)
        self._done.add(line["segment"])

    def recover(self, owed: list[dict[str, Any]]) -> int:
        """Write ledger lines that a checkpoint says are owed, then put back what is claimed and not settled.

        Returns the number of trajectories put back.
        """
        self.settle([line for line in owed if line["segment"] not in self._done])
        return self.put_back()

    def put_back(self) -> int:
        """Return every claimed, unsettled segment to `ready/`; the number of their trajectories."""
        returned = 0
        for name in segments(self._taken):
            if str(name) in self._done:
                self.retire(name)
            else:
                (self._taken / str(name)).replace(self._ready / str(name))
                returned += name.trajectories
        return returned

    def is_settled(self, name: SegmentName) -> bool:
        """Whether the ledger already has this segment, however it came to be in `ready/` again."""
        return str(name) in self._done

    def claim(self) -> tuple[SegmentName, bytes] | None:
        """Claim the oldest unread segment and read it; None when there is none."""
        for name in segments(self._ready):
            path = self._taken / str(name)
            try:
                (self._ready / str(name)).replace(path)
            except FileNotFoundError:
                continue  # another consumer was faster
            return name, path.read_bytes()
        return None

    def unread(self) -> int:
        """Trajectories in `ready/`, from the file names."""
        return sum(name.trajectories for name in segments(self._ready))

    def producers_ended(self) -> bool:
        """Whether there are producers and each has written its journal's last line: nothing more will come."""
        journals = list((self._folder / "journal").glob("*.jsonl"))
        return bool(journals) and all(b'"kind":"end"' in path.read_bytes()[-200:].rpartition(b"\n{")[2] for path in journals)

    def settle(self, lines: list[dict[str, Any]]) -> None:
        """Write ledger lines; after an OSError nothing has happened, and the call may be repeated."""
        if lines:
            self._ledger.append(*lines)
        for line in lines:
            self._book(line)

    def retire(self, name: SegmentName, *, damaged: bool = False) -> None:
        """Move a settled segment out of the way, and remove the oldest kept ones."""
        place = self._damaged if damaged else self._settled
        place.mkdir(parents=True, exist_ok=True)
        (self._taken / str(name)).replace(place / str(name))
        kept = segments(self._settled)
        for old in kept[: max(0, len(kept) - self._keep)]:
            (self._settled / str(old)).unlink()

    def read_again(self, name: SegmentName) -> None:
        """Forget that a segment was settled and offer it again; only the fault `consumed-twice` does this."""
        (self._taken / str(name)).replace(self._ready / str(name))
        self._done.discard(str(name))

    def close(self) -> None:
        """Close the ledger."""
        self._ledger.close()
