"""Recompute a run's balance from its files alone, after any kind of death: `python -m reference_loop.balance RUN_DIR`.

sampled = taken + dropped_stale + dropped_other + left + in_flight, trajectory by trajectory. Trusts no counter and no log,
shares no code with what wrote the files, and needs the standard library only.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SEGMENT = re.compile(r"\.?(\w+)-(\d+)-v\d+-n(\d+)\.(?:jsonl|arrow)(?:\.tmp)?")


@dataclass(frozen=True, slots=True)
class Balance:
    """The terms, in trajectory ids."""

    sampled: tuple[str, ...]
    taken: tuple[str, ...]
    dropped_stale: tuple[str, ...]
    dropped_other: tuple[str, ...]
    left: tuple[str, ...]
    in_flight: tuple[str, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Sampled ids that no other term has."""
        return tuple(sorted(set(self.sampled) - set(self._accounted())))

    @property
    def surplus(self) -> tuple[str, ...]:
        """Ids that the other terms have more often than they were sampled: used twice, or never born."""
        return tuple(sorted((Counter(self._accounted()) - Counter(self.sampled)).elements()))

    @property
    def holds(self) -> bool:
        """Whether each sampled trajectory has exactly one place."""
        return not self.missing and not self.surplus

    def _accounted(self) -> tuple[str, ...]:
        return self.taken + self.dropped_stale + self.dropped_other + self.left + self.in_flight

    def __str__(self) -> str:
        terms = ("sampled", "taken", "dropped_stale", "dropped_other", "left", "in_flight")
        counts = " ".join(f"{term}={len(getattr(self, term))}" for term in terms)
        return f"{counts} missing={len(self.missing)} surplus={len(self.surplus)} holds={self.holds}"


def trajectory_ids(segment: str) -> list[str]:
    """Name a segment's trajectories from its file name; none for a name that is no segment's."""
    match = SEGMENT.fullmatch(segment)
    return [f"{match[1]}-{match[2]}-{index:04d}" for index in range(int(match[3]))] if match else []


def whole_lines(paths: Iterator[Path]) -> Iterator[dict[str, Any]]:
    """Read JSON lines, leaving out a last one without a line end: its writer died in the middle of it."""
    for path in sorted(paths):
        content = path.read_bytes()
        yield from (json.loads(line) for line in content[: content.rfind(b"\n") + 1].splitlines())


def owed_lines(checkpoint: Path) -> list[dict[str, Any]]:
    """Ledger lines of the update that the trainer's checkpoint made final."""
    if not checkpoint.exists():
        return []
    content = checkpoint.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    owed: list[dict[str, Any]] = json.loads(header["__metadata__"]["trainer"])["owed"]
    return owed


def balance(run_dir: Path) -> Balance:
    """Read all terms; the programs must be dead or stopped meanwhile."""
    born = [line["segment"] for line in whole_lines(run_dir.glob("journal/*.jsonl")) if line["kind"] == "segment"]
    settled = list(whole_lines(run_dir.glob("ledger/*.jsonl")))
    named = {line["segment"] for line in settled}
    settled += [line for line in owed_lines(run_dir / "state" / "trainer.safetensors") if line["segment"] not in named]
    named |= {line["segment"] for line in settled}
    waiting = [path.name for pattern in ("ready/*", "taken/*/*") for path in run_dir.glob(pattern) if path.name not in named]
    known = set(born)
    return Balance(
        sampled=tuple(name for segment in born for name in trajectory_ids(segment)),
        taken=tuple(name for line in settled for name in line["taken"]),
        dropped_stale=tuple(name for line in settled for name in line["dropped_stale"]),
        dropped_other=tuple(name for line in settled for ids in line["dropped_other"].values() for name in ids),
        left=tuple(name for segment in waiting if not segment.startswith(".") for name in trajectory_ids(segment)),
        in_flight=tuple(
            name for segment in waiting if segment[1:-4] in known and segment.startswith(".") for name in trajectory_ids(segment)
        ),
    )


def main(arguments: list[str]) -> int:
    """Print one line for each run folder; the exit code is 1 when one does not balance."""
    worst = 0
    for argument in arguments:
        found = balance(Path(argument))
        sys.stdout.write(f"{argument}: {found}\n")
        for term in ("missing", "surplus"):
            ids = getattr(found, term)
            if ids:
                sys.stdout.write(f"  {term}: {' '.join(ids[:10])}{' ...' if len(ids) > 10 else ''}\n")
        worst |= not found.holds
    return worst


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
