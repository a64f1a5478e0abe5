"""The fast way through a block of JSON lines: all lines have the keys of the first, in its order, and hold numbers, flags, text, or lists.

The text between the keys is blanked out, so that what is left of the block is one long list of numbers, which simdjson parses in one go
(exactly, as any JSON reader would). Counts of commas, brackets and quotes between the keys say which numbers belong where. Whatever is
out of this order, a null, an escape, an object, a key more or less, makes the block go the exact, slower way: nothing is judged here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gyrecheck.handoff.readers.jsonl_plan import Ints, Plan, columns_of
from gyrecheck.model.fields import RecordBatch, Shape

QUOTE, COMMA, DOT, OPEN, CLOSE, BRACE, END, ZERO, NINE, SPACE, NEWLINE, EXPONENT = b'",.[]{}09 \ne'
SPACES = np.uint64(0x2020202020202020)


def batch_of_block(path: str, block: bytes, first_line: int, plan: Plan, parser: Any) -> RecordBatch | None:  # noqa: ANN401 - simdjson's parser
    """The block's records as columns, or None when it has to go the slower way. The block ends with a newline."""
    if b"\\" in block or b"\r" in block:
        return None
    raw = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(raw == NEWLINE)
    rows = len(ends)
    quoted = raw == QUOTE
    each = 2 * len(plan.strings)
    if rows < 8 or np.count_nonzero(quoted) != each * rows:
        return None
    table = np.flatnonzero(quoted).reshape(rows, each)
    starts = np.concatenate(([0], ends[:-1] + 1))
    if (raw[starts] != BRACE).any() or (raw[ends - 1] != END).any() or (table[:, 0] < starts).any() or (table[:, -1] > ends).any():
        return None
    if np.count_nonzero(raw == BRACE) != rows or np.count_nonzero(raw == END) != rows or not _same_keys(raw, table, plan):
        return None
    opens, closes = np.flatnonzero(raw == OPEN), np.flatnonzero(raw == CLOSE)
    text = np.empty(len(raw) + 2, np.uint8)
    text[0], text[-1] = OPEN, CLOSE
    inner = text[1:-1]
    inner[:] = raw
    inner[opens] = SPACE
    inner[closes] = SPACE
    inner[starts] = SPACE
    inner[ends - 1] = SPACE
    inner[ends] = COMMA
    _blank_strings(inner, quoted, table, plan)
    closing = table[:, [2 * at + 1 for at, (_, is_key) in enumerate(plan.strings) if is_key]]
    letters = np.flatnonzero(inner > NINE)
    if not _blank_flags(inner, letters, closing, plan):
        return None
    commas = np.flatnonzero(inner == COMMA)
    counts = _per_key(commas, closing, ends)
    dots = np.flatnonzero(inner == DOT)
    fractions = _per_key(dots, closing, ends)
    if len(letters):
        exponents = letters[(inner[letters] | 32) == EXPONENT]
        fractions = fractions + _per_key(exponents, closing, ends) if len(exponents) else fractions
    inner[-1] = SPACE
    values = _parse(text, parser)
    if values is None or len(values) != len(commas) or (counts < 1).any():
        return None
    shapes = _shapes(opens, closes, closing, ends, commas, counts, plan)
    if shapes is None:
        return None
    columns = columns_of(block, values, counts, fractions, shapes, table, plan)
    if columns is None:
        return None
    return RecordBatch(path, rows, np.arange(first_line, first_line + rows), columns)


def _same_keys(raw: npt.NDArray[np.uint8], table: Ints, plan: Plan) -> bool:
    """Whether every line has the plan's keys at the plan's places, each followed by a colon. Compares eight bytes at a time."""
    wide = _wide(raw)
    for at, (name, is_key) in enumerate(plan.strings):
        if not is_key:
            continue
        start, end = table[:, 2 * at], table[:, 2 * at + 1]
        span = b'"' + name + b'":'
        if (end - start != len(name) + 1).any():
            return False
        if len(span) < 8:
            for k, byte in enumerate(span):
                if (raw[start + k] != byte).any():
                    return False
            continue
        for k in (*range(0, len(span) - 8, 8), len(span) - 8):
            if (wide[start + k] != np.frombuffer(span, "<u8", 1, k)[0]).any():
                return False
    return True


