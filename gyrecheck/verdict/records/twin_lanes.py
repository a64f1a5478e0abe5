"""Environments side by side that hold the same steps: begun with one seed, sampled with one stream of random numbers, or written twice (GYR337).

A stochastic policy in unlike environments never takes the same actions at the same observations, step for step. Rows are compared by all their
numbers; observations must have fractions and the log-probs must vary, so that neither a grid nor a greedy policy is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gyrecheck.model.finding import Finding
from gyrecheck.verdict.records.contents import KEPT, labels, marks_of, together
from gyrecheck.verdict.records.question import Case, Question
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.step_columns import rows_of
from gyrecheck.verdict.records.view import View

LEAST = 8
"""Steps of one environment that another one has, too."""
USUAL = 0.9


class TwinLanes(Question):
    """Looks for each row of an environment in the others."""

    about = "environments side by side"
    yields = frozenset({"GYR337"})
    needs = (("obs", "action", "logprob", "env_id"),)

    def __init__(self) -> None:
        self.known: dict[int, tuple[Any, int]] = {}
        self.rows: dict[Any, int] = {}
        self.twins: dict[Any, list[int]] = {}
        self.of: dict[Any, set[Any]] = {}
        self.where: dict[Any, Ranges] = {}

    def feed(self, view: View) -> None:
        """Read one batch."""
        lanes, obs, logprob = view.labels("env_id"), rows_of(view, "obs"), rows_of(view, "logprob")
        if lanes is None or obs is None or logprob is None or len(self.known) > KEPT:
            return
        if obs.dtype.kind != "f" or not (obs != np.round(obs)).any() or len(np.unique(logprob[:, 0])) < max(3, len(logprob) // 8):
            return
        content = together(
            [*(marks_of(view, role) for role in ("obs", "action", "logprob", "reward", "next_obs")), labels(view, "batch_id")]
        )
        for at, (lane, mark) in enumerate(zip(lanes, content.tolist(), strict=True)):
            self.rows[lane] = self.rows.get(lane, 0) + 1
            first = self.known.setdefault(mark, (lane, int(view.records[at])))
            if first[0] != lane:
                self.twins.setdefault(lane, []).append(int(view.records[at]))
                self.of.setdefault(lane, set()).add(first[0])
                self.where.setdefault(lane, Ranges()).add(view.path, view.records[at : at + 1])

    def answer(self, case: Case) -> Iterator[Finding]:
        """Environments nearly all of whose steps are another one's."""
        alike = [
            lane for lane, records in self.twins.items() if len(records) >= max(LEAST, USUAL * self.rows[lane]) and len(self.of[lane]) == 1
        ]
        if not alike:
            return
        where = Ranges()
        for lane in alike:
            where.add_all(self.where[lane])
        key = case.roles.key("env_id")
        other = next(iter(self.of[alike[0]]))
        text = (
            f"duplicate samples: `{key}` {', '.join(str(lane) for lane in alike[:5])} hold the very steps of `{key}` {other}, with the same actions "
            f"and log-probs: one seed for several environments and their sampling, or one environment's steps under several names ({where.rows} records)"
        )
        yield case.finding("GYR337", text, where=where, role="env_id")
