"""What a run said: one `Event` a counted fact, the same from hook, logs and shards."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from gyrecheck.model.visible import visible


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


@dataclass(frozen=True, slots=True)
class Key:
    """One name of a log and what it gives. Two readings of one key are the same quantity at two times.

    `cumulative` is `yes`, `no` or `detect`; `part` keys of one term add up, others are one quantity printed under two names.
    """

    name: str
    term: str
    unit: Unit = Unit.SAMPLE
    cumulative: str = "detect"
    reason: str = ""
    part: bool = False
    side: str = ""
    stream: str = ""
    sure: bool = True
    """False when the term was understood from the name alone."""


class Reading(NamedTuple):
    """All that one line said: values that belong to one moment, so that they may be balanced against each other.

    `line` is 1-based; `offset` counts bytes of the decompressed text; `time` is seconds since the epoch, or since midnight or the
    log's start where the log says no more. `raw` is the line as it stood, at most 400 bytes of it.
    """

    path: str
    line: int
    offset: int
    raw: bytes
    values: tuple[tuple[Key, float], ...] = ()
    marks: tuple[str, ...] = ()
    time: float | None = None
    pid: int = 0
    host: str = ""
    side: str = ""
    repeated: int = 0
    """How many lines like this one Ray's console left out."""

    @property
    def text(self) -> str:
        """The line for a person: ANSI and control characters taken off, invalid UTF-8 shown as escapes."""
        return _printable(self.raw)


def reading_of(event: Event) -> Reading:
    """A hook's or shard's event as a reading of its own."""
    name = event.kind if not event.reason else f"{event.kind} ({event.reason})"
    counting = "yes" if event.cumulative else "no"
    key = Key(name, event.kind, event.unit, counting, event.reason, event.kind == "dropped_other", event.side, event.stream)
    values: list[tuple[Key, float]] = [(key, event.value)]
    if event.policy_version is not None:
        values.append((Key("policy_version", "policy_version", Unit.CALL, "yes", side=event.side), float(event.policy_version)))
    source = event.source
    return Reading(
        source.path,
        source.line,
        source.offset,
        source.text.encode(),
        tuple(values),
        (),
        event.wall_clock,
        event.pid,
        event.host,
        event.side,
    )


_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\^\[\[[0-9;]*m|[\x00-\x08\x0b-\x1f\x7f]")


def _printable(raw: bytes) -> str:
    return visible(_CONTROL.sub("", raw.decode("utf-8", "backslashreplace")).strip())
