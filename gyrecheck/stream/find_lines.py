"""The few lines of a block that hold one of some short byte strings, found a whole block at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gyrecheck.stream.block import Ints

LONGEST = 6
"""Bytes of a part up to which comparing every place at once is the cheapest search; longer ones are searched one hit after another."""

RARE = 1 << 11
"""Bytes a line with a single byte of interest, from which on jumping from hit to hit beats comparing every place."""
PIECE = 1 << 16


def lines_with(block: bytes, parts: tuple[bytes, ...]) -> tuple[bytes, Ints, Ints, int]:
    """Whole lines of `block` that hold a part, joined; for each its number and its offset from the block's start; how many lines there are.

    `block` ends with a newline.
    """
    codes = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(codes == 10)
    hits: list[int] = []
    compared = [
        part for part in parts
        if 1 < len(part) <= LONGEST or not _searched(block, part, hits, len(block) // RARE if len(part) == 1 else len(block))
    ]  # fmt: skip
    places = np.concatenate((_marked(codes, compared), np.array(hits, np.int64))) if hits else _marked(codes, compared)
    lines = np.unique(np.searchsorted(ends, places))
    starts = np.where(lines > 0, ends[lines - 1] + 1, 0)
    text = b"".join([block[start:end] for start, end in zip(starts.tolist(), (ends[lines] + 1).tolist(), strict=True)])
    return text, lines, starts, len(ends)


def _marked(codes: npt.NDArray[np.uint8], parts: list[bytes]) -> Ints:
    """Where the parts begin; a piece at a time, so that all flags stay in the nearest cache."""
    size = len(codes)
    any_part, this, byte = (np.empty(PIECE, np.bool_) for _ in range(3))
    found: list[Ints] = []
    for start in range(0, size, PIECE):
        width = min(PIECE, size - start)
        flags = any_part[:width]
        flags[:] = False
        for part in parts:
            room = min(width, size - start - len(part) + 1)
            if room <= 0:
                continue
            here = np.equal(codes[start : start + room], part[0], out=this[:room])
            for after in range(1, len(part)):
                here &= np.equal(codes[start + after : start + after + room], part[after], out=byte[:room])
            flags[:room] |= here
        found.append(np.flatnonzero(flags) + start)
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _searched(block: bytes, part: bytes, hits: list[int], most: int) -> bool:
    """Add one place in each line that holds the part; False where more than `most` lines do."""
    at = block.find(part)
    while at >= 0:
        hits.append(at)
        most -= 1
        if most < 0:
            return False
        end = block.find(b"\n", at)
        at = block.find(part, end) if end >= 0 else -1
    return True
