"""A run at one moment: what was read so far, immutable, cheap to take; the only thing the verdicts about runs look at."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

from gyrecheck.model.events import Key, Unit


class Place(NamedTuple):
    """Where a value was read: `path` and 1-based `line`; the line's text is kept for the first and last reading of a key."""

    path: str
    line: int
    time: float | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """One key in one process, as columns. The columns are complete up to the tally's limit, then thinned evenly; the figures are exact.

    `orders` counts readings of the whole run; `times` are NaN where the log has none; `totals` are running sums of `values`.
    `falls` counts readings below the one before; `rises` those above.
    """

    key: Key
    path: str
    pid: int
    side: str
    count: int
    total: float
    first: float
    last: float
    low: float
    high: float
    rises: int
    falls: int
    first_place: Place
    last_place: Place
    orders: array[int]
    lines: array[int]
    times: array[float]
    values: array[float]
    totals: array[float]
    thinned: int = 1
    """Every n-th reading is in the columns (and the last one always)."""

    @property
    def name(self) -> str:
        """The key as the log spells it."""
        return self.key.name

    def __len__(self) -> int:
        """Readings kept in the columns, at most `count`."""
        return len(self.orders)

    def index(self, order: int) -> int:
        """Index of the last kept reading at or before `order`; -1 when there is none."""
        return bisect_right(self.orders, order) - 1

    def place(self, index: int, text: str = "") -> Place:
        """Where a kept reading was read."""
        line, time = self.lines[index], self.times[index]
        for known in (self.first_place, self.last_place):
            if known.line == line and not text:
                text = known.text
        return Place(self.path, line, None if math.isnan(time) else time, text)


@dataclass(frozen=True, slots=True)
class Mark:
    """An event without a number, e.g. a restart; `order` as in `Series`."""

    name: str
    order: int
    place: Place
    side: str = ""
    pid: int = 0


@dataclass(frozen=True, slots=True)
class ProcessSeen:
    """One process that wrote lines: identified by host and pid, or by its file where lines carry no pid."""

    pid: int
    host: str
    path: str
    sides: tuple[str, ...]
    readings: int
    first_time: float | None
    last_time: float | None


@dataclass(frozen=True, slots=True)
class FileSeen:
    """One log: which format it was read as, and how much of it was understood."""

    path: str
    format: str
    lines: int = 0
    readings: int = 0
    bytes: int = 0
    side: str = ""
    mode: str = "auto"
    lacks: dict[str, str] = field(default_factory=dict)
    tolerance: float = 0.0
    tolerance_of: tuple[str, ...] = ()
    lag_unit: str = "version"
    drops_when: str = ">"
    notes: tuple[str, ...] = ()
    unit: Unit = Unit.SAMPLE
    gives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything known of a run. `ordered` is true when all readings stand in one order (one file, or times in every file)."""

    series: tuple[Series, ...] = ()
    marks: tuple[Mark, ...] = ()
    processes: tuple[ProcessSeen, ...] = ()
    files: tuple[FileSeen, ...] = ()
    readings: int = 0
    suppressed: int = 0
    """Lines that Ray's console left out."""
    suppressed_at: Place | None = None
    first_time: float | None = None
    last_time: float | None = None
    run_id: str = ""
    ordered: bool = True

    def of(self, *terms: str) -> tuple[Series, ...]:
        """All series that give one of the terms, in the order of `terms`, longest first."""
        found = [s for s in self.series if s.key.term in terms]
        return tuple(sorted(found, key=lambda s: (terms.index(s.key.term), -s.count)))

    def marked(self, *names: str) -> tuple[Mark, ...]:
        """All marks of these names, in order."""
        return tuple(m for m in self.marks if m.name in names)

    @property
    def seconds(self) -> float | None:
        """How long the run's log spans; none without times."""
        if self.first_time is None or self.last_time is None:
            return None
        return self.last_time - self.first_time
