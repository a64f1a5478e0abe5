"""Sums of n rewards that run on in file order, over ends and from one environment into the next, instead of along the episode (GYR344).

Both sums are made for every n and discount that the file may mean; what is told fits the file's order and not the episodes'.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.finding import Finding
from gyrecheck.verdict.records.question import Case, Question, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.steps import steps_of
from gyrecheck.verdict.records.view import Bools, Floats, Ints, View

MOST = 10
"""Largest n that is tried."""
DISCOUNTS = (1.0, 0.999, 0.995, 0.99, 0.98, 0.97, 0.96, 0.95, 0.9)
LEAST = 8
"""Rows at which the two sums differ."""
ROUNDED = 2e-3
FITS, FAILS = 0.9, 0.2
KEPT = 500_000


class SummedRows(Question):
    """Holds stored returns against sums of the next n rewards, of the file and of the episode."""

    about = "returns of n steps"
    yields = frozenset({"GYR344"})
    needs = (("reward", "return", "episode_id"), ("reward", "return", "env_id"), ("reward", "return", "trajectory_id"))

    def __init__(self) -> None:
        self.parts: list[tuple[str, Ints, Floats, Floats, Ints, Bools]] = []
        self.kept = 0
        self.gamma: float | None = None

    def feed(self, view: View) -> None:
        """Read one batch."""
        steps = steps_of(view)
        if steps is None or steps.per_record or not steps.labelled or steps.reward is None or steps.returns is None or self.kept > KEPT:
            return
        gamma = view.number("gamma")
        if gamma is not None and np.isfinite(gamma).any():
            self.gamma = float(np.nanmedian(gamma))
        back = np.argsort(steps.order, kind="stable")
        ends = steps.ends if steps.ends is not None else np.zeros(len(steps), np.bool_)
        self.parts.append((view.path, steps.record[back], steps.reward[back], steps.returns[back], steps.episode[back], ends[back]))
        self.kept += len(steps)

    def answer(self, case: Case) -> Iterator[Finding]:
        """The n and the discount at which file order explains what the episodes do not."""
        if not self.parts:
            return
        reward, gain = (np.concatenate([part[at] for part in self.parts]) for at in (2, 3))
        episode, ends = np.concatenate([part[4] for part in self.parts]), np.concatenate([part[5] for part in self.parts])
        if len(reward) < 2 * LEAST or not (np.isfinite(reward).all() and np.isfinite(gain).all()):
            return
        own = _next_of_episode(episode, ends)
        if (own >= 0).mean() < 0.5:
            return  # episodes of one row: their steps are not told
        rows = np.append(np.arange(1, len(reward)), -1)
        for following in (rows, np.where(ends, -1, rows)):
            for gamma in (self.gamma,) if self.gamma is not None else DISCOUNTS:
                for n in range(2, min(MOST, len(reward) - 1) + 1):
                    told = self._judge(case, reward, gain, (following, own), n, gamma)
                    if told is not None:
                        yield told
                        return

    def _judge(self, case: Case, reward: Floats, gain: Floats, orders: tuple[Ints, Ints], n: int, gamma: float) -> Finding | None:
        size = len(reward)
        filed, own = (_summed(reward, following, n, gamma) for following in orders)
        whole = np.arange(size) < size - n + 1
        unlike = whole & (np.abs(filed - own) > 2 * ROUNDED)
        if unlike.sum() < LEAST:
            return None
        as_filed, as_own = np.abs(gain - filed) <= ROUNDED, np.abs(gain - own) <= ROUNDED
        if as_filed[whole].mean() < FITS or as_own[unlike].mean() > FAILS:
            return None
        wrong = ~as_own
        where, begin = Ranges(), 0
        for path, records, *_ in self.parts:
            where.add(path, np.sort(records[wrong[begin : begin + len(records)]]))
            begin += len(records)
        first = int(unlike.argmax())
        record = int(np.concatenate([part[1] for part in self.parts])[first])
        said = f"{show(gain[first])} at record {record}, where its own episode gives {show(own[first])}"
        text = (
            f"`{case.roles.key('return')}` sums the next {n} rewards in the order of the file (discount {show(gamma)}) at {int(as_filed.sum())} of "
            f"{size} steps, across ends and environments, not along the step's own episode: {said}"
        )
        return case.finding("GYR344", text, where=where, role="return", evidence=((record, said),))


def _next_of_episode(episode: Ints, ends: Bools) -> Ints:
    """[N] the row of each step's successor; -1 at an end and at the last row of an episode."""
    order = np.argsort(episode, kind="stable")
    out = np.full(len(episode), -1)
    same = (episode[order][1:] == episode[order][:-1]) & ~ends[order][:-1]
    out[order[:-1][same]] = order[1:][same]
    return out


def _summed(reward: Floats, following: Ints, n: int, gamma: float) -> Floats:
    """[N] the discounted sum of each row's reward and those of the n - 1 rows that follow it, fewer where -1 follows."""
    out, at, there = reward.copy(), np.arange(len(reward)), np.ones(len(reward), np.bool_)
    for k in range(1, n):
        after = following[at]
        there &= after >= 0
        at = np.where(after >= 0, after, at)
        out += np.where(there, gamma**k * reward[at], 0.0)
    return out
