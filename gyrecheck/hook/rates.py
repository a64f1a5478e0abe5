"""The learning rate as the optimizers' own steps have it: at 0 from the start or at the end, and what becomes of a restored one."""

from __future__ import annotations

from math import log

from gyrecheck.hook import side

TYPE_CHECKING = False  # importing `typing` costs more than this package; type checkers know the name
if TYPE_CHECKING:
    from typing import Any

    from gyrecheck.hook.optimizer_state import OptimizerState
    from gyrecheck.hook.runtime import Runtime

SIZES = 8
"""Different numbers that are told apart."""
SAME = 1e-6
"""Rates that differ by no larger part are one rate."""


class Rate:
    """The learning rate of one optimizer's first group, step by step."""

    __slots__ = ("before", "changes", "last", "loads", "most", "restored", "site", "steps", "zero")

    def __init__(self) -> None:
        self.zero = 0
        """Steps in a row, up to now, with the learning rate of all groups at 0."""
        self.last: float | None = None
        self.most = 0.0
        """The largest change between two steps, as the logarithm of their quotient; the first one after a load does not count."""
        self.changes = self.loads = 0
        self.before: float | None = None
        """What it was until the state was restored."""
        self.restored: float | None = None
        """What it was restored to, until it changes."""
        self.steps = 0
        """Steps with the restored rate."""
        self.site = ""


class Advances:
    """How a schedule's advances lie between the optimizers' steps."""

    __slots__ = ("at", "gaps", "here", "repeats", "sizes")

    def __init__(self) -> None:
        self.at = self.here = 0
        """Optimizer steps at the newest advance, and advances since that step."""
        self.gaps = self.repeats = 0
        """Places between two steps with an advance, and those with more than one."""
        self.sizes: set[int] = set()
        """How many advances there were at one place."""

    def one(self, steps: int) -> None:
        """It was advanced after this many optimizer steps."""
        if not steps:
            return
        if steps != self.at:
            if self.here and len(self.sizes) < SIZES:
                self.sizes.add(self.here)
            self.at, self.here = steps, 0
            self.gaps += 1
        self.here += 1
        self.repeats += self.here == 2


class Rates:
    """The learning rates of one process."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.most, self.changes = 0.0, 0
        """The largest change between two steps of any optimizer, and how many there were."""
        self.moved = False
        """Some optimizer has stepped with a rate above 0."""
        self.idle = self.rounds = self.seen = 0
        """Steps before that, the rounds of sampling between which they lie, and the sample calls at the last of them."""

    def before_step(self, state: OptimizerState, optimizer: Any) -> None:
        """Before a step of an optimizer."""
        rate, known = rate_of(optimizer), state.rate
        if rate or any(group.get("lr", 0.0) for group in optimizer.param_groups):
            known.zero = 0
            if not self.moved:
                self._begins()
        else:
            known.zero += 1
            if known.zero & (known.zero - 1) == 0:
                self.runtime.events.write("zero_rate", i=state.number, n=known.zero, step=state.steps + 1)
            if not self.moved:
                self.idle += 1
                if self.runtime.samples != self.seen:
                    self.seen = self.runtime.samples
                    self.rounds += 1
        if rate is not None and rate != known.last:
            self._changes(state, rate)
        known.steps += 1

    def steady(self, known: Rate) -> bool:
        """Whether nothing about a rate asks for a look at each step."""
        return self.moved and not known.zero and known.restored is None

    def loaded(self, state: OptimizerState, optimizer: Any, before: float | None, site: str) -> None:
        """The state of an optimizer was restored, whose rate was `before` until then."""
        known = state.rate
        known.last = known.restored = rate_of(optimizer)
        known.before, known.site, known.steps = before, site, 0
        known.loads += 1

    def _begins(self) -> None:
        self.moved = True
        if self.idle and self.runtime.samples > self.seen > 0:
            place = side.caller(self.runtime.libraries)
            self.runtime.events.write("late_start", n=self.idle, rounds=self.rounds, samples=self.seen, site=place)

    def _changes(self, state: OptimizerState, rate: float) -> None:
        known = state.rate
        last, known.last = known.last, rate
        if not last or not rate or last < 0 or rate < 0 or abs(rate - last) <= SAME * last:
            return
        if known.restored is None:
            known.changes += 1
            self.changes += 1
            known.most = max(known.most, abs(log(rate / last)))
            self.most = max(self.most, known.most)
            return
        known.restored = None
        self.runtime.events.write(
            "rate_after_load", i=state.number, restored=last, rate=rate, before=known.before, after=known.steps, step=state.steps + 1,
            loads=known.loads, most=self.most, changes=self.changes, site=known.site,
        )  # fmt: skip


def rate_of(optimizer: Any) -> float | None:
    """The learning rate of the first group; None where it has none that is a number."""
    for group in optimizer.param_groups:
        rate = group.get("lr")
        return float(rate) if rate is not None else None
    return None
