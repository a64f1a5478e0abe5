"""Lists of numbers in alike lines: their shapes from commas and brackets alone, one or two axes deep."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gyrecheck.handoff.columns import fold
from gyrecheck.handoff.readers.jsonl_frame import CLOSE, COMMA, OPEN, SPACE, ZERO, Bytes, Frame, Ints
from gyrecheck.handoff.readers.jsonl_plan import Value
from gyrecheck.model.fields import Shape


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """One key's values."""

    null: npt.NDArray[np.bool_]
    """[rows]"""
    counts: Ints
    """[rows] numbers of each; 0 for null and for an empty list."""
    shapes: tuple[Shape, ...]
    shape_of: npt.NDArray[np.int32]
    """[rows] -1 for null"""


def lists_of(inner: Bytes, frame: Frame, value: Value, null: npt.NDArray[np.bool_]) -> Lists | None:
    """The values' shapes, with their brackets blanked out of `inner`; None when they are of no form that is read here."""
    opens = frame.opens[:, value.at]
    commas = frame.commas[:, value.at]
    items = commas + value.last
    if not opens.any():
        if (items != 1).any():
            return None
        counts, shape_of = (~null).astype(np.int64), -null.astype(np.int32)
        return Lists(null, counts, ((),), shape_of)
    is_list = opens > 0
    if (is_list == null).any() or (items[null] != 1).any():
        return None
    first = frame.token[:, value.at][is_list] + 1
    last = frame.token[:, value.at + 1][is_list] - (1 if value.last else 2)
    if (frame.kind[first] != OPEN).any() or (frame.kind[last] != CLOSE).any() or (last <= first).any():
        return None
    begin, end = frame.at[first], frame.at[last]
    if (begin != frame.place[is_list, value.at] + value.behind).any():
        return None
    lengths = items[is_list].copy()
    if (opens[is_list] == 1).all():
        inner[begin] = SPACE
        inner[end] = SPACE
        empty = end - begin == 1
        inner[begin[empty]] = ZERO  # a number in its place, which is not taken
        lengths[empty] = 0
        shapes, which = _one_axis(lengths)
        own = lengths
    else:
        made = _two_axes(inner, frame, first, last)
        if made is None:
            return None
        shapes, which, own = made
        if (own != lengths).any():
            return None
    shape_of = np.full(frame.rows, -1, np.int32)
    counts = np.zeros(frame.rows, np.int64)
    shape_of[is_list] = which
    counts[is_list] = own
    return Lists(null, counts, shapes, shape_of)


def _one_axis(lengths: Ints) -> tuple[tuple[Shape, ...], npt.NDArray[np.int32]]:
    if lengths.min() == lengths.max():
        return ((int(lengths[0]),),), np.zeros(len(lengths), np.int32)
    found, which = np.unique(lengths, return_inverse=True)
    return tuple((int(n),) for n in found), which.astype(np.int32)


def _two_axes(inner: Bytes, frame: Frame, first: Ints, last: Ints) -> tuple[tuple[Shape, ...], npt.NDArray[np.int32], Ints] | None:
    """Lists of lists: behind each inner one comes a comma and the next, or the end; every number stands in an inner one."""
    sizes = last - first + 1
    index = np.repeat(first - (np.cumsum(sizes) - sizes), sizes) + np.arange(int(sizes.sum()))
    kind, at = frame.kind[index], frame.at[index]
    row = np.repeat(np.arange(len(sizes)), sizes)
    depth = np.cumsum((kind == OPEN).astype(np.int64) - (kind == CLOSE))
    between = (kind == COMMA) & (depth == 1)
    opened = (kind == OPEN) & (depth == 2)
    if (
        depth.max() != 2
        or depth.min() != 0
        or depth[-1] != 0
        or not np.array_equal(kind == OPEN, opened | (np.diff(depth, prepend=0) == 1))
    ):
        return None
    follows = np.zeros(len(kind), np.bool_)  # behind `[` of the outer list, or behind a comma between inner ones
    follows[1:] = ((kind == OPEN) & (depth == 1) | between)[:-1]
    if not np.array_equal(follows, opened):
        return None
    inner[at[(kind == OPEN) | (kind == CLOSE)]] = SPACE
    heads = np.flatnonzero(opened)
    lengths = np.add.reduceat((kind == COMMA) & (depth == 2), heads, dtype=np.int64) + 1
    total = int(lengths.sum())
    folded = fold(lengths, ((),), np.zeros(total, np.int32), np.ones(total, np.int64))
    return fold(np.bincount(row[heads], minlength=len(sizes)), *folded)
