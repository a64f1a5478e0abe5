"""What a run said: one `Event` a counted fact, the same from hook, logs and shards."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Unit(str, Enum):
    """What one of a count is. Counts of different units never add."""

    TRAJECTORY = "trajectory"
    GROUP = "group"
    ROW = "row"
    STEP = "step"
    TOKEN = "token"  # noqa: S105 - a unit of text
    BATCH = "batch"
    CALL = "call"
    SAMPLE = "sample"
    """The log does not say which; never mixed with a named unit."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where an event was read. `line` is 1-based, `offset` in bytes; a shard has line 0."""

    path: str
    line: int = 0
    offset: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """One counted fact. `kind` is a term of `rules/` (e.g. `sampled`, `taken`, `dropped_stale`, `left`, `update`, `published`, `loaded`).

    `value` is a count in `unit` (or a plain number for gauges such as `age` and `loss`); `cumulative` says whether it is a running
    total. `wall_clock` is seconds since the epoch, or seconds since the log's start where only relative time is known.
    """

    kind: str
    value: float
    unit: Unit = Unit.SAMPLE
    cumulative: bool = False
    side: str = ""
    pid: int = 0
    host: str = ""
    run_id: str = ""
    policy_version: int | None = None
    sample_step: int | None = None
    wall_clock: float | None = None
    trajectory_id: str = ""
    reason: str = ""
    source: Source = Source("")
    stream: str = ""
    """Which series this belongs to, when a log carries several (label, rank, file)."""
