"""What is known of one optimizer between its steps."""

from __future__ import annotations

import weakref

from gyrecheck.hook.rates import Rate

TYPE_CHECKING = False  # importing `typing` costs more than this package; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class OptimizerState:
    """One optimizer: what happened to its gradients since its last step."""

    __slots__ = (
        "backward", "counts", "full", "kind", "looked", "number", "optimizer", "pending", "quick", "rate", "said", "site", "stepped_uncleared",
        "steps", "unstepped", "used", "window",
    )  # fmt: skip

    def __init__(self, number: int, optimizer: Any) -> None:
        self.number, self.kind = number, type(optimizer).__name__
        self.optimizer: Callable[[], Any] = weakref.ref(optimizer)
        """None once it is gone."""
        self.steps = self.looked = 0
        self.backward = 0
        """Backward passes since its last step."""
        self.unstepped = 0
        """Backward passes since its last step or clearing."""
        self.used: tuple[int, int] | None = None
        """Which gradient its last step used, and in which version of its memory; None once it was cleared."""
        self.stepped_uncleared = False
        self.pending = False
        """Gradients that an earlier step has used already are still there and are being added to."""
        self.counts: dict[str, int] = {}
        self.said = False
        self.rate = Rate()
        self.full = 0
        """Steps in a row, up to now, that were looked at."""
        self.window = -1
        """The newest window of counted steps that began when a step of it was looked at."""
        self.site: Any = [0]
        """The cell of the place that made the newest step looked at."""
        self.quick = False
        """Its newest step was only counted."""
