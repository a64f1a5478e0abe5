"""Does one exact value stand out among the values near it? In long files rounding alone makes every value come again.

Values rounded to few decimals fall into cells; the cells beside a value tell how often one is met by chance. A policy that is certain at times
has log-probs that round to 0, and then many that are nearly 0.
"""

from __future__ import annotations

import math

import numpy as np

from gyrecheck.verdict.records.view import Floats

NEAR = 0.05
"""How far a neighbour may be."""
CELLS = 256
FEW = 3
"""Different neighbours below which nothing is known of their cells."""
NEARLY = 5e-4
"""A distance that a policy which is certain at times leaves, too."""


class Neighbours:
    """Counts the values near `value`, up to `CELLS` different ones."""

    def __init__(self, value: float) -> None:
        self.value = value
        self.cells: dict[float, int] = {}
        self.nearly = 0

    def read(self, values: Floats) -> None:
        """Take finite values of one batch."""
        away = np.abs(values - self.value)
        near = values[(away <= NEAR) & (away > 0)]
        if not len(near):
            return
        self.nearly += int((np.abs(near - self.value) <= NEARLY).sum())
        found, counts = np.unique(near, return_counts=True)
        for cell, count in zip(found.tolist(), counts.tolist(), strict=True):
            if cell in self.cells or len(self.cells) < CELLS:
                self.cells[cell] = self.cells.get(cell, 0) + count

    def stands_out(self, hits: int) -> bool:
        """Whether `hits` is more than chance puts into one cell; True where too few neighbours tell."""
        if len(self.cells) < FEW:
            return True
        each = sum(self.cells.values()) / len(self.cells)
        mean = each if each > 1.05 else 0.2  # neighbours that never come again: cells are met far less than once
        return hits >= mean + 4 * math.sqrt(mean) + (2 if each > 1.05 else 0)

    def may_be_rounded(self, hits: int) -> bool:
        """Whether values that are nearly this one are as many as a third of those that are exactly it."""
        return 3 * self.nearly >= hits