def _wide(raw: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """Every eight bytes of `raw`, from each byte on."""
    return np.ndarray((len(raw) - 7,), "<u8", raw, strides=(1,))


def _blank_strings(text: npt.NDArray[np.uint8], quoted: npt.NDArray[np.bool_], table: Ints, plan: Plan) -> None:
    """Spaces over every string and the colon behind a key; a text value becomes one 0."""
    if "text" in plan.kinds:
        inside = np.bitwise_xor.accumulate(quoted.view(np.uint8)).view(np.bool_)
        text[inside] = SPACE
        text[quoted] = SPACE
    wide = _wide(text)
    for at, (name, is_key) in enumerate(plan.strings):
        start = table[:, 2 * at]
        if not is_key:
            text[start] = ZERO
        elif "text" in plan.kinds:
            text[start + len(name) + 2] = SPACE
        elif len(name) + 3 < 8:
            for k in range(len(name) + 3):
                text[start + k] = SPACE
        else:
            for k in (*range(0, len(name) - 5, 8), len(name) - 5):
                wide[start + k] = SPACES


def _blank_flags(text: npt.NDArray[np.uint8], letters: Ints, closing: Ints, plan: Plan) -> bool:
    """True and false become 1 and 0; False where a flag stands out of place. Other letters than an exponent's fail in the parser."""
    wanted = [at for at, kind in enumerate(plan.kinds) if kind == "flag"]
    if not len(letters):
        return not wanted
    found = text[letters]
    true, false = letters[found == ord("t")], letters[found == ord("f")]
    if len(true) + len(false) != len(wanted) * len(closing):
        return False
    for where, word, digit in ((true, b"true", b"1"), (false, b"false", b"0")):
        for k, byte in enumerate(word):
            if (text[where + k] != byte).any():
                return False
            text[where + k] = digit[0] if k == 0 else SPACE
    if not wanted:
        return True
    places = np.sort(np.concatenate((true, false))).reshape(len(closing), len(wanted))
    for at, key in enumerate(wanted):
        gap = places[:, at] - closing[:, key]
        if (gap < 2).any() or (gap > 8).any():  # the flag stands right behind its key
            return False
    return True


def _per_key(places: Ints, closing: Ints, ends: Ints) -> Ints:
    """[rows, keys] how many of `places` (ascending) stand between each key's end and the next key's; quick where all lines are alike."""
    rows, keys = closing.shape
    if not len(places):
        return np.zeros((rows, keys), np.int64)
    if len(places) % rows == 0:
        grid = places.reshape(rows, -1)
        first = np.diff(np.searchsorted(grid[0], closing[0]), append=grid.shape[1])
        if (
            grid[0, 0] > closing[0, 0]
            and first.sum() == grid.shape[1]
            and (grid[:, -1] <= ends).all()
            and (grid[:, 0] > closing[:, 0]).all()
        ):
            stop = np.cumsum(first)
            even = all(
                bool((grid[:, b - n] > closing[:, at]).all()) and (at + 1 == keys or bool((grid[:, b - 1] < closing[:, at + 1]).all()))
                for at, (b, n) in enumerate(zip(stop.tolist(), first.tolist(), strict=True))
                if n
            )
            if even:
                return np.broadcast_to(first, (rows, keys))
    return np.diff(np.searchsorted(places, closing.reshape(-1)), append=len(places)).reshape(rows, keys)


def _parse(text: npt.NDArray[np.uint8], parser: Any) -> npt.NDArray[np.float64] | None:  # noqa: ANN401
    try:
        document = parser.parse(text.tobytes())
        values = np.frombuffer(document.as_buffer(of_type="d"), np.float64)
        del document
    except (ValueError, RuntimeError, TypeError, OverflowError):
        return None
    return values


def _shapes(
    opens: Ints, closes: Ints, closing: Ints, ends: Ints, commas: Ints, counts: Ints, plan: Plan
) -> dict[int, tuple[tuple[Shape, ...], npt.NDArray[np.int32]]] | None:
    """For each list key, its shapes and which of them each row has; None when brackets do not say one shape a row."""
    rows, _ = counts.shape
    brackets = _per_key(opens, closing, ends)
    if len(opens) != len(closes) or (_per_key(closes, closing, ends) != brackets).any():
        return None
    before = np.cumsum(brackets.reshape(-1)).reshape(brackets.shape) - brackets
    found: dict[int, tuple[tuple[Shape, ...], npt.NDArray[np.int32]]] = {}
    for at, kind in enumerate(plan.kinds):
        if kind == "text":
            continue
        if kind != "list":
            if (brackets[:, at] != 0).any() or (counts[:, at] != 1).any():
                return None
            continue
        number = brackets[:, at]
        if (number < 1).any():
            return None
        if (number == 1).all():
            lengths, which = (
                np.unique(counts[:, at], return_inverse=True) if np.ptp(counts[:, at]) else (counts[:1, at], np.zeros(rows, np.int64))
            )
            found[at] = tuple((int(n),) for n in lengths), which.astype(np.int32)
            continue
        if (number == 1).any():
            return None
        made = _two_levels(opens, closes, commas, before[:, at], number, counts[:, at])
        if made is None:
            return None
        found[at] = made
    return found


def _two_levels(
    opens: Ints, closes: Ints, commas: Ints, first: Ints, number: Ints, counts: Ints
) -> tuple[tuple[Shape, ...], npt.NDArray[np.int32]] | None:
    """[T, D] lists: the outer bracket, then T inner ones with D items each."""
    inner = number - 1
    if (counts % inner != 0).any():
        return None
    width = counts // inner
    index = np.repeat(first + 1, inner) + np.arange(int(inner.sum())) - np.repeat(np.cumsum(inner) - inner, inner)
    start = opens[index]
    behind = np.searchsorted(commas, start)
    items = np.diff(behind, append=0)
    last = np.cumsum(inner) - 1
    items[last] = np.searchsorted(commas, opens[first]) + counts - behind[last]
    if (items != np.repeat(width, inner)).any() or (np.searchsorted(commas, opens[first]) != behind[np.cumsum(inner) - inner]).any():
        return None
    end = first + number - 1  # closing brackets come in the same number, in the same interval
    if (closes[end] - closes[end - 1] != 1).any():
        return None
    pairs, which = np.unique(np.stack([inner, width]), axis=1, return_inverse=True)
    return tuple((int(a), int(b)) for a, b in pairs.T), which.reshape(-1).astype(np.int32)
