"""Whether the successor of an episode's last step is the first observation of a later episode, where several lie side by side in a file.

The next row is another environment's there, so ends are remembered until an episode begins with that very observation. Only observations
with fractions are compared: on a grid one starts where another ended by chance.
"""

from __future__ import annotations

import numpy as np

from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.steps import Steps
from gyrecheck.verdict.records.view import Floats

KEPT = 200_000
SEVERAL = 16
"""Rows from which on they tell how far a step usually leads."""
LEAP = 4.0
"""Usual steps that a row must lead away to be a leap."""
RARE = 0.2
"""Share of rewards of exactly 0 below which one at an episode's first row says that nothing was done there."""


class LaterStarts:
    """Ends that wait for the episode that begins with their successor."""

    def __init__(self) -> None:
        self.waiting: dict[int, list[tuple[str, int, bool]]] = {}
        """Hash of the last successor to file, record, and whether the end was a cut-off, of each end that has it."""
        self.begun: set[int] = set()
        self.ends: list[tuple[str, int]] = []
        self.last_start: tuple[str, int] = ("", 0)
        self.hits = Ranges()
        self.truncated = 0
        self.starts: set[int] = set()
        self.seen: list[tuple[int, str]] = []

    def read(self, path: str, steps: Steps) -> None:
        """Read one batch whose episodes are told by an id and lie interleaved."""
        obs, after, ends = steps.obs, steps.next_obs, steps.ends
        if obs is None or after is None or ends is None or len(self.waiting) > KEPT:
            return
        heads = np.flatnonzero(np.diff(steps.episode, prepend=-1))
        fresh = [at for at in heads.tolist() if int(steps.episode[at]) not in self.begun]
        self.begun.update(int(steps.episode[at]) for at in fresh)
        resets = only_resets(steps)
        fresh = [at for at in fresh if not resets[at]]  # a tick that only resets begins where the last episode ended
        closing = np.flatnonzero(ends & ~(after == obs).all(axis=1) & _fraction(after))
        if steps.final_obs is not None:
            closing = closing[~steps.final_obs[closing]]
        events = [(int(steps.order[at]), 0, at) for at in closing.tolist()] + [(int(steps.order[at]), 1, at) for at in fresh]
        for _, begins, at in sorted(events):
            number = int(steps.record[at])
            if not begins:
                cut = bool(steps.truncated[at]) if steps.truncated is not None else False
                self.waiting.setdefault(_mark(after[at]), []).append((path, number, cut))
                self.ends.append((path, number))
                continue
            self.last_start = (path, number)
            ended = self.waiting.get(_mark(obs[at]))
            if not ended:
                continue
            found = ended.pop(0)
            self.hits.add(found[0], np.array([found[1]]))
            self.truncated += found[2]
            self.starts.add(_mark(obs[at]))
            if len(self.seen) < 5:
                self.seen.append((found[1], f"its successor is the first observation of the episode that begins at record {number}"))

    @property
    def followed(self) -> int:
        """How many ends have an episode that begins after them."""
        path, number = self.last_start
        return sum(1 for end in self.ends if end[0] != path or end[1] < number)


def only_resets(steps: Steps) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """[N] rows that look as if nothing was done: a reward of exactly 0 where zeros are rare, or a leap far beyond the usual step."""
    out = np.zeros(len(steps), np.bool_)
    if steps.reward is not None and (idle := steps.reward == 0).mean() < RARE:
        out |= idle
    if steps.obs is not None and steps.next_obs is not None and len(steps) >= SEVERAL:
        leap = np.abs(steps.next_obs.astype(np.float64) - steps.obs).max(axis=1)
        out |= leap > LEAP * float(np.nanmedian(leap))
    return out


def _fraction(values: Floats) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """[N] rows that hold a number that is not whole."""
    if values.dtype.kind != "f":
        return np.zeros(len(values), np.bool_)
    return np.asarray((values != np.round(values)).any(axis=1))


def _mark(row: Floats) -> int:
    """Equal for equal observations; 0 and -0 are equal."""
    return hash((row + 0).tobytes())
