"""The fast way through a block of JSON lines: all lines have the keys of the first, in its order, and hold numbers, flags, nulls, text, lists.

Keys and brackets are blanked out, so that what is left of the block is one long list of numbers, which simdjson parses in one go
(exactly, as any JSON reader would). Counts of commas and brackets between the quotes and braces say which numbers belong where.
Whatever is out of this order, an escape, a key more or less, a flag among numbers, makes the block go the exact, slower way: nothing is
judged here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gyrecheck.handoff.readers.jsonl_columns import column
from gyrecheck.handoff.readers.jsonl_frame import CLOSE, COMMA, OPEN, SPACE, ZERO, Bytes, Frame, Ints, frame_of, windows
from gyrecheck.handoff.readers.jsonl_lists import Lists, lists_of
from gyrecheck.handoff.readers.jsonl_plan import Plan, Value
from gyrecheck.model.fields import Column, RecordBatch

Bools = npt.NDArray[np.bool_]
DOT = ord(".")
FEW_LENGTHS = 32
LAST_DIGIT = ord("9")


def batch_of_block(path: str, block: bytes, first_line: int, plan: Plan, parser: Any) -> RecordBatch | None:  # noqa: ANN401 - simdjson's parser
    """The block's records as columns, or None when it has to go the slower way. The block ends with a newline."""
    if b"\\" in block:
        return None
    frame = frame_of(np.frombuffer(block, np.uint8), plan)
    if frame is None:
        return None
    text = np.empty(len(block) + 2, np.uint8)
    text[0], text[-1] = OPEN, CLOSE
    inner = text[1:-1]
    inner[:] = frame.raw
    _blank_frame(inner, frame, plan)
    flags: dict[str, Bools | None] = {}
    lists: dict[str, Lists | None] = {}
    for value in plan.values:
        if value.text:
            if (frame.place[:, value.at + 1] != frame.place[:, value.at] + value.behind).any():
                return None
            _blank_text(inner, frame.place[:, value.at + 1], frame.place[:, value.at + 2])
            continue
        found = _literals(inner, frame, value)
        if found is None:
            return None
        null, flags[value.key] = found
        made = lists_of(inner, frame, value, null)
        if made is None:
            return None
        lists[value.key] = made
    fractions = _fractions(inner, frame, plan)
    inner[-1] = SPACE
    counts = np.stack([frame.commas[:, v.at] + v.last if not v.text else np.ones(frame.rows, np.int64) for v in plan.values], axis=1)
    numbers = _parse(text, parser)
    if numbers is None or len(numbers) != int(counts.sum()):
        return None
    starts = (np.cumsum(counts) - counts.reshape(-1)).reshape(counts.shape)
    columns: dict[str, Column] = {}
    for at, value in enumerate(plan.values):
        made_column = column(block, frame, value, numbers, starts[:, at], fractions[:, at], flags.get(value.key), lists.get(value.key))
        if made_column is None:
            return None
        columns[value.key] = made_column
    return RecordBatch(path, frame.rows, np.arange(first_line, first_line + frame.rows), columns)


def _blank_frame(inner: Bytes, frame: Frame, plan: Plan) -> None:
    """Spaces over every key and brace; the newline becomes the comma between two lines' numbers."""
    for at, span in plan.spans:
        windows(inner, len(span))[frame.place[:, at]] = b" " * len(span)
    for at, byte in enumerate(plan.frame):
        if byte in b"{}":
            inner[frame.place[:, at]] = SPACE
    inner[frame.place[:, -1]] = COMMA


def _blank_text(inner: Bytes, begin: Ints, end: Ints) -> None:
    """Spaces over a text and its quotes, and a 0 in its place."""
    lengths = end - begin + 1
    found = np.unique(lengths)
    if len(found) <= FEW_LENGTHS:
        for length in found.tolist():
            windows(inner, length)[begin[lengths == length]] = b" " * length
    else:
        for a, b in zip(begin.tolist(), end.tolist(), strict=True):
            inner[a : b + 1] = SPACE
    inner[begin] = ZERO


def _literals(inner: Bytes, frame: Frame, value: Value) -> tuple[Bools, Bools | None] | None:
    """([rows] nulls, [rows] which of the rest are true, or None for numbers); each becomes a number. None: flags and numbers mixed."""
    begin = frame.place[:, value.at] + value.behind
    first = inner[begin]
    if not (first > LAST_DIGIT).any() or (first == OPEN).all():
        return np.zeros(frame.rows, np.bool_), None
    null, true, false = (first == letter for letter in b"ntf")
    for where, word, number in ((null, b"null", b"0   "), (true, b"true", b"1   "), (false, b"false", b"0    ")):
        if where.any():
            place = windows(inner, len(word))
            if (begin[where] > len(inner) - len(word)).any() or (place[begin[where]] != word).any():
                return None
            place[begin[where]] = number
    flag = true | false
    if not flag.any():
        return null, None
    return (null, true) if (flag | null).all() else None


def _fractions(inner: Bytes, frame: Frame, plan: Plan) -> Ints:
    """[rows, values] how many of the numbers of each are written as floats, with a dot or an exponent."""
    begin = frame.place[:, [value.at for value in plan.values]]
    end = frame.place[:, [value.at + 1 for value in plan.values]]
    dots = np.flatnonzero(inner == DOT)
    found = _per_value(dots, begin, end)
    exponents = np.flatnonzero((inner == ord("e")) | (inner == ord("E")))
    if len(exponents):  # one without a dot before it in the same number, such as 1e-05
        begins = frame.at[np.searchsorted(frame.at, exponents) - 1]
        before = np.concatenate(([-1], dots))[np.searchsorted(dots, exponents)]
        found = found + _per_value(exponents[before < begins], begin, end)
    return found


def _per_value(places: Ints, begin: Ints, end: Ints) -> Ints:
    """[rows, values] how many of the ascending `places` stand in each interval; quick where all lines are alike."""
    rows = len(begin)
    if len(places) and len(places) % rows == 0:
        grid = places.reshape(rows, -1)
        low, high = np.searchsorted(grid[0], begin[0]), np.searchsorted(grid[0], end[0])
        if (
            all(
                bool((grid[:, a] > begin[:, at]).all() and (grid[:, b - 1] < end[:, at]).all())
                for at, (a, b) in enumerate(zip(low.tolist(), high.tolist(), strict=True))
                if b > a
            )
            and int((high - low).sum()) == grid.shape[1]
        ):
            return np.broadcast_to(high - low, begin.shape)
    found: Ints = np.searchsorted(places, end) - np.searchsorted(places, begin)
    return found


def _parse(text: Bytes, parser: Any) -> npt.NDArray[np.float64] | None:  # noqa: ANN401
    try:
        document = parser.parse(text.tobytes())
        numbers = np.frombuffer(document.as_buffer(of_type="d"), np.float64)
        del document
    except (ValueError, RuntimeError, TypeError, OverflowError):
        return None
    return numbers
