"""Many readings of one shape at once, as columns: what a log's known lines become on their way into a tally.

Columns are memory views over 8-byte numbers (`d` or `q`), so that any floor may read them without a library.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gyrecheck.model.events import Key, Reading


@dataclass(slots=True)
class Rows:
    """Readings of one shape and one process, in their order. `orders` (int64) counts all readings of the batch from 0.

    `values` has a float64 column a key; `lines` is int64, `times` float64, or None where the log has none. No reading of it has a mark
    or repeats.
    """

    keys: tuple[Key, ...]
    values: list[memoryview]
    orders: memoryview
    lines: memoryview
    times: memoryview | None
    first: Reading
    """The first reading and the last one as a whole."""
    last: Reading


@dataclass(slots=True)
class Batch:
    """All that a piece of a log said: `count` readings, as columns where shapes are known, else one by one with their order."""

    count: int = 0
    rows: list[Rows] = field(default_factory=list)
    others: list[tuple[int, Reading]] = field(default_factory=list)
