"""Environments side by side that hold the same steps: begun with one seed, sampled with one stream of random numbers, or written twice (GYR337).

A stochastic policy in unlike environments never takes the same actions at the same observations, step for step. Rows are compared by all their
numbers; observations must have fractions and the log-probs must vary, so that neither a grid nor a greedy policy is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gyrecheck.model.finding import Finding
from gyrecheck.verdict.records.contents import KEPT, Sums, first_equal, labels, marks_named, marks_of, together
from gyrecheck.verdict.records.question import Case, Question
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.step_columns import rows_of
from gyrecheck.verdict.records.view import Ints, View

LEAST = 8
"""Steps of one environment that another one has, too."""
USUAL = 0.9


class TwinLanes(Question):
    """Looks for each row of an environment in the others."""

    about = "environments side by side"
    yields = frozenset({"GYR337"})
    needs = (("obs", "action", "logprob", "env_id"),)

    def __init__(self) -> None:
        self.parts: list[tuple[str, Ints, Sums, Ints]] = []
        """Of each batch the file, and of each row its record, the mark of its content and the number of its lane."""
        self.lanes: dict[Any, int] = {}
        self.kept = 0

    def feed(self, view: View) -> None:
        """Read one batch."""
        lanes, obs, logprob = view.labels("env_id"), rows_of(view, "obs"), rows_of(view, "logprob")
        if lanes is None or obs is None or logprob is None or self.kept > KEPT:
            return
        if obs.dtype.kind != "f" or not (obs != np.round(obs)).any() or len(np.unique(logprob[:, 0])) < max(3, len(logprob) // 8):
            return
        content = together(
            [
                *(marks_of(view, role) for role in ("obs", "action", "logprob", "reward", "next_obs")),
                labels(view, "batch_id"),
                marks_named(view, "passes"),  # ranks of one tensor-parallel group hold the same rows
            ]
        )
        own = np.fromiter((self.lanes.setdefault(lane, len(self.lanes)) for lane in lanes), np.int64, view.rows)
        self.parts.append((view.path, view.records, content, own))
        self.kept += view.rows

    def answer(self, case: Case) -> Iterator[Finding]:
        """Environments nearly all of whose steps are another one's."""
        if not self.kept or len(self.lanes) < 2:
            return
        content, own = (np.concatenate([part[at] for part in self.parts]) for at in (2, 3))
        first = own[first_equal(content)]
        twin = first != own
        rows, hits = np.bincount(own), np.bincount(own[twin], minlength=len(self.lanes))
        alike = [
            lane
            for lane in np.flatnonzero(hits >= np.maximum(LEAST, USUAL * rows)).tolist()
            if len(np.unique(first[twin & (own == lane)])) == 1
        ]
        if not alike:
            return
        chosen, begin = twin & np.isin(own, alike), 0
        where = Ranges()
        for path, records, *_ in self.parts:
            where.add(path, records[chosen[begin : begin + len(records)]])
            begin += len(records)
        names, key = list(self.lanes), case.roles.key("env_id")
        other = names[int(first[chosen][0])]
        text = (
            f"duplicate samples: `{key}` {', '.join(str(names[lane]) for lane in alike[:5])} hold the very steps of `{key}` {other}, with the same actions "
            f"and log-probs: one seed for several environments and their sampling, or one environment's steps under several names ({where.rows} records)"
        )
        yield case.finding("GYR337", text, where=where, role="env_id")
