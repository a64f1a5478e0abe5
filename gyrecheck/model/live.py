"""What a hooked run left behind: counters per process, call sites, and the rare facts in their order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class SiteCount(NamedTuple):
    """Calls counted at one place. `entry` ones are exact totals of a counted function; others say who called it.

    `letter` is `S` or `T`; `role` is `marked` for what the project marked itself; `label` names the entry, or `file:line function`.
    A tuple, because a live screen makes thousands of them a second.
    """

    letter: str
    role: str
    label: str
    entry: bool
    calls: int


@dataclass(frozen=True, slots=True)
class ProcessCounts:
    """One shard: the process that wrote it, and its counters. `start` is seconds since the epoch."""

    path: str
    pid: int
    parent: int
    host: str
    run_id: str
    line: str
    python: str
    start: float
    cells: dict[str, int]
    sites: tuple[SiteCount, ...] = ()

    def calls(self, letter: str, *, marked: bool | None = None) -> int:
        """Sample (`S`) or update (`T`) calls; `marked` takes only the project's own marks, or only what the hook found itself.

        Of all sample calls, those that the project marked are the ones that count where there are any: a marked rollout makes its env steps.
        Of all updates together, those within another one (the optimizer steps of a marked update) are no further ones.
        """
        if letter == "S" and marked is None and (own := self.calls("S", marked=True)):
            return own + self.cells.get("sample_calls", 0)
        found = sum([s.calls for s in self.sites if s.letter == letter and s.entry and (marked is None or (s.role == "marked") is marked)])
        spare = self.cells.get("sample_calls" if letter == "S" else "update_calls", 0)
        nested = self.cells.get("nested_updates", 0) if letter == "T" and marked is None else 0
        return found + (0 if marked else spare) - nested

    @property
    def env_steps(self) -> int:
        """Steps of environments that the hook found itself."""
        return sum([s.calls for s in self.sites if s.letter == "S" and s.entry and s.role != "marked"])


@dataclass(frozen=True, slots=True)
class HookEvent:
    """One rare fact. `line` is its 1-based line in `path`; `fields` are as the hook wrote them."""

    kind: str
    at: float
    pid: int
    path: str
    line: int
    fields: dict[str, object] = field(default_factory=dict)

    def number(self, name: str, default: float = 0.0) -> float:
        """A field as a number; `default` where it is absent or no number."""
        value = self.fields.get(name)
        return float(value) if isinstance(value, (int, float)) else default

    def text(self, name: str) -> str:
        """A field as text; empty where it is absent."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""

    def words(self, name: str) -> tuple[str, ...]:
        """A field that is a list, as texts."""
        value = self.fields.get(name)
        return tuple(str(part) for part in value) if isinstance(value, list) else ()


@dataclass(frozen=True, slots=True)
class Measured:
    """Numbers that a program printed behind a name, once for each round or so; `line` is 1-based in `path`.

    `must` is what they must be by that name; with `first` only the first of them must, the others come after a step of their own.
    """

    name: str
    values: tuple[float, ...]
    path: str
    line: int
    text: str = ""
    must: float = 0.0
    first: bool = False


@dataclass(frozen=True, slots=True)
class HookedRun:
    """All shards and events of a run folder. `reached` are the pids in which the hook was started at all."""

    folder: str
    processes: tuple[ProcessCounts, ...] = ()
    events: tuple[HookEvent, ...] = ()
    reached: tuple[int, ...] = ()
    problems: tuple[str, ...] = ()
    """Files that could not be read, and why."""

    def of(self, *kinds: str) -> tuple[HookEvent, ...]:
        """All events of these kinds, in time."""
        return tuple(e for e in self.events if e.kind in kinds)

    def total(self, cell: str) -> int:
        """A counter summed over the processes."""
        return sum(p.cells.get(cell, 0) for p in self.processes)

    def calls(self, letter: str, *, marked: bool | None = None) -> int:
        """Sample or update calls summed over the processes; marks in one of them decide for all what a sample call is."""
        if letter == "S" and marked is None and (own := [p for p in self.processes if p.calls("S", marked=True)]):
            return sum(p.calls("S") for p in own)
        return sum(p.calls(letter, marked=marked) for p in self.processes)

    @property
    def env_steps(self) -> int:
        """Steps of environments that the hook found itself, in all processes."""
        return sum(p.env_steps for p in self.processes)
