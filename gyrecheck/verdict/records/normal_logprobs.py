"""Log-probs beside the normal distribution that the action was drawn from: where they are those of the draw, and a clipped action is stored (GYR315).

log N(a; mu, sigma) summed over the action's dimensions must be the log-prob of the stored action, unless the file counts it otherwise throughout.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.finding import Finding
from gyrecheck.verdict.records.question import Case, Question, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.step_columns import rows_of
from gyrecheck.verdict.records.view import Bools, Floats, Ints, View

LEAST = 3
CLOSE, APART = 0.02, 0.05
"""Differences of log-probs, for each dimension, up to which they agree in a rounded file, and from which on they do not."""
USUAL = 0.5
"""Share of the steps at which the density must be that of the stored action."""
KEPT = 500_000


class NormalLogProbs(Question):
    """Computes each stored action's density and looks at where the recorded log-prob is another."""

    about = "log-probs beside mean and spread"
    needs = (("action", "logprob", "action_mean", "action_std"), ("action", "logprob", "action_mean", "action_log_std"))

    def __init__(self) -> None:
        self.parts: list[tuple[str, Ints, Floats, Floats]] = []
        """Of each batch the file, and of each row its record, recorded minus computed log-prob, and action [rows, D]."""
        self.kept = 0

    def feed(self, view: View) -> None:
        """Read one batch."""
        action, mean, logprob = rows_of(view, "action"), rows_of(view, "action_mean"), view.number("logprob")
        spread = rows_of(view, "action_std")
        if spread is None and (log := rows_of(view, "action_log_std")) is not None:
            spread = np.exp(np.clip(log.astype(np.float64), -20, 20))
        if action is None or mean is None or logprob is None or spread is None or action.shape != mean.shape or self.kept > KEPT:
            return
        if self.parts and self.parts[0][3].shape[1] != action.shape[1]:
            return
        if spread.shape[1] not in {1, action.shape[1]} or not np.isfinite(spread.astype(np.float64)).all() or (spread <= 0).any():
            return
        away = (action.astype(np.float64) - mean) / spread
        density = (-0.5 * away**2 - np.log(np.broadcast_to(spread, action.shape).astype(np.float64)) - 0.5 * np.log(2 * np.pi)).sum(axis=1)
        told = np.isfinite(logprob) & np.isfinite(density)
        self.parts.append((view.path, view.records[told], (logprob - density)[told], action[told].astype(np.float64)))
        self.kept += int(told.sum())

    def answer(self, case: Case) -> Iterator[Finding]:
        """Where the steps that do not agree are those at a bound."""
        if not self.kept:
            return
        off, action = (np.concatenate([part[at] for part in self.parts]) for at in (2, 3))
        size = action.shape[1]
        wrong = np.abs(off) > APART * size
        if wrong.sum() < LEAST or (np.abs(off) <= CLOSE * size).mean() < USUAL:
            return
        bound = _at_bound(action)
        if not bound[wrong].all():
            return
        where, begin = Ranges(), 0
        for path, records, *_ in self.parts:
            where.add(path, np.sort(records[wrong[begin : begin + len(records)]]))
            begin += len(records)
        at = int(wrong.argmax())
        record = int(np.concatenate([part[1] for part in self.parts])[at])
        key, stored = case.roles.key("logprob"), case.roles.key("action")
        text = (
            f"`{key}` is not that of the stored `{stored}` at {int(wrong.sum())} of {len(off)} steps, all of them at a bound: it is the density of "
            f"the draw before it was clipped (off by {show(off[at])} at record {record}); everywhere else it fits the mean and the spread beside it"
        )
        yield case.finding("GYR315", text, where=where, role="logprob", evidence=((record, f"off by {show(off[at])}"),))


def _at_bound(action: Floats) -> Bools:
    """[N] rows with a coordinate at its smallest or largest value, where that comes several times or both are one number but for the sign."""
    out = np.zeros(len(action), np.bool_)
    low, high = action.min(axis=0), action.max(axis=0)
    for edge in (low, high):
        hit = action == edge
        out |= (hit & ((hit.sum(axis=0) >= 2) | (low == -high))).any(axis=1)
    return out
