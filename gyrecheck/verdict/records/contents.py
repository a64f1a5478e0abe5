"""Records that hold the same values as another one: written twice under two names, or with the log-probs of another sample.

Rows are compared by a 64-bit sum over the bits of all their numbers and positions; unlike rows fall together once in 1e9 pairs or less.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from gyrecheck.model.fields import Column, Kind
from gyrecheck.model.finding import Finding
from gyrecheck.rulebook.record_limits import load_record_limits
from gyrecheck.verdict.records.question import Case, Question
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import Bools, Ints, View, rank

Sums = npt.NDArray[np.uint64]
KEPT = 400_000
"""Rows remembered, so that memory stays bounded."""


class SameContent(Question):
    """The same sample under two names, and log-probs that belong to another sample."""

    about = "records with the same content"
    yields = frozenset({"GYR337"})
    needs = (("tokens", "logprob"), ("obs", "action", "step", "episode_id"))

    def __init__(self) -> None:
        self.whole: dict[int, int] = {}
        self.logprobs: dict[int, tuple[int, int]] = {}
        self.twice = Ranges()
        self.twice_seen: list[tuple[int, str]] = []
        self.other = Ranges()
        self.other_seen: list[tuple[int, str]] = []
        self.rows = 0

    def feed(self, view: View) -> None:
        """Read one batch."""
        if len(self.whole) > KEPT:
            return
        if view.has("tokens", "logprob"):
            self._samples(view)
        elif view.has("obs", "action", "step", "episode_id"):
            self._steps(view)

    def _samples(self, view: View) -> None:
        tokens, logprob = view.column("tokens"), view.column("logprob")
        if tokens is None or logprob is None or not _numbers(tokens) or not _numbers(logprob) or rank(logprob) == 0:
            return
        told = _varied(logprob, view.rows) & (np.asarray(logprob.counts) >= load_record_limits().equal_tokens)
        temperature = view.number("temperature")
        if temperature is not None:
            told &= ~(temperature == 0)  # greedy answers to one prompt are equal
        one, two = sums(tokens, view.rows), sums(logprob, view.rows)
        batch = view.labels("batch_id")
        self.rows += view.rows
        for at in np.flatnonzero(told).tolist():
            record = int(view.records[at])
            place = hash((int(one[at]), int(two[at]), batch[at] if batch else None))
            first = self.whole.setdefault(place, record)
            if first != record:
                self.twice.add(view.path, view.records[at : at + 1])
                self._say(self.twice_seen, record, f"record {record} holds the tokens and log-probs of record {first}")
                continue
            known = self.logprobs.setdefault(int(two[at]), (record, int(one[at])))
            if known[1] != int(one[at]):
                self.other.add(view.path, view.records[at : at + 1])
                self._say(self.other_seen, record, f"record {record} has the log-probs of record {known[0]} and other tokens")

    def _steps(self, view: View) -> None:
        columns = [view.column(role) for role in ("obs", "action", "reward", "step", "next_obs")]
        used = [column for column in columns if column is not None and _numbers(column)]
        step = view.integer("step")
        episodes = view.labels("episode_id")
        if step is None or episodes is None or len(used) < 3 or not step[1].all():
            return
        beside, batch = view.labels("env_id"), view.labels("batch_id")
        total = np.zeros(view.rows, np.uint64)
        for number, column in enumerate(used):
            total = total * np.uint64(0x9E3779B97F4A7C15) + sums(column, view.rows) + np.uint64(number)
        self.rows += view.rows
        for at, (value, name) in enumerate(zip(total.tolist(), episodes, strict=True)):
            key = hash((value, name, beside[at] if beside else None, batch[at] if batch else None))
            record = int(view.records[at])
            first = self.whole.setdefault(key, record)
            if first != record:
                self.twice.add(view.path, view.records[at : at + 1])
                self._say(self.twice_seen, record, f"record {record} is record {first} again")

    @staticmethod
    def _say(seen: list[tuple[int, str]], record: int, text: str) -> None:
        if len(seen) < 5:
            seen.append((record, text))

    def answer(self, case: Case) -> Iterator[Finding]:
        """Copies in a minority of the records; log-probs of another sample."""
        if self.twice and self.twice.rows <= 0.5 * self.rows:
            text = f"duplicate samples: {self.twice.rows} of {self.rows} records hold what another one holds: {self.twice_seen[0][1]}"
            yield case.finding("GYR337", text, where=self.twice, evidence=self.twice_seen)
        if self.other:
            text = (
                f"`{case.roles.key('logprob')}` belongs to another sample at {self.other.rows} of {self.rows} records: "
                f"{self.other_seen[0][1]}; a buffer that was not copied, or a join by the wrong index"
            )
            yield case.finding("GYR349", text, where=self.other, role="logprob", evidence=self.other_seen)


def sums(column: Column, rows: int) -> Sums:
    """[rows] one 64-bit number for each row's values in their order."""
    counts: Ints = np.asarray(column.counts)
    bits = np.asarray(column.flat).astype(np.float64).view(np.uint64)
    start = np.cumsum(counts) - counts
    position = (np.arange(len(bits)) - np.repeat(start, counts)).astype(np.uint64)
    mixed = (bits ^ (bits >> np.uint64(29))) * (position * np.uint64(2) + np.uint64(0xBF58476D1CE4E5B9))
    mixed ^= mixed >> np.uint64(31)
    out = np.zeros(rows, np.uint64)
    filled = np.flatnonzero(counts > 0)
    if len(filled):
        out[filled] = np.add.reduceat(mixed, start[filled])
    return out + counts.astype(np.uint64)


def _numbers(column: Column) -> bool:
    return column.texts is None and column.kind in {Kind.INT, Kind.FLOAT, Kind.BOOL}


def _varied(column: Column, rows: int) -> Bools:
    """[rows] rows in which no value is the fill value 0 throughout or stands alone."""
    flat, counts = np.asarray(column.flat), np.asarray(column.counts)
    start = np.cumsum(counts) - counts
    out = np.zeros(rows, np.bool_)
    filled = np.flatnonzero(counts > 0)
    if len(filled):
        out[filled] = np.maximum.reduceat(flat, start[filled]) > np.minimum.reduceat(flat, start[filled])
    return out
