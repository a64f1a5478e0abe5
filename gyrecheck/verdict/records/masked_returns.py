"""Returns of tokens that stop at a masked span in the middle of an answer, as if the answer ended there (GYR344).

Where the mask leaves out tool text between two parts that the policy wrote, the return before it still holds the rewards behind it:
G_t = r_t + gamma G_t', t' the next counted token. Behind an answer's end the running sum is 0; within it, a sum that is set to 0 at each masked
token forgets the outcome. Discounting counts every token or the counted ones alone: both are in order.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.fields import Column, Kind
from gyrecheck.model.finding import Finding
from gyrecheck.verdict.records.contents import labels
from gyrecheck.verdict.records.question import Case, Question, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.returns import discount_of
from gyrecheck.verdict.records.view import Bools, Floats, Ints, View

LEAST = 3
"""Spans from which on a rule is seen in them."""
USUAL = 0.8
ROUNDED = 2e-3
SMALL = 0.3
"""Share of the largest return above which the one before a span is an outcome."""
RARE = 0.05
"""Share of the spans with an outcome before them above which the parts have outcomes of their own."""
KEPT = 5_000_000
"""Values remembered, so that memory stays bounded."""


class MaskedReturns(Question):
    """Chains the returns of counted tokens over the spans between them."""

    about = "returns over masked spans"
    yields = frozenset({"GYR344"})
    needs = (("reward", "return", "mask"),)

    def __init__(self) -> None:
        self.parts: list[tuple[str, Ints, Sums3]] = []
        self.kept = 0
        self.gamma: float | None = None

    def feed(self, view: View) -> None:
        """Read one batch."""
        columns = [view.column(role) for role in ("reward", "return", "mask")]
        known = [c for c in columns if c is not None and c.kind in {Kind.FLOAT, Kind.INT, Kind.BOOL}]
        if len(known) < 3 or self.kept > KEPT:
            return
        counts = np.asarray(known[0].counts)
        if not all(np.array_equal(counts, np.asarray(c.counts)) for c in known[1:]):
            return
        whole = _answers(view, known[0], counts)
        if whole is None:
            return
        reward, gain = (np.asarray(c.flat).astype(np.float64) for c in known[:2])
        on = view.counted("mask")
        gamma = view.number("gamma")
        if gamma is not None and np.isfinite(gamma).any():
            self.gamma = float(np.nanmedian(gamma))
        at = np.flatnonzero(on & np.isfinite(reward) & np.isfinite(gain))
        if len(at) < 2:
            return
        total = np.concatenate(([0.0], np.cumsum(np.nan_to_num(reward))))
        here, then = at[:-1], at[1:]
        same = whole[here] == whole[then]
        here, then = here[same], then[same]
        between = total[then] - total[here + 1]
        records = view.records[np.repeat(np.arange(view.rows), counts)[here]]
        self.parts.append((view.path, records, (reward[here], between, gain[here], gain[then], (then - here).astype(np.float64))))
        self.kept += len(here)

    def answer(self, case: Case) -> Iterator[Finding]:
        """Where the sum holds between neighbours and most spans cut it."""
        if not self.parts:
            return
        reward, between, gain, following, step = (np.concatenate([part[2][i] for part in self.parts]) for i in range(5))
        near = step == 1
        gamma = self.gamma if self.gamma is not None else discount_of(reward[near], gain[near], following[near])
        if gamma is None or near.sum() < LEAST:
            return
        chained = np.abs(gain - reward - gamma * following) <= ROUNDED
        if chained[near].mean() < USUAL:
            return
        size = np.maximum(np.abs(following), 1.0) * ROUNDED
        over = ~near & (np.abs(following) > 2 * size)
        carried = np.zeros(len(gain), np.bool_)
        for held in (gamma * following, gamma**step * following):
            carried |= np.abs(gain - reward - held) <= size
            carried |= np.abs(gain - reward - between - held) <= size
        cut = over & ~carried & ((np.abs(gain - reward) <= ROUNDED) | (np.abs(gain - reward - between) <= ROUNDED))
        if cut.sum() < LEAST or cut.sum() < USUAL * over.sum():
            return
        if (np.abs(reward[~near]) > SMALL * np.abs(following).max()).mean() > RARE:
            return  # where outcomes stand before the spans, each part is an answer of its own: packed rows, turns rewarded apart
        where, begin = Ranges(), 0
        seen: list[tuple[int, str]] = []
        for path, records, _ in self.parts:
            own = cut[begin : begin + len(records)]
            where.add(path, np.unique(records[own]))
            for at in np.flatnonzero(own)[: 5 - len(seen)].tolist():
                k = begin + at
                text = f"return {show(gain[k])} = reward {show(reward[k])} alone before a masked span, {show(following[k])} behind it"
                seen.append((int(records[at]), text))
            begin += len(records)
        text = (
            f"`{case.roles.key('return')}` is not the sum of the rewards that follow: at {int(cut.sum())} of {int(over.sum())} masked spans inside "
            f"an answer it starts again from 0 (`{case.roles.key('mask')}`): {seen[0][1]}; what the policy wrote before them earns nothing of the outcome"
        )
        yield case.finding("GYR344", text, where=where, role="return", evidence=seen, side="training")


Sums3 = tuple[Floats, Floats, Floats, Floats, Floats]
"""Of each pair of counted tokens the first one's reward, the rewards between, both returns, and how far they are apart."""


def _answers(view: View, column: Column, counts: Ints) -> Ints | None:
    """[values] which answer each value belongs to: its record, or where a row is a token the sample that it names."""
    row = np.repeat(np.arange(view.rows), counts)
    if int(counts.max(initial=0)) > 1:
        return row if column.shapes and all(len(shape) == 1 for shape in column.shapes) else None
    for role in ("sample_id", "trajectory_id", "episode_id"):
        if view.has(role):
            names = labels(view, role)
            change: Bools = np.diff(names, prepend=names[:1]) != 0
            runs = np.cumsum(change)
            return np.asarray(runs[row]) if len(np.unique(runs)) < view.rows else None
    return None
