"""Advantages of tokens against the mask: a value where nothing was sampled and 0 where the policy acted belongs to another record (GYR331).

An advantage that stands on all positions is a convention (the loss masks it), and so is one that stands one position beside the mask in all
records; neither is said.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.fields import Column, Kind
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.question import Case, Question
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import Bools, Ints, View, per_row, rank

KEPT = 100_000
"""Masks remembered, so that a record can be named whose mask the values fit."""


class AdvantagePlace(Question):
    """Whether values stand where the mask counts."""

    about = "places of advantages"
    needs = (("advantage", "mask"),)

    def __init__(self) -> None:
        self.rows = 0
        self.agree = 0
        self.sampled = 0
        self.crossed = 0
        self.beside = {1: 0, -1: 0}
        self.off = Ranges()
        self.seen: list[tuple[int, int, int, int]] = []
        self.masks: dict[bytes, int] = {}

    def feed(self, view: View) -> None:
        """Read one batch."""
        advantage, mask = view.column("advantage"), view.column("mask")
        if not _list(advantage) or not _list(mask) or advantage is None or mask is None:
            return
        counts = np.asarray(mask.counts)
        same = (np.asarray(advantage.counts) == counts) & (counts >= 2)
        if not np.array_equal(np.asarray(advantage.counts), counts):
            return
        value = np.nan_to_num(np.asarray(advantage.flat).astype(np.float64))
        on, held = view.counted("mask"), value != 0
        outside, holes = per_row(held & ~on, counts), per_row(on & ~held, counts)
        inside, counted = per_row(held & on, counts), per_row(on, counts)
        told = same & (outside + inside > 0) & (counted > 0) & (counted < counts)
        self.rows += int(same.sum())
        self.agree += int((told & (outside == 0) & (holes == 0)).sum())
        crossed = told & (outside > 0) & (holes > 0)
        self.crossed += int(crossed.sum())
        self._remember(view, on, counts, told)
        if not crossed.any():
            return
        for shift in self.beside:
            moved = _moved(on, counts, shift)
            self.beside[shift] += int((crossed & (per_row(held != moved, counts) <= 1)).sum())
        self.sampled += int((crossed & self._sampled(view, on, counts)).sum())
        wrong = told & ((outside > 0) | (holes > 0))
        self.off.add(view.path, view.records[wrong])
        start = np.cumsum(counts) - counts
        for at in np.flatnonzero(crossed)[: 5 - len(self.seen)].tolist():
            pattern = held[start[at] : start[at] + counts[at]].tobytes()
            self.seen.append((int(view.records[at]), int(outside[at]), int(holes[at]), self.masks.get(pattern, 0)))

    def _remember(self, view: View, on: Bools, counts: Ints, told: Bools) -> None:
        start = np.cumsum(counts) - counts
        for at in np.flatnonzero(told)[: max(0, KEPT - len(self.masks))].tolist():
            self.masks.setdefault(on[start[at] : start[at] + counts[at]].tobytes(), int(view.records[at]))

    @staticmethod
    def _sampled(view: View, on: Bools, counts: Ints) -> Bools:
        """[rows] rows whose log-probs are 0 exactly where the mask is, so that the mask is right."""
        logprob = view.column("logprob")
        if logprob is None or not _list(logprob) or not np.array_equal(np.asarray(logprob.counts), counts):
            return np.zeros(view.rows, np.bool_)
        real = np.asarray(logprob.flat) != 0
        return np.asarray(per_row(real != on, counts) == 0)

    def answer(self, case: Case) -> Iterator[Finding]:
        """Said where other records keep to the mask, or log-probs say that the mask is right."""
        shifted = max(self.beside.values()) == self.crossed
        right = self.sampled == self.crossed
        if not self.crossed or (shifted and self.agree < 2 and not right):
            return
        sure = self.agree >= 2 or (right and not shifted)
        key, mask = case.roles.key("advantage"), case.roles.key("mask")
        number, outside, holes, other = self.seen[0]
        whose = f", which is the mask of record {other}" if other and other != number else ""
        where = f"{self.off.rows} of {self.rows} records"
        text = (
            f"`{key}` does not stand where `{mask}` counts at {where}: record {number} has a value at {outside} positions with mask 0 and 0 "
            f"at {holes} with mask 1{whose}; the policy is not moved where it acted"
        )
        evidence = [(n, f"{o} values outside the mask, {h} counted positions without") for n, o, h, _ in self.seen]
        yield case.finding(
            "GYR331",
            text,
            where=self.off,
            role="advantage",
            evidence=evidence,
            side="training",
            severity=None if sure else Severity.WARNING,
        )


def _list(column: Column | None) -> bool:
    return column is not None and column.texts is None and column.kind in {Kind.BOOL, Kind.INT, Kind.FLOAT} and rank(column) == 1


def _moved(on: Bools, counts: Ints, shift: int) -> Bools:
    """[values] the mask moved by one position inside each row, False moving in."""
    out = np.roll(on, shift)
    ends = np.cumsum(counts)
    edge = (ends - counts) if shift > 0 else ends - 1
    out[edge[counts > 0]] = False
    return out
