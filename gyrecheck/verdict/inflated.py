"""A counter of steps that counts more than was stored and used: k times as many, where the settings say what a round really has (GYR518).

k alone proves nothing: frames of a step and steps of a fragment are as regular. It is a fault only where the settings multiply to the
smaller count: copies x steps each is what a round adds to the balance, and the counter adds that once more for each step.
"""

from __future__ import annotations

from itertools import pairwise

from gyrecheck.model.events import Unit
from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Series
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.view import View

LEAST_LINES = 6
_EACH = ("rollout_length", "total_steps")
_COPIES = ("env_copies", "workers")


def judge_inflated(run: View, docket: Docket) -> None:
    """Enter a count of steps that is a whole multiple of what was sampled on every line, where settings contradict it."""
    sampled, taken = run.sampled, run.taken
    if sampled is None or taken is None or not run.balances or not sampled.cumulative:
        return
    closed = run.balances[0]
    if sum(closed.good(row) for row in closed.rows) < 0.9 * len(closed.rows):
        return
    steps = {b - a for a, b in pairwise(sampled.values) if b > a}
    if len(steps) != 1:
        return
    each = steps.pop()
    for series in run.series("counted", least=LEAST_LINES):
        if series.key.unit is not Unit.STEP or list(series.orders) != list(sampled.orders) or series.falls:
            continue
        k = round(series.values[0] / sampled.values[0]) if sampled.values[0] > 0 else 0
        if k < 2 or any(abs(a - k * b) > 1e-6 * max(a, 1.0) for a, b in zip(series.values, sampled.values, strict=True)):
            continue
        pair = _settings(run, k, each)
        if pair is None:
            continue
        length, copies = pair
        docket.add(
            "GYR518",
            State.BROKEN,
            f"`{series.name}` is {count(k)} times `{sampled.name}` on every line ({count(series.last)} of {count(sampled.last)}), and a round "
            f"has {count(each)} steps ({copies.name} {count(copies.last)} x {length.name} {count(length.last)}): a whole round is added at each "
            "of its steps",
            quantity=series.name,
            value=series.last,
            unit=series.key.unit.value,
            first=series.first_place,
            because=[Because(length.first_place, length.name), Because(series.last_place, series.name)],
            hint="add the round's steps once, after its loop, or one call's steps inside it",
            at_most=Severity.WARNING,
        )
        return


def _settings(run: View, k: int, each: float) -> tuple[Series, Series] | None:
    """The settings `k steps` and `n copies` with n times k steps a round; None where the log has no such."""

    def told(*terms: str) -> list[Series]:
        return [s for term in terms for s in run.snapshot.of(term) if s.low == s.high]

    return next(((a, b) for a in told(*_EACH) if a.last == k for b in told(*_COPIES) if a.last * b.last == each), None)
