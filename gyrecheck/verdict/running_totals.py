"""Running total or count per step? Told by how a series grows, by falls that restarts explain, else by the numbers printed beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from gyrecheck.model.snapshot import Series

NEAR_ZERO = 0.2
"""A running total that falls below this share of itself began anew; above it, the run went back to a saved state."""
ROLLED_BACK = 8
"""Rises for each fall, and usual steps that a series spans, from which on a fall that nothing announces is a run that went back."""
LEAST_ROUNDS, SELDOM = 6, 0.2
"""Readings, and rises for each round of training, below which a number above 0 is what each round takes, and no total of it."""
LEAST_RISES = 8
"""Even rises, before it stands still, of a number that is a total."""


@dataclass(slots=True)
class Evidence:
    """What a group of keys, printed on the same lines, shows about running totals."""

    grows: int = 0
    falls: int = 0
    reasons: list[str] = field(default_factory=list)


def growth_of(series: Series, restarts: Sequence[int], rounds: int = 0) -> int:
    """1: this can only be a running total; -1: this can only be a count per step; 0: it does not show.

    `rounds` is how often the trainer's version or train step rises on its lines: a total of what is trained rises with most of them.
    """
    if series.count < 2:
        return 0
    if series.count >= LEAST_ROUNDS and series.low > 0 and series.rises < SELDOM * rounds and rounds >= 0.5 * (series.count - 1):
        return -1
    if series.falls > _allowed(series, restarts):
        return -1
    if series.rises == 0:
        return 0
    moves = (series.rises + series.falls) / (series.count - 1)
    if series.count >= 3 and moves >= 0.6 and series.last >= 1.5 * max(series.first, 1e-9) and _steady(series):
        return 1
    if series.count >= 4 and moves >= 0.5 and series.first > 0 and series.last > series.first * 1.2 and _steady(series):
        return 1
    return 1 if _rose_and_stands(series) else 0


def _rose_and_stands(series: Series) -> bool:
    """Whether a number only rose, evenly and with most readings, and then stands to the end: a total of what has stopped."""
    if series.falls or series.rises < LEAST_RISES or series.thinned > 1:
        return False
    stop = max(i for i in range(1, len(series)) if series.values[i] > series.values[i - 1])
    return series.rises >= 0.6 * stop and series.last >= 1.5 * max(series.first, 1e-9) and _steady(series, 1.0)


def _ramp(series: Series) -> bool:
    """Whether a number rose and then stands longer than it rose: a size that was raised, as far as falls beside it say."""
    return _rose_and_stands(series) and (series.rises + series.falls) < 0.5 * (series.count - 1)


def decide(members: list[Series], groups: dict[tuple[str, int], Evidence], own: list[int]) -> tuple[bool, str]:
    """Whether keys of one name are running totals, and how that is known; `groups` is what stands on the same lines, `own` their growth."""
    if -1 in own:
        return False, "per step: it falls"
    beside = [groups[one.path, one.first_place.line] for one in members]
    grows, falls = sum(e.grows for e in beside), sum(e.falls for e in beside)
    if 1 in own and falls and all(map(_ramp, members)):
        return False, "per step, like the numbers beside it: a size that grows up to its level"
    if 1 in own:
        return True, "a running total: it only grows"
    if grows > falls:
        return True, "a running total, like the numbers beside it"
    if falls:
        return False, "per step, like the numbers beside it"
    if all(one.rises == 0 for one in members):
        return False, "per step: it never grows"
    first, last = members[0].first, max(one.last for one in members)
    steps = max(one.count for one in members) - 1
    return (
        (True, "a running total: it only grows") if last >= first + steps and last >= 1.5 * first else (False, "per step: it hardly grows")
    )


def _steady(series: Series, most: float = 2.0) -> bool:
    """Whether the increments are of one size (a running total), not the values (counts that wander upwards)."""
    steps = [b - a for a, b in zip(series.values, series.values[1:]) if b > a]  # noqa: B905
    if len(steps) < 2:
        return True
    mean = sum(steps) / len(steps)
    spread = math.sqrt(sum((s - mean) ** 2 for s in steps) / len(steps))
    return spread <= most * mean


def _allowed(series: Series, restarts: Sequence[int]) -> int:
    """Falls that restarts explain: each mark one; few falls to near zero explain themselves when all else rises evenly."""
    if not series.falls:
        return 0
    marks = min(series.falls, sum(series.orders[0] < order <= series.orders[-1] for order in restarts))
    if series.rises < 4 * series.falls:
        return marks
    step = usual_step(series.values)
    resets = sum(anew(a, b, step) for a, b in zip(series.values, series.values[1:]))  # noqa: B905
    if series.rises >= ROLLED_BACK * series.falls and series.high - series.first >= ROLLED_BACK * step and _steady(series, 1.0):
        return series.falls  # long and even, with a rare step back: a run that went on from a saved state
    return max(marks, resets) if resets == series.falls and _steady(series) else marks


def usual_step(values: Sequence[float]) -> float:
    """The median increment."""
    steps = sorted(b - a for a, b in pairwise(values) if b > a)
    return steps[len(steps) // 2] if steps else 0.0


def anew(before: float, after: float, step: float) -> bool:
    """Whether a running total that fell began anew: it is near zero, or no more than a few of its usual steps."""
    return after < before and (after < NEAR_ZERO * before or (after <= 2.5 * step and after <= 0.5 * before))
