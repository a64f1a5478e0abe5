"""One key's numbers or text of alike lines as a column, exactly as the slower way would make it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gyrecheck.handoff.readers.jsonl_frame import Frame, Ints
from gyrecheck.handoff.readers.jsonl_lists import Lists
from gyrecheck.handoff.readers.jsonl_plan import Value
from gyrecheck.model.fields import Column, Kind, State

MAX_EXACT = 2.0**53
"""Whole numbers from here on are not exact as float64."""
LONG = 48
"""Numbers a list from which on slices are quicker than an index."""


def column(
    block: bytes,
    frame: Frame,
    value: Value,
    numbers: npt.NDArray[np.float64],
    starts: Ints,
    fractions: Ints,
    true: npt.NDArray[np.bool_] | None,
    lists: Lists | None,
) -> Column | None:
    """The column of one value; None where float64 does not hold its numbers exactly.

    `numbers` are all of the block in document order, of which row r's begin at `starts[r]` and `fractions[r]` are written as floats;
    `true` is given for flags.
    """
    rows = frame.rows
    if lists is None:
        return _text(block, frame, value)
    state = np.where(lists.null, np.int8(State.NULL), np.int8(State.PRESENT))
    zeros = np.zeros(rows, np.int8)
    kind_of = zeros
    kinds: tuple[Kind, ...] = (Kind.FLOAT,)
    flat: npt.NDArray[Any]
    if true is not None:
        flat, kinds = true[~lists.null], (Kind.BOOL,)
    else:
        flat = _taken(numbers, starts, lists.counts)
        if lists.null.all():
            kinds = (Kind.NONE,)
        elif len(flat):
            floats = fractions > 0
            if not floats.any():
                if np.abs(flat).max() >= MAX_EXACT:
                    return None
                flat, kinds = flat.astype(np.int64), (Kind.INT,)
            elif (fractions < lists.counts).any():
                kinds, kind_of = (Kind.INT, Kind.FLOAT), floats.astype(np.int8)
    kind = kinds[0] if len(kinds) == 1 else Kind.FLOAT
    return Column(value.key, kind, kind.value, rows, state, lists.shape_of, lists.shapes, lists.counts, flat, kind_of, kinds)


def _taken(numbers: npt.NDArray[np.float64], starts: Ints, counts: Ints) -> npt.NDArray[np.float64]:
    """The numbers of all rows behind each other."""
    if not len(counts):
        return numbers[:0]
    low, high = int(counts.min()), int(counts.max())
    if low == high == 1:
        return numbers[starts]
    if low == high:
        even: Ints = (starts[:, None] + np.arange(low)).reshape(-1)
        return numbers[even]
    if int(counts.sum()) >= LONG * len(counts):
        return np.concatenate([numbers[a : a + n] for a, n in zip(starts.tolist(), counts.tolist(), strict=True)])
    ragged: Ints = np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
    return numbers[ragged]


def _text(block: bytes, frame: Frame, value: Value) -> Column | None:
    rows = frame.rows
    begin, end = frame.place[:, value.at + 1] + 1, frame.place[:, value.at + 2]
    try:
        texts = tuple([block[a:b].decode() for a, b in zip(begin.tolist(), end.tolist(), strict=True)])
    except UnicodeDecodeError:
        return None
    return Column(
        value.key, Kind.TEXT, "text", rows, np.full(rows, int(State.PRESENT), np.int8), np.zeros(rows, np.int32), ((),),
        np.ones(rows, np.int64), np.full(rows, np.nan), np.zeros(rows, np.int8), (Kind.TEXT,), texts,
    )  # fmt: skip
