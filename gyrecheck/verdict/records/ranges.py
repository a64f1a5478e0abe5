"""Record numbers as ranges (`1-8, 12`), gathered over many batches in bounded memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

KEPT_RANGES = 40
"""Ranges kept a file; later ones are only counted."""
KEPT_FILES = 8


class Ranges:
    """Record numbers by file. `count` is exact; the ranges are exact up to `KEPT_RANGES` a file."""

    def __init__(self) -> None:
        self.count = 0
        self.rows = 0
        self._files: dict[str, list[list[int]]] = {}
        self._more: dict[str, int] = {}
        self._last: tuple[str, int] = ("", -1)
        self.other_files = 0

    def __bool__(self) -> bool:
        return self.rows > 0

    def add(self, path: str, numbers: npt.NDArray[Any]) -> None:
        """Take 1-based record numbers (one a row, repeats allowed) of one file."""
        if not len(numbers):
            return
        self.rows += len(numbers)
        found = numbers if len(numbers) == 1 or bool((np.diff(numbers) > 0).all()) else np.unique(numbers)
        fresh = len(found) - int(self._last == (path, int(found[0])))
        self.count += fresh
        self._last = (path, int(found[-1]))
        if path not in self._files:
            if len(self._files) >= KEPT_FILES:
                self.other_files += 1
                return
            self._files[path] = []
        kept = self._files[path]
        breaks = np.flatnonzero(np.diff(found) > 1)
        starts = np.concatenate(([0], breaks + 1))
        ends = np.concatenate((breaks, [len(found) - 1]))
        for start, end in zip(found[starts].tolist(), found[ends].tolist(), strict=True):
            if kept and start <= kept[-1][1] + 1 and start >= kept[-1][0]:
                kept[-1][1] = max(kept[-1][1], end)
            elif len(kept) < KEPT_RANGES:
                kept.append([start, end])
            else:
                self._more[path] = self._more.get(path, 0) + 1

    def add_all(self, other: Ranges) -> None:
        """Take all of another's."""
        for path, ranges in other._files.items():
            for start, end in ranges:
                self.add(path, np.arange(start, end + 1))

    @property
    def path(self) -> str:
        """The first file concerned."""
        return next(iter(self._files), "")

    @property
    def files(self) -> int:
        """Number of files concerned."""
        return len(self._files) + self.other_files

    @property
    def first(self) -> int:
        """The first record concerned in the first file; 0 when there is none."""
        kept = self._files.get(self.path)
        return min(start for start, _ in kept) if kept else 0

    def text(self) -> str:
        """The ranges of the first file, as `1-8, 12`."""
        kept = sorted(self._files.get(self.path, []))
        merged: list[list[int]] = []
        for start, end in kept:
            if merged and start <= merged[-1][1] + 1:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([start, end])
        shown = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in merged)
        return shown + (", …" if self._more.get(self.path) else "")
