"""The few lines of a block that hold one of some short byte strings, found a whole block at a time."""

from __future__ import annotations

import numpy as np

from gyrecheck.stream.block import Flags, Ints

LONGEST = 6
"""Bytes of a part up to which comparing every place at once is the cheapest search; longer ones are searched one hit after another."""


def lines_with(block: bytes, parts: tuple[bytes, ...]) -> tuple[bytes, Ints, Ints, int]:
    """Whole lines of `block` that hold a part, joined; for each its number and its offset from the block's start; how many lines there are.

    `block` ends with a newline.
    """
    codes = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(codes == 10)
    hits = _marked(codes, [part for part in parts if len(part) <= LONGEST])
    lines = np.unique(np.searchsorted(ends, hits))
    long = [part for part in parts if len(part) > LONGEST]
    if long:
        lines = np.union1d(lines, np.searchsorted(ends, np.array(_searched(block, long), np.int64)))
    starts = np.where(lines > 0, ends[lines - 1] + 1, 0)
    text = b"".join([block[start:end] for start, end in zip(starts.tolist(), (ends[lines] + 1).tolist(), strict=True)])
    return text, lines, starts, len(ends)


def _marked(codes: np.ndarray[tuple[int], np.dtype[np.uint8]], parts: list[bytes]) -> Ints:
    """Where the parts begin."""
    size = len(codes)
    at = np.zeros(size, np.bool_)
    for part in parts:
        here: Flags = codes[: size - len(part) + 1] == part[0]
        for after in range(1, len(part)):
            here &= codes[after : size - len(part) + 1 + after] == part[after]
        at[: len(here)] |= here
    return np.flatnonzero(at)


def _searched(block: bytes, parts: list[bytes]) -> list[int]:
    """One place in each line that holds a part."""
    found = []
    for part in parts:
        at = block.find(part)
        while at >= 0:
            found.append(at)
            end = block.find(b"\n", at)
            at = block.find(part, end) if end >= 0 else -1
    return found
