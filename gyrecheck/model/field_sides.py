"""The two sides of a handoff as they are compared: each field with dtype, whole shape, and the place it was seen at.

Arrays are numpy's, seen here only through the protocol `Array`: this floor imports the standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gyrecheck.model.fields import Array, Kind, Tier
from gyrecheck.model.key_reads import KeyRead


@dataclass(frozen=True, slots=True)
class SideField:
    """One key of one side."""

    key: str
    role: str = ""
    """The contract's role; empty = none of them."""
    kind: Kind | None = None
    dtype: str = ""
    """Empty = not known."""
    shape: tuple[int, ...] | None = None
    """Whole shape over all records read; -1 = lengths differ along this axis; None = not known."""
    axes: tuple[str, ...] = ()
    """Names of the axes where a source says them."""
    fractional: bool = False
    """Some value is no whole number."""
    largest: float = 0.0
    """Largest magnitude among the finite values."""
    read: KeyRead | None = None
    """For a source: the read that demands the field."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Which of the first two axes is the batch and which is time."""

    order: str = ""
    """`BT`, `TB`, `N` for one row a step, or empty = the data do not tell."""
    batch: int = 0
    time: int = 0
    """Lengths of the axes; 0 = not known, -1 = differs."""
    reasons: tuple[str, ...] = ()
    """What told it."""
    against: tuple[str, ...] = ()
    """What tells the opposite."""


@dataclass(frozen=True, slots=True, eq=False)
class DataSide:
    """One side: files of data, or the trainer's source."""

    path: str
    fields: tuple[SideField, ...]
    layout: Layout = Layout()
    records: int = 0
    """0 for a source."""
    source: bool = False
    arrays: Mapping[str, Array] = field(default_factory=dict)
    """Whole arrays by key where all records have one shape; bounded in size."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SidePair:
    """One row of the two-sided table."""

    sampler: SideField | None
    trainer: SideField | None
    tier: Tier
    renamed: bool = False
    reason: str = ""
    """What differs: `[T,B,D] -> [B,T,D]`, `float64 -> float32`, `with truncated`, `not read`."""
    loses: str = ""
    """What the conversion loses or leaves undone; empty when nothing."""
    by_content: bool = False
    """Told by equal values, not by a name."""
    last_axis: int = 0
    """1 where the trainer's field has one more axis of length 1 at its end, -1 where it has one such less."""
