"""Many readings of one shape at once, as columns: what a log's known lines become on their way into a tally."""

from __future__ import annotations

from dataclasses import dataclass, field

from gyrecheck.model.events import Key, Reading


@dataclass(slots=True)
class Rows:
    """Readings of one shape and one process, in their order. `orders` counts all readings of the batch from 0.

    `values` has a column a key; `times` is None where the log has none. No reading of it has a mark or repeats.
    """

    keys: tuple[Key, ...]
    values: list[list[float]]
    orders: list[int]
    lines: list[int]
    times: list[float] | None
    first: Reading
    """The first reading and the last one as a whole."""
    last: Reading


@dataclass(slots=True)
class Batch:
    """All that a piece of a log said: `count` readings, as columns where shapes are known, else one by one with their order."""

    count: int = 0
    rows: list[Rows] = field(default_factory=list)
    others: list[tuple[int, Reading]] = field(default_factory=list)
