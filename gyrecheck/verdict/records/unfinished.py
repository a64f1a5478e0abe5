"""Episodes that stop without an end flag while others follow: open when collection stopped, cut by a rollout's end, or fragments (GYR328).

A rollout's end is told by a version or batch that changes there, by cuts that stand at multiples of one number of rows, or by other
episodes that begin in the middle. What none of these explains is the rest of an episode that was never written, or a flag that was lost.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.episode_segments import Episode
from gyrecheck.verdict.records.question import Case
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import View

LEAST = 4
"""Episodes from which on a few without an end stand out."""
FEW = 0.34
"""Share of episodes without an end above which their writer sets no flags there."""
PERIOD = 8
"""Rows that a rollout has at least."""
GAPS = 4
"""Rollouts from which on nearly equal lengths are no chance."""
NEARLY = 0.08
"""How far a rollout's length may be from a multiple of the shortest, as a share of it."""
KEPT = 100_000


class RolloutEnds:
    """Where versions or batches change in the order of the file."""

    def __init__(self) -> None:
        self.at: dict[str, list[int]] = {}
        self.rows: dict[str, int] = {}
        self._last: dict[str, tuple[object, int]] = {}

    def read(self, view: View) -> None:
        """Read one batch."""
        self.rows[view.path] = int(view.records[-1])
        kept = self.at.setdefault(view.path, [])
        for role in ("policy_version", "batch_id"):
            labels = view.labels(role)
            if labels is None or len(kept) > KEPT:
                continue
            before, number = self._last.get(role, (labels[0], int(view.records[0])))
            for label, record in zip(labels, view.records.tolist(), strict=True):
                if label != before:
                    kept.append(number)
                before, number = label, record
            self._last[role] = (before, number)

    def explains(self, cut: Episode, beside: int) -> bool:
        """Whether something changes before the next row of this environment, one of `beside`, or the file ends."""
        changes = self.at.get(cut.path, [])
        low = int(np.searchsorted(changes, cut.record)) if changes else 0
        return (low < len(changes) and changes[low] < cut.record + beside) or self.at_end(cut, beside)

    def at_end(self, cut: Episode, beside: int) -> bool:
        """Whether this environment, one of `beside`, has no later row in the file."""
        return cut.record + beside > self.rows.get(cut.path, 0)

    def periodic(self, cuts: Sequence[Episode]) -> bool:
        """Whether the cuts, and the file, end at multiples of one number of rows, exactly or nearly (environments one after another)."""
        for path in {cut.path for cut in cuts}:
            numbers = sorted(cut.record for cut in cuts if cut.path == path)
            ends = [n for n, after in zip(numbers, [*numbers[1:], math.inf], strict=True) if after > n + 1]
            gaps = np.diff([0, *ends, self.rows.get(path, 0)])
            least = int(gaps[gaps > 0].min(initial=1))
            near = len(gaps) >= GAPS and least >= PERIOD and bool((np.abs(gaps / least - np.round(gaps / least)) <= NEARLY).all())
            if math.gcd(*ends, self.rows.get(path, 0)) < PERIOD and not near:
                return False
        return True


def unfinished(case: Case, episodes: Sequence[Episode], ends: RolloutEnds, role: str) -> Iterator[Finding]:
    """Episodes that have no end although others do; in order of their beginning."""
    silent = [e for e in episodes[:-1] if not (e.terminated or e.truncated or e.done)]
    if len(episodes) < LEAST or not silent or len(silent) > FEW * len(episodes):
        return
    last = episodes[-1]
    beside = math.ceil(float(np.median([(e.record - e.first_record + 1) / max(e.length, 1) for e in episodes])))
    behind = [e for e in silent if e.path != last.path or e.record < last.first_record]
    cut = [e for e in behind if e.path != last.path or not ends.at_end(e, beside)]
    longest = max(e.length for e in episodes)
    firsts = Counter(e.first_step for e in episodes)
    lost = [e for e in cut if not ends.explains(e, beside) and e.length < longest]
    fragments = bool(case.roles.key("episode_id") and case.roles.key("trajectory_id"))  # parts of episodes are what is written
    if fragments or len(firsts) > 1 or (lost and ends.periodic(lost)):
        lost = []
    if not cut:
        return
    where = Ranges()
    for e in sorted(cut, key=lambda e: e.record):
        where.add(e.path, np.array([e.record]))
    what = (
        "and not all of them where a rollout ends: the rest of them was never written, or a flag was lost"
        if lost
        else "cut off by the end of a rollout, or a flag that was lost"
    )
    text = f"{len(cut)} of {len(episodes)} episodes stop without an end flag while others follow{', ' if lost else ': '}{what}"
    yield case.finding("GYR328", text, where=where, role=role, severity=Severity.WARNING if lost else Severity.NOTE)
