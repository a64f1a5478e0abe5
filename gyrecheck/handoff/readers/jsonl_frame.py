"""Where the quotes, braces, commas and brackets of a block of alike lines stand; looked for once, eight bytes of bookkeeping each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gyrecheck.handoff.readers.jsonl_plan import Plan

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
QUOTE, COMMA, OPEN, CLOSE, BRACE, END, ZERO, SPACE, NEWLINE = b'",[]{}0 \n'
PIECE = 1 << 17
"""Bytes that are looked through at once; they stay in the processor's cache."""
MIN_ROWS = 8
_FRAME = np.zeros(256, np.bool_)
_FRAME[[QUOTE, BRACE, END, NEWLINE]] = True


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """R lines with F bytes of frame each. What stands behind frame byte f of line r, up to the next one, is gap [r, f]."""

    raw: Bytes
    rows: int
    at: Ints
    """[M] places of all marks (bytes of the frame, commas, brackets) outside of text."""
    kind: Bytes
    """[M] which byte each of them is."""
    token: Ints
    """[R, F] index among the M marks of each byte of the frame."""
    place: Ints
    """[R, F] its place in the block."""
    commas: Ints
    """[R, F] commas in each gap."""
    opens: Ints
    """[R, F] opening brackets in each gap; there are as many closing ones."""


def frame_of(raw: Bytes, plan: Plan) -> Frame | None:
    """The frame of a block whose lines are all as planned; None when one is not."""
    rows = int(np.count_nonzero(raw < SPACE))
    at = _marks(raw)
    kind = raw[at]
    if plan.texts:
        quote = kind == QUOTE
        inside = np.bitwise_xor.accumulate(quote.view(np.uint8)).view(np.bool_) & ~quote
        at, kind = at[~inside], kind[~inside]
    if rows < MIN_ROWS or not len(kind) or kind[-1] != NEWLINE:
        return None
    found = _alike(kind, rows, plan) or _uneven(kind, rows, plan)
    if found is None:
        return None
    token, commas, opens = found
    place = at[token]
    if place[0, 0] != 0 or (place[1:, 0] != place[:-1, -1] + 1).any() or not _same_keys(raw, place, plan):
        return None
    return Frame(raw, rows, at, kind, token, place, commas, opens)


def _alike(kind: Bytes, rows: int, plan: Plan) -> tuple[Ints, Ints, Ints] | None:
    """`token`, `commas` and `opens` where every line has the marks of the first, one for one; None where they differ."""
    if len(kind) % rows:
        return None
    first = kind[: len(kind) // rows]
    if (kind.reshape(rows, -1) != first).any():
        return None
    one = _uneven(first, 1, plan)
    if one is None:
        return None
    token, commas, opens = one
    shape = (rows, token.shape[1])
    return token + np.arange(rows)[:, None] * len(first), np.broadcast_to(commas, shape), np.broadcast_to(opens, shape)


def _uneven(kind: Bytes, rows: int, plan: Plan) -> tuple[Ints, Ints, Ints] | None:
    """The same for lines that differ, as lists of many lengths do."""
    token = np.flatnonzero(_FRAME[kind])
    width = len(plan.frame)
    if len(token) != rows * width or (kind[token].reshape(rows, width) != np.frombuffer(plan.frame, np.uint8)).any():
        return None
    opens, closes = (
        np.bincount(np.searchsorted(token, np.flatnonzero(kind == mark)) - 1, minlength=len(token)).reshape(rows, width)
        for mark in (OPEN, CLOSE)
    )
    commas = np.diff(token, append=len(kind)).reshape(rows, width) - 1 - opens - closes
    fixed = np.array(plan.commas, np.int64)
    bare = fixed >= 0
    if (opens != closes).any() or opens[:, bare].any() or (commas[:, bare] != fixed[bare]).any():
        return None
    return token.reshape(rows, width), commas, opens


def windows(raw: Bytes, width: int) -> npt.NDArray[np.bytes_]:
    """Every `width` bytes of `raw`, from each byte on, as one value each: read and written at many places at once."""
    made: npt.NDArray[Any] = np.ndarray((len(raw) - width + 1,), f"S{width}", raw, strides=(1,))
    return made


def _marks(raw: Bytes) -> Ints:
    found = np.empty(len(raw), np.bool_)
    one = np.empty(PIECE, np.bool_)
    for begin in range(0, len(raw), PIECE):
        piece, out = raw[begin : begin + PIECE], found[begin : begin + PIECE]
        also = one[: len(piece)]
        np.equal(piece, QUOTE, out=out)
        for mark in (COMMA, OPEN, CLOSE, BRACE, END, NEWLINE):
            np.equal(piece, mark, out=also)
            np.logical_or(out, also, out=out)
    return np.flatnonzero(found)


def _same_keys(raw: Bytes, place: Ints, plan: Plan) -> bool:
    """Whether every line has the plan's keys at the plan's places, each followed by a colon."""
    return all(
        bool(place[-1, at] <= len(raw) - len(span)) and bool((windows(raw, len(span))[place[:, at]] == span).all())
        for at, span in plan.spans
    )
