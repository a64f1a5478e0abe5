"""Sparse rewards that stand one row late: at the first step of the episode behind the end that earned them (GYR314)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.question import Case, Question
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.step_columns import previous_in_lane
from gyrecheck.verdict.records.steps import steps_of
from gyrecheck.verdict.records.view import View

LEAST = 3
SPARSE = 0.35
"""Share of steps with a reward up to which each of them can be placed."""


class LateRewards(Question):
    """Counts where in their episodes rewards that are not 0 stand."""

    about = "places of sparse rewards"
    needs = tuple(("reward", role) for role in ("terminated", "truncated", "done"))

    def __init__(self) -> None:
        self.late = Ranges()
        self.rewards = self.rows = self.ends = self.elsewhere = 0
        self.labelled = True

    def feed(self, view: View) -> None:
        """Read one batch; its first row follows nothing that is known."""
        steps = steps_of(view)
        if steps is None or steps.reward is None or steps.ends is None or steps.per_record or len(steps) < 2:
            return
        self.labelled &= steps.labelled
        back = np.argsort(steps.order, kind="stable")  # [rows] the step of each row
        previous = previous_in_lane(view)
        given = np.nan_to_num(steps.reward) != 0
        behind = np.zeros(len(steps), np.bool_)
        here = np.flatnonzero(previous >= 0)
        at, before = back[here], back[previous[here]]
        behind[at] = steps.ends[before] & (steps.episode[at] != steps.episode[before])
        self.rows += len(steps)
        self.rewards += int(given.sum())
        self.ends += int(behind.sum())
        self.elsewhere += int((given & ~behind).sum())
        self.late.add(view.path, np.sort(steps.record[given & behind]))

    def answer(self, case: Case) -> Iterator[Finding]:
        """All of them behind ends, where each end but the last brought one."""
        if (
            not self.labelled
            or self.elsewhere
            or self.late.rows < LEAST
            or self.rewards > SPARSE * self.rows
            or self.late.rows * 2 < self.ends
        ):
            return
        key = case.roles.key("reward")
        text = (
            f"`{key}` stands one row late: all {self.late.rows} rewards that are not 0 are those of the first step behind an end, and no step that ends "
            "an episode has one: each row holds the reward of the step before"
        )
        yield case.finding("GYR314", text, where=self.late, role="reward", severity=Severity.WARNING)
