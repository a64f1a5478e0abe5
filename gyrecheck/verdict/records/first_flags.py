"""A flag for an episode's first row that stands on another row of it: the second, or the last one (GYR328)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.finding import Finding
from gyrecheck.verdict.records.question import Case, Question
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.steps import steps_of
from gyrecheck.verdict.records.view import View

LEAST = 3


class FirstFlags(Question):
    """Counts where in their episodes the flags stand."""

    about = "flags of first rows"
    yields = frozenset({"GYR328"})
    needs = (("first", "episode_id"), ("first", "trajectory_id"), ("first", "step"))

    def __init__(self) -> None:
        self.first = self.second = self.last = self.inner = self.episodes = 0
        self.where = Ranges()
        self.begun: set[int] = set()

    def feed(self, view: View) -> None:
        """Read one batch; the part of an episode that began in an earlier one tells nothing of its start."""
        steps, flag = steps_of(view), view.flag("first")
        if steps is None or flag is None or steps.per_record or not steps.labelled or not len(steps):
            return
        on = flag[steps.order]
        starts = np.flatnonzero(np.diff(steps.episode, prepend=-1))
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(steps)], strict=True):
            code = int(steps.episode[start])
            if code in self.begun or end - start < LEAST:
                continue
            self.begun.add(code)
            at = np.flatnonzero(on[start:end])
            self.episodes += 1
            self.first += int((at == 0).sum())
            self.second += int((at == 1).sum())
            self.last += int((at == end - start - 1).sum())
            self.inner += len(at)
            self.where.add(view.path, np.sort(steps.record[start + at]))

    def answer(self, case: Case) -> Iterator[Finding]:
        """One row late or one row early in nearly all episodes."""
        late = self.second == self.inner
        early = self.last == self.inner
        if self.episodes < LEAST or self.first or self.inner < self.episodes - 1 or not (late or early):
            return
        how = "one row late: it is true at the second step" if late else "one row early: it is true at the last step"
        text = (
            f"`{case.roles.key('first')}` stands {how} of {self.inner} of {self.episodes} episodes and never at the first: what is reset there, a "
            "recurrent state or a sum, mixes two episodes"
        )
        yield case.finding("GYR328", text, where=self.where, role="first")
