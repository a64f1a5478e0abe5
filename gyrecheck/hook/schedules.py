"""Learning-rate schedules: how often each was advanced, beside how many steps and samples, and whether beyond its horizon."""

from __future__ import annotations

import weakref

from gyrecheck.hook import side
from gyrecheck.hook.rates import Advances, rate_of

TYPE_CHECKING = False  # importing `typing` costs more than this package; type checkers know the name
if TYPE_CHECKING:
    from typing import Any

    from gyrecheck.hook.runtime import Runtime
    from gyrecheck.hook.updates import Updates

KEPT = 64
"""Schedules whose totals outlive them."""


class Schedules:
    """The schedules of one process."""

    def __init__(self, runtime: Runtime, updates: Updates) -> None:
        self.runtime, self.updates = runtime, updates
        self.advances: weakref.WeakKeyDictionary[Any, Advances] = weakref.WeakKeyDictionary()
        self.counts: weakref.WeakKeyDictionary[Any, list[int]] = weakref.WeakKeyDictionary()
        self.made: list[tuple[str, list[int], Any, Advances]] = []
        """The newest by class, counts and reference: their totals outlive the function that held them."""

    def advanced(self, scheduler: Any, horizons: dict[str, str]) -> None:
        """A schedule has advanced by one."""
        counts = self.counts.get(scheduler)
        if counts is None:
            counts = self.counts[scheduler] = [-1, self.runtime.samples, self.updates.steps, 0, 0]  # its construction makes the first call
            gone = weakref.ref(scheduler, lambda _: counts.extend((self.runtime.samples, self.updates.steps)))
            self.advances[scheduler] = Advances()
            self.made.append((type(scheduler).__name__, counts, gone, self.advances[scheduler]))
            del self.made[:-KEPT]
            if (held := self.updates.states.get(id(getattr(scheduler, "optimizer", None)))) is not None:
                held.rate.restored = None  # a schedule that is made after a restore begins where its author wants
        counts[0] += 1
        if self.updates.calm and not rate_of(scheduler.optimizer):
            self.updates.calm = 0  # steps that change nothing are counted exactly
        self.runtime.cells["scheduler_calls"][0] += counts[0] > 0
        advances = self.advances[scheduler]
        if counts[0] > 0:
            advances.one(self.updates.steps)
        name = type(scheduler).__name__
        if counts[0] > 0 and counts[0] & (counts[0] - 1) == 0:
            self.runtime.events.write(
                "schedule", cls=name, n=counts[0], samples=self.runtime.samples - counts[1], steps=self.updates.steps - counts[2],
                gaps=advances.gaps, repeats=advances.repeats, sizes=len(advances.sizes), site=side.caller(self.updates.libraries, 3),
            )  # fmt: skip
        horizon = getattr(scheduler, horizons.get(name, "-"), None)
        if isinstance(horizon, int):
            counts[4] = horizon
        if isinstance(horizon, int) and horizon > 0 and counts[0] > horizon and not counts[3]:
            counts[3] = 1
            self.runtime.events.write(
                "horizon",
                cls=name,
                horizon=horizon,
                n=counts[0],
                steps=self.updates.steps - counts[2],
                site=side.caller(self.updates.libraries, 3),
            )

    def summary(self) -> None:
        """At the end of the process: the totals of each."""
        for name, counts, _, advances in self.made:
            samples, steps = counts[5:7] or (self.runtime.samples, self.updates.steps)  # when it was last there
            self.runtime.events.write(
                "schedule", cls=name, n=counts[0], samples=samples - counts[1], steps=steps - counts[2], horizon=counts[4], last=True,
                gaps=advances.gaps, repeats=advances.repeats, sizes=len(advances.sizes),
            )  # fmt: skip
