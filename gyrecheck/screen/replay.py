"""An ended run played as if live: readings come at their own times, `speed` times as fast; without times, line by line."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from gyrecheck.model.events import Reading
from gyrecheck.screen.feed import RunFeed
from gyrecheck.screen.view import View
from gyrecheck.stream.logs import open_log, read_logs
from gyrecheck.stream.open_log import find_logs

LINES_PER_SECOND = 10.0


@dataclass(slots=True)
class ReplayFeed:
    """Feeds a `RunFeed`'s tally from what was read before; at the end the pictures stay and the state is `ended`."""

    inner: RunFeed
    speed: float
    clock: Callable[[], float] = time.monotonic
    _readings: list[tuple[float, Reading]] | None = None
    _at: int = 0
    _start: float = 0.0
    _logs: list[object] = field(default_factory=list)

    def poll(self) -> View:
        """Deliver what is due by now."""
        if self._readings is None:
            self._load()
        readings = self._readings or []
        due = (self.clock() - self._start) * self.speed
        begin = self._at
        while self._at < len(readings) and readings[self._at][0] <= due:
            self._at += 1
        view = self.inner.show([reading for _, reading in readings[begin : self._at]])
        return replace(view, state="ended" if self._at >= len(readings) else "replay", age=None, note=f"replay at {self.speed:g} times")

    def close(self) -> None:
        """Nothing is open."""

    def _load(self) -> None:
        logs = [open_log(file, self.inner.ask) for file in find_logs(self.inner.targets)]
        batches, _ = read_logs(logs, self.inner.ask)
        readings = [reading for batch in batches for reading in batch]
        for log in logs:
            self.inner.tally.saw(log.note())
        times = [reading.time for reading in readings if reading.time is not None]
        if len(times) == len(readings) and readings:
            begin = min(times)
            due = [max(0.0, (reading.time or begin) - begin) for reading in readings]
        else:
            due = [at / LINES_PER_SECOND for at in range(len(readings))]
        self._readings = sorted(zip(due, readings, strict=True), key=lambda pair: pair[0])
        self._start = self.clock()
