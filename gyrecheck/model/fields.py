"""Trajectory data as columns: what readers yield, what a profile saw, what a contract wants.

A `RecordBatch` holds consecutive records of one file in columnar form, so that no later step needs to know which file type they came
from. Arrays are numpy's, seen here only through the protocol `Array`: this floor imports the standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from gyrecheck.model.finding import Scalar

Shape = tuple[int, ...]
"""Axes of one record's value; -1 is an axis whose length differs inside the record (ragged)."""


class Array(Protocol):
    """The part of `numpy.ndarray` that types on this floor promise."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""

    @property
    def dtype(self) -> Any:  # noqa: ANN401 - numpy's own type, which this floor may not import
        """The numpy dtype."""

    def __len__(self) -> int: ...


class Kind(str, Enum):
    """What the values of a column are, whatever the width they are stored in."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    TEXT = "text"
    OBJECT = "object"
    """A nested value that is not opened: a list of objects, or an empty object."""
    NONE = "none"
    MIXED = "mixed"
    """More than one of the above among the records (int and float together count as float)."""


class State(int, Enum):
    """Whether a row has the key at all, and a value under it."""

    ABSENT = 0
    NULL = 1
    PRESENT = 2


class Level(str, Enum):
    """What one value of a field belongs to."""

    RECORD = "record"
    STEP = "step"
    TOKEN = "token"  # noqa: S105 - a token of text
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Column:
    """The values of one key over the rows of a batch.

    `flat` holds every scalar of all rows one after another in C order (1-D; bool, int64, uint64, float32 or float64; NaN stands for text
    and for a null inside a list). `counts[i]` scalars belong to row i and have shape `shapes[shape_of[i]]` (`shape_of` is -1 where
    `state[i]` is not PRESENT). `texts` is aligned with `flat` when the column holds text, else None. `holes` are the positions in `flat`
    of nulls inside lists. `kind_of` gives the row's `Kind` as its index in `kinds`. All numbers are exact for integers up to 2**63.
    """

    key: str
    kind: Kind
    dtype: str
    """The file's own dtype (`float32`, `bfloat16`); for text formats the kind's name."""
    rows: int
    state: Array
    shape_of: Array
    shapes: tuple[Shape, ...]
    counts: Array
    flat: Array
    kind_of: Array
    kinds: tuple[Kind, ...]
    texts: tuple[str | None, ...] | None = None
    holes: Array | None = None
    items: Mapping[str, Column] | None = None
    """Where rows hold lists of plain objects (spans, turns): for each key in them, the list of its values in each row."""


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Consecutive records of one file. `records[i]` is the 1-based record (a line in JSONL) that row i came from.

    One record is one row, unless it holds a list of objects under one of the contract's `opened` keys (`steps`, `samples`): then each
    of them is a row with the same record number, and the record's other values stand in each of these rows.
    """

    path: str
    rows: int
    records: Array
    columns: Mapping[str, Column]
    header: Mapping[str, Scalar] = field(default_factory=dict)
    """Values of a segment's header line, or a file's metadata; also present as columns `header.<key>`."""
    axes: str = ""
    """`undecided` when a row's list may be time or batch and nothing in the file tells which; then no order of steps is judged.
    `swapped` when the file holds [time, batch, ...] and the first two axes were exchanged on reading."""
    promised: bool = False
    """Whoever handed it over says that its rows stand in the order of their steps."""


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field of a contract: a role, the names it goes by, and what its values may be."""

    role: str
    aliases: tuple[str, ...] = ()
    level: Level = Level.STEP
    kinds: tuple[Kind, ...] = ()
    """Kinds that are in order; empty = any."""
    required: bool = False
    shape: tuple[int, ...] | None = None
    """Shape of one record's value, -1 = any length; None = not said."""
    dtype: str = ""
    minimum: float | None = None
    maximum: float | None = None
    nullable: bool = False
    side: str = "sampling"
    """Which side writes it, and so must mend it."""
    summary: str = ""


@dataclass(frozen=True, slots=True)
class FieldSeen:
    """What a profile saw of one key over all records read.

    Statistics are over the finite numbers only; `mean` and `std` are NaN when there are none. `shapes` gives each distinct shape with
    the number of rows that have it and the first record that does, in order of appearance (at most 16).
    """

    key: str
    role: str
    kind: Kind
    dtype: str
    rows: int
    absent: int
    null: int
    empty: int
    """Rows with a list of length 0."""
    values: int
    """Scalars in all rows together."""
    holes: int
    """Nulls inside lists."""
    nan: int
    infinite: int
    zeros: int
    minimum: float | None
    maximum: float | None
    mean: float
    std: float
    constant: bool
    """Every scalar of every row is the same (at least two scalars)."""
    shapes: tuple[tuple[Shape, int, int], ...]
    example: str


class Tier(str, Enum):
    """How a field of the sampler's side meets one of the trainer's side (requirement H5, and what it leaves out)."""

    SAME = "same"
    RENAMED = "renamed"
    CONVERT = "convert"
    MERGED = "merged"
    MISSING = "missing"
    EXTRA = "extra"
