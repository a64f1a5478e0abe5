"""Value targets that carry no advantage: a return equal to the old value, beside an advantage that is not 0."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.fields import Kind
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.question import Case, Question, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.returns import discount_of
from gyrecheck.verdict.records.steps import steps_of
from gyrecheck.verdict.records.view import View

LEAST = 8
"""Values with an advantage from which the relation of three fields is judged."""
APART = 1e-3
"""An advantage above this is not 0 in a file of four decimals."""


class ValueTargets(Question):
    """A target of the value, return = advantage + value: all of it is lost where the return is the value itself."""

    about = "returns beside advantages and values"
    needs = (("value", "advantage", "return"),)

    def __init__(self) -> None:
        self.values = 0
        self.equal = 0
        self.low, self.high = np.inf, -np.inf
        self.where = Ranges()
        self.seen: list[tuple[int, str]] = []
        self.own_return = False

    def feed(self, view: View) -> None:
        """Read one batch."""
        columns = [view.column(role) for role in ("value", "advantage", "return")]
        known = [column for column in columns if column is not None and column.kind in {Kind.FLOAT, Kind.INT}]
        if len(known) < 3 or not all(np.array_equal(np.asarray(known[0].counts), np.asarray(column.counts)) for column in known):
            return
        value, advantage, target = (np.asarray(column.flat).astype(np.float64) for column in known)
        counts = np.asarray(known[0].counts)
        use = np.isfinite(value) & np.isfinite(advantage) & np.isfinite(target) & (np.abs(advantage) > APART)
        mask = view.column("mask")
        if mask is not None and np.array_equal(np.asarray(mask.counts), counts):
            use &= view.counted("mask")
        if not use.any():
            return
        equal = use & np.isclose(value, target, rtol=0.0, atol=1e-6)
        self.values += int(use.sum())
        self.equal += int(equal.sum())
        self.low, self.high = min(self.low, float(value[use].min())), max(self.high, float(value[use].max()))
        steps = steps_of(view)
        if steps is not None and steps.reward is not None and steps.returns is not None and len(steps) > 1:
            inside = steps.episode[1:] == steps.episode[:-1]
            if discount_of(steps.reward[:-1][inside], steps.returns[:-1][inside], steps.returns[1:][inside]) is not None:
                self.own_return = True
        rows = np.repeat(view.records, counts)
        # a row stands for all its steps: its record is named where any of its targets is the value
        self.where.add(view.path, np.unique(rows[np.isclose(value, target, rtol=0.0, atol=1e-6)]))
        if equal.any() and len(self.seen) < 5:
            at = int(equal.argmax())
            self.seen.append((int(rows[at]), f"value and return {show(value[at])}, advantage {show(advantage[at])}"))

    def answer(self, case: Case) -> Iterator[Finding]:
        """Equal at every step; a return that sums the rewards is right, and the value beside it a copy."""
        if self.values < LEAST or self.low == self.high or self.own_return or not self.seen:
            return
        if self.equal < self.values:
            return
        key, value = case.roles.key("return"), case.roles.key("value")
        text = (
            f"`{key}` equals `{value}` at all {self.values} steps whose `{case.roles.key('advantage')}` is not 0: the target of the value "
            f"carries nothing of the advantage: {self.seen[0][1]}"
        )
        yield case.finding("GYR308", text, where=self.where, role="return", evidence=self.seen, side="training", severity=Severity.ERROR)
