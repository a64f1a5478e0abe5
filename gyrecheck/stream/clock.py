"""Times of day carried over midnight, one line after another or a whole column at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gyrecheck.stream.block import Floats

_DAY = 86400.0
DATED = _DAY * 400
"""Times above this count from the epoch; smaller ones are times of day."""


class Clock:
    """The clock of one log. A line that says nothing does not move it."""

    def __init__(self) -> None:
        self._days = 0.0
        self._last: float | None = None

    @property
    def moved(self) -> bool:
        """Whether a time of day was seen, so that later ones depend on it."""
        return self._last is not None

    def one(self, time: float) -> float:
        """A time as it counts."""
        if time > DATED:
            return time
        if self._last is not None and time < self._last - _DAY / 2:
            self._days += _DAY
        self._last = time
        return time + self._days

    def many(self, times: Floats) -> Floats:
        """Times that follow on each other, as they count."""
        import numpy as np

        undated = times <= DATED
        own = times[undated]
        if not len(own):
            return times
        before = np.concatenate(([own[0] if self._last is None else self._last], own[:-1]))
        days = self._days + np.cumsum(own < before - _DAY / 2) * _DAY
        self._days, self._last = float(days[-1]), float(own[-1])
        out = times.copy()
        out[undated] = own + days
        return out
