"""Observations that stand still within an episode although episodes differ: a reference to one live buffer was stored, not a copy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.finding import Finding, Severity
from gyrecheck.rulebook.record_limits import load_record_limits
from gyrecheck.verdict.records.question import Case, Question
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.steps import steps_of
from gyrecheck.verdict.records.view import Floats, View


class StuckObservation(Question):
    """Observations that do not change within a trajectory: a reference to one live buffer, stored again and again."""

    about = "observations that stand still"
    needs = (("obs", "episode_id"), ("obs", "reward"), ("obs", "terminated"), ("obs", "done"))

    def __init__(self) -> None:
        self.stuck: dict[int, list[float]] = {}
        self.first: dict[int, int] = {}
        """Of each episode the hash of its first observation: an array of its own for each would pin the memory between them."""
        self.length: dict[int, int] = {}
        self.still: dict[int, bool] = {}
        self.where: dict[int, Ranges] = {}
        self.fraction = False

    def feed(self, view: View) -> None:
        """Read one batch."""
        steps = steps_of(view)
        if steps is None or steps.obs is None or not len(steps) or len(self.first) > 100_000:
            return
        self.fraction = self.fraction or bool((steps.obs[:64] != np.round(steps.obs[:64])).any())
        starts = np.flatnonzero(np.diff(steps.episode, prepend=-1))
        ends = np.concatenate((starts[1:], [len(steps)]))
        same = np.concatenate(([True], steps.obs[1:, 0] == steps.obs[:-1, 0]))
        near = np.flatnonzero(same[1:])
        same[near + 1] = (steps.obs[near + 1] == steps.obs[near]).all(axis=1)
        same[starts] = True
        changes = np.concatenate(([0], np.cumsum(~same)))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            code = int(steps.episode[start])
            still = bool(changes[end] == changes[start])
            if code in self.first:
                still &= self.still[code] and _hash(steps.obs[start]) == self.first[code]
            else:
                self.first[code] = _hash(steps.obs[start])
            self.still[code] = still
            self.length[code] = self.length.get(code, 0) + end - start
            if still:
                self.where.setdefault(code, Ranges()).add(view.path, steps.record[start:end])
            else:
                self.where.pop(code, None)

    def answer(self, case: Case) -> Iterator[Finding]:
        """Said when every episode of some length stands still, and they differ from each other."""
        long = [code for code, length in self.length.items() if length >= 3]
        stuck = [code for code in long if self.still[code]]
        kinds = len({self.first[c] for c in stuck})
        if len(long) < 2 or not stuck or len(stuck) < len(long) * 0.9 or kinds < 2:
            yield from self._frozen(case, long, stuck)
            return
        where = Ranges()
        for code in stuck:
            if code in self.where:
                where.add_all(self.where[code])
        text = (
            f"`{case.roles.key('obs')}` is the same at every step of {len(stuck)} of {len(long)} episodes, and differs "
            "between them: a reference to one live buffer was stored, not a copy"
        )
        yield case.finding("GYR327", text, where=where, role="obs")

    def _frozen(self, case: Case, long: list[int], stuck: list[int]) -> Iterator[Finding]:
        """Some episodes in which nothing is seen to change, beside others that do."""
        lasting = [code for code in stuck if self.length[code] >= load_record_limits().frozen_steps]
        if not lasting or len(long) == len(stuck) or not self.fraction:
            return  # on a grid one may stand still
        where = Ranges()
        for code in lasting:
            if code in self.where:
                where.add_all(self.where[code])
        text = (
            f"`{case.roles.key('obs')}` does not change in {len(lasting)} of {len(long)} episodes although it does in the others: a sensor, a "
            "wrapper or a buffer that no longer follows the environment"
        )
        yield case.finding("GYR327", text, where=where, role="obs", severity=Severity.WARNING)


def _hash(row: Floats) -> int:
    """Equal for equal observations; 0 and -0 are equal."""
    return hash((row + 0).tobytes())
