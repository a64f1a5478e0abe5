"""A block of whole lines laid out for arithmetic: its segments, their shapes, and where each run of digits begins and ends.

A *segment* is what stands between two line ends, a lone carriage return being one too. Its *shape* is its text with each run of digits as
one NUL byte (a block with NULs of its own is read in another way), so lines of one shape differ in nothing but their digits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_PAD = 16
_FRONT = b"\n" * _PAD
"""In front of the first line, so that the 16 bytes before any number may be read."""
_ZEROS, _LOW = np.uint64(0x3030303030303030), np.uint64(0x000000FF000000FF)
_FOURS, _EIGHTS = np.uint64(0x000F424000000064), np.uint64(0x0000271000000001)
_TEN, _BYTE, _TWO_BYTES, _HALF = (np.uint64(number) for number in (10, 8, 16, 32))
_PIECE = 1 << 13
_TENS = 10.0 ** np.arange(23)
EXACT = 15
"""Decimal digits that a float64 holds exactly: a number of no more is one division away from what `float` gives."""


class Block:
    """Whole lines, each ended by a newline. All places are places in `text`; `shown` are the lines as they stood, of the same length."""

    __slots__ = ("_shown", "_values", "_words", "ends", "lengths", "owner", "run_ends", "shapes", "starts", "text")

    def __init__(self, lines: bytes, shown: bytes) -> None:
        self.text = text = _FRONT + lines
        self._shown = shown
        codes = np.frombuffer(text, np.uint8)
        digit = (codes - 48) < 10
        turns = np.flatnonzero(digit[1:] != digit[:-1]) + 1
        self.run_ends: Ints = turns[1::2]
        self.lengths: Ints = turns[1::2] - turns[0::2]
        """Digits of each run."""
        squeezed = codes.copy()
        squeezed[turns[0::2]] = 0
        newline = codes == 10
        if b"\r" in lines:
            returns = codes == 13
            squeezed[returns] = 10
            stops = np.flatnonzero(newline | returns)
        else:
            stops = np.flatnonzero(newline)
        self.starts: Ints = stops[_PAD - 1 : -1] + 1
        self.ends: Ints = stops[_PAD:]
        self.owner: Ints = np.cumsum(newline[stops[_PAD - 1 : -1]]) - 1
        """For each segment the line that holds it, from 0."""
        self.shapes: list[bytes] = squeezed.tobytes().translate(None, b"0123456789").split(b"\n")[_PAD:-1]
        self._words: npt.NDArray[np.uint64] = np.ndarray((len(text) - 7,), "<u8", text, 0, (1,))
        self._values: npt.NDArray[np.uint64] | None = None

    def segment(self, at: int) -> bytes:
        """A segment as it stood."""
        return self._shown[self.starts[at] - _PAD : self.ends[at] - _PAD]

    def whole(self, runs: Ints) -> npt.NDArray[np.uint64]:
        """The values of runs of at most 16 digits."""
        if self._values is None:
            self._values = np.empty(len(self.run_ends), np.uint64)
            for start in range(0, len(self._values), _PIECE):
                piece = slice(start, start + _PIECE)
                _eight(self._words, self.run_ends[piece], np.minimum(self.lengths[piece], 8), self._values[piece])
            long = np.flatnonzero(self.lengths > 8)
            if len(long):
                high = np.empty(len(long), np.uint64)
                _eight(self._words, self.run_ends[long] - 8, np.minimum(self.lengths[long], 16) - 8, high)
                self._values[long] += high * np.uint64(10**8)
        return self._values[runs]

    def integers(self, runs: Ints) -> Floats:
        """Numbers of one run each, without their signs."""
        out = self.whole(runs).astype(np.float64)
        return self._exactly(out, self.lengths[runs] > EXACT, runs, runs, 0)

    def decimals(self, runs: Ints, parts: Ints) -> Floats:
        """Numbers with digits before (`runs`) and after (`parts`) the point."""
        places = self.lengths[parts]
        scale = _TENS[np.minimum(places, 22)]
        out: Floats = (self.whole(runs).astype(np.float64) * scale + self.whole(parts).astype(np.float64)) / scale
        return self._exactly(out, self.lengths[runs] + places > EXACT, runs, parts, 0)

    def fractions(self, parts: Ints) -> Floats:
        """Numbers with digits after the point only."""
        out: Floats = self.whole(parts).astype(np.float64) / _TENS[np.minimum(self.lengths[parts], 22)]
        return self._exactly(out, self.lengths[parts] > EXACT, parts, parts, 1)

    def spelled(self, first: Ints, last: Ints, lead: int, tail: int) -> Floats:
        """Numbers as `float` reads them, from `lead` bytes before the first run to `tail` bytes after the last."""
        starts, ends = self.run_ends[first] - self.lengths[first] - lead, self.run_ends[last] + tail
        text = self.text
        return np.array([float(text[start:end]) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)], np.float64)

    def _exactly(self, out: Floats, long: Flags, first: Ints, last: Ints, lead: int) -> Floats:
        """Numbers of more digits than arithmetic gets right, as `float` reads them."""
        if long.any():
            out[long] = self.spelled(first[long], last[long], lead, 0)
        return out

    def texts(self, first: Ints, last: Ints) -> tuple[list[bytes], Ints]:
        """The different texts between two runs of each row as they follow on each other, and for each row which of them it has."""
        starts, ends = self.run_ends[first] - self.lengths[first], self.run_ends[last]
        size = int(ends[0] - starts[0])
        new = np.empty(len(starts), np.bool_)
        new[0] = True
        if starts[-1] >= len(self._words):
            new[1:] = True
        elif size < 8:
            words = self._words[starts] << np.uint64(64 - 8 * size)  # what stands behind the text falls out
            new[1:] = words[1:] != words[:-1]
        else:
            new[1:] = False
            for at in (*range(0, size - 8, 8), size - 8):
                words = self._words[starts + at]
                new[1:] |= words[1:] != words[:-1]
        text = self.text
        return [text[start : start + size] for start in starts[new].tolist()], np.cumsum(new) - 1


def _eight(words: npt.NDArray[np.uint64], ends: Ints, lengths: Ints, out: npt.NDArray[np.uint64]) -> None:
    """Numbers of 1 to 8 digits that end there, all digits of one at once: byte by byte to pairs, to fours, to eight."""
    out[:] = words[ends - 8]
    out ^= _ZEROS
    other = ((8 - lengths) << 3).astype(np.uint64)
    out >>= other  # what stands before the number falls out
    out <<= other
    np.right_shift(out, _BYTE, out=other)
    out *= _TEN
    out += other
    np.right_shift(out, _TWO_BYTES, out=other)
    other &= _LOW
    other *= _EIGHTS
    out &= _LOW
    out *= _FOURS
    out += other
    out >>= _HALF
