"""Log-probs that no discrete policy can give, and fill values in their place."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.fields import Column, Kind
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.rulebook.record_limits import load_record_limits
from gyrecheck.verdict.records.neighbours import Neighbours
from gyrecheck.verdict.records.question import Case, Question, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import Bools, Ints, View, per_row, rank

LIKELY = -1.0
"""Log-prob above which a token is so likely that a sampler that rounds or truncates may give it 0."""


class LogProbs(Question):
    """Log-probs that no discrete policy can give, and fill values in their place."""

    about = "log-probs"
    needs = (("logprob",),)

    def __init__(self) -> None:
        self.positive = Ranges()
        self.seen: list[tuple[int, str]] = []
        self.sentinel = Ranges()
        self.sentinel_value = 0.0
        self.zero_rows = Ranges()
        self.cut_rows = Ranges()
        self.cut_length = 1 << 30
        self.part_zeros = self.part_values = 0
        self.zeros = 0
        self.values = 0
        self.low, self.high = np.inf, -np.inf
        self.discrete = False
        self.rows = 0
        self.greedy = False
        self.single = False
        self.near = Neighbours(0.0)
        self.fine = False

    def feed(self, view: View) -> None:
        """Read one batch."""
        column = view.column("logprob")
        if column is None or column.kind not in {Kind.FLOAT, Kind.INT}:
            return
        flat = np.asarray(column.flat).astype(np.float64, copy=False)
        counts = np.asarray(column.counts)
        finite = np.isfinite(flat)
        if not finite.any():
            return
        self.rows += int((counts > 0).sum())
        self.discrete |= _discrete(view)
        temperature = view.number("temperature")
        self.greedy |= temperature is not None and bool((temperature == 0).any())
        counted = _counted(view, counts)
        use = finite & counted
        if not use.any():
            return
        used = flat if use.all() else flat[use]
        self.values += len(used)
        low, high = float(used.min()), float(used.max())
        self.low, self.high = min(self.low, low), max(self.high, high)
        if high > 1e-4:
            above = use & (flat > 1e-4)
            self.positive.add(view.path, view.records[per_row(above, counts) > 0])
            row = np.repeat(np.arange(view.rows), counts)
            at = int(above.argmax())
            self.seen.append(
                (int(view.records[row[at]]), f"log-prob {show(flat[at])} is a probability of {show(np.exp(min(flat[at], 50)))}")
            )
        if low <= load_record_limits().fill_logprob:
            filler = use & (flat <= load_record_limits().fill_logprob)
            self.sentinel.add(view.path, view.records[per_row(filler, counts) > 0])
            self.sentinel_value = float(flat[filler][0])
        self.single |= rank(column) == 0
        if self.single:
            self.near.read(used)
            self.fine = self.fine or bool((np.abs(used * 100 - np.round(used * 100)) > 1e-6).any())
        zero = use & (flat == 0)
        zeros = int(np.count_nonzero(zero))
        if not zeros:
            return
        self.zeros += zeros
        used_row = per_row(use, counts)
        whole = (used_row > 0) & (per_row(zero, counts) == used_row)
        whole &= ~_certain(view, zero, counts)
        self.part_zeros += int(per_row(zero, counts)[~whole].sum())
        self.part_values += int(used_row[~whole].sum())
        cut = whole & _truncated(view)
        self.cut_rows.add(view.path, view.records[cut])
        if cut.any():
            self.cut_length = min(self.cut_length, int(used_row[cut].min()))
        self.zero_rows.add(view.path, view.records[whole & ~cut])

    def answer(self, case: Case) -> Iterator[Finding]:
        """Impossible ones for discrete actions; zeros that look like a default."""
        key = case.roles.key("logprob")
        if self.positive and self.discrete:
            share = self.positive.rows / max(self.rows, 1)
            if self.low >= 0 and self.high <= 1 and share > 0.9:
                text = (
                    f"`{key}` holds probabilities (0 to 1), not log-probabilities: every value is at or above 0 at "
                    f"{self.positive.rows} of {self.rows} records"
                )
            elif self.low >= 0 and share > 0.9:
                text = (
                    f"`{key}` is above 0 throughout ({show(self.low)} to {show(self.high)}) for discrete actions: a negated "
                    "log-prob, or no log-prob at all"
                )
            else:
                text = f"`{key}` is above 0 for a discrete action at {self.positive.rows} of {self.rows} records: {self.seen[0][1]}"
            yield case.finding("GYR335", text, where=self.positive, role="logprob", evidence=self.seen)
        if self.sentinel:
            yield case.finding(
                "GYR336",
                f"`{key}` holds the fill value {show(self.sentinel_value)} at counted positions of {self.sentinel.rows} records",
                where=self.sentinel,
                role="logprob",
                severity=Severity.WARNING,
            )
        if self.greedy or not self.zeros or self.values < 4:
            return
        if self.zeros == self.values or not self._left_alone():
            self.zero_rows.add_all(self.cut_rows)
        if self.zeros == self.values and self.zero_rows:
            text = (
                f"`{key}` is exactly 0 at all {self.values} counted values of {self.rows} records, a probability of 1 for "
                "every action: filled with zeros, not recorded"
            )
            yield case.finding("GYR304", text, where=self.zero_rows, role="logprob", severity=Severity.WARNING)
        elif self.zero_rows and self.zero_rows.rows < 0.9 * self.rows and self._unlikely():
            text = (
                f"`{key}` is exactly 0 throughout {self.zero_rows.rows} of {self.rows} records while the others vary "
                f"({show(self.low)} to {show(self.high)}): a default in place of a measurement"
            )
            yield case.finding("GYR304", text, where=self.zero_rows, role="logprob", severity=Severity.WARNING)

    def _left_alone(self) -> bool:
        """Whether truncated sampling may have left one token alone at every position of a row: other rows have such positions, too."""
        alone = self.part_zeros / max(self.part_values, 1)
        return self.single or alone ** min(self.cut_length, 64) * self.rows >= 1

    def _unlikely(self) -> bool:
        """Whether exact zeros are rare outside the records that hold nothing else (a confident model rounds to 0 here and there)."""
        if self.single:
            told = self.fine and self.near.stands_out(self.zeros) and not self.near.may_be_rounded(self.zeros)
            return self.zeros >= 2 and self.zeros <= 0.6 * self.values and self.high <= 0 and told
        return self.values > 0 and self.zero_rows.rows > 0


def _certain(view: View, zero: Bools, counts: Ints) -> Bools:
    """[rows] rows at whose zeros the trainer's own log-probs, too, say that the token was likely: measured, not filled in."""
    column = view.column("replay_logprob")
    if column is None or column.kind is not Kind.FLOAT or not np.array_equal(np.asarray(column.counts), counts):
        return np.zeros(view.rows, np.bool_)
    likely = np.asarray(column.flat) > LIKELY
    return np.asarray((per_row(zero & likely, counts) > 0) & (per_row(zero & ~likely, counts) == 0))


def _truncated(view: View) -> Bools:
    """[rows] rows sampled with top-k or top-p, whose log-prob is exactly 0 where one token alone was left."""
    out = np.zeros(view.rows, np.bool_)
    mass, number = view.number("top_p"), view.number("top_k")
    if mass is not None:
        out |= (mass > 0) & (mass < 1)
    if number is not None:
        out |= number >= 1
    return out


def _discrete(view: View) -> bool:
    if view.has("tokens"):
        tokens = view.column("tokens")
        return tokens is not None and tokens.kind is Kind.INT
    action = view.column("action")
    return action is not None and action.kind in {Kind.INT, Kind.BOOL} and rank(action) == rank_of(view.column("logprob"))


def rank_of(column: Column | None) -> int:
    """The column's usual rank; 0 for none."""
    return rank(column) if column is not None else 0


def _counted(view: View, counts: Ints) -> Bools:
    """[values] which log-probs the mask counts; all without a mask of the same lengths."""
    mask = view.column("mask")
    if mask is None or mask.kind is Kind.TEXT or not np.array_equal(np.asarray(mask.counts), counts):
        return np.ones(int(counts.sum()), np.bool_)
    on = view.counted("mask")
    return on if on.any() else np.ones(len(on), np.bool_)
