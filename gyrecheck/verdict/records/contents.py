"""Records that hold the same values as another one: written twice under two names, or with the log-probs of another sample.

Rows are compared by a 64-bit sum over the bits of all their numbers and positions; unlike rows fall together once in 1e9 pairs or less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from gyrecheck.model.fields import Column, Kind
from gyrecheck.model.finding import Finding
from gyrecheck.rulebook.field_names import leaf, normal
from gyrecheck.rulebook.record_limits import load_record_limits
from gyrecheck.verdict.records.question import Case, Question
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import Bools, Ints, View, rank

Sums = npt.NDArray[np.uint64]
SEED = np.uint64(0xBF58476D1CE4E5B9)
_WORD = (1 << 64) - 1
SURPRISE = 3.0
"""Nats of a whole answer below which two samples may well be equal: once in 20."""
KEPT = 400_000
"""Rows remembered, so that memory stays bounded."""


class SameContent(Question):
    """The same sample under two names, and log-probs that belong to another sample."""

    about = "records with the same content"
    yields = frozenset({"GYR337"})
    needs = (("tokens", "logprob"), ("obs", "action", "step", "episode_id"))

    def __init__(self) -> None:
        self.parts: list[tuple[str, Ints, Sums, Sums, Sums, Sums, Sums, Bools]] = []
        """Of each batch its file, and of each row its record and the marks of all its content, of its log-probs, of its tokens, of its slice
        of its step, and whether it is unlikely to be sampled twice."""
        self.kept = 0
        self.samples = False
        self.twice = Ranges()
        self.twice_seen: list[tuple[int, str]] = []
        self.other = Ranges()
        self.other_seen: list[tuple[int, str]] = []
        self.rows = 0
        self.shared = False
        """Whether every copy lies in another slice of its original's step."""

    def feed(self, view: View) -> None:
        """Read one batch."""
        if self.kept > KEPT:
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
        told &= ~view.idle()  # a copy that fills up a batch and that no loss counts is no second sample
        one, two = marks_of(view, "tokens"), marks_of(view, "logprob")
        self.rows += view.rows
        self.samples = True
        whole = together((one, two, labels(view, "batch_id"), marks_named(view, "passes")))
        self._keep(view, (whole, two, one, marks_named(view, "slices"), labels(view, "step")), told, _unlikely(logprob, view.rows))

    def _steps(self, view: View) -> None:
        columns = [view.column(role) for role in ("obs", "action", "reward", "step", "next_obs")]
        used = [column for column in columns if column is not None and _numbers(column)]
        step = view.integer("step")
        if step is None or view.labels("episode_id") is None or len(used) < 3 or not step[1].all():
            return
        names = [labels(view, role) for role in ("episode_id", "env_id", "batch_id")]
        whole = together([*(sums(column, view.rows) for column in used), *names])
        self.rows += view.rows
        live = ~view.idle()
        self._keep(view, (whole, whole, whole, whole, whole), live, live)

    def _keep(self, view: View, marks: tuple[Sums, Sums, Sums, Sums, Sums], rows: Bools, unlikely: Bools) -> None:
        whole, logprobs, tokens, shares, steps = (mark[rows] for mark in marks)
        self.parts.append((view.path, view.records[rows], whole, logprobs, tokens, shares, steps, unlikely[rows]))
        self.kept += int(rows.sum())

    def _compare(self) -> None:
        """Every row against the first one that has its content, all at once."""
        if not self.kept:
            return
        records, whole, logprobs, tokens, shares, steps = (np.concatenate([part[at] for part in self.parts]) for at in (1, 2, 3, 4, 5, 6))
        unlikely = np.concatenate([part[7] for part in self.parts])
        first = first_equal(whole)
        twice = first != np.arange(len(first)) if self.samples else records[first] != records
        if int((twice & unlikely).sum()) * 2 < int(twice.sum()):
            twice[:] = False
        across = twice & (shares[first] != shares) & (steps[first] == steps)
        self.shared = bool(twice.any()) and bool((across == twice).all())
        for at in np.flatnonzero(twice)[:5].tolist():
            what = "holds the tokens and log-probs of record {}" if self.samples else "is record {} again"
            if records[at] == records[first[at]]:
                what = "holds one answer's tokens and log-probs twice"
            self.twice_seen.append((int(records[at]), f"record {records[at]} " + what.format(records[first[at]])))
        known = first_equal(logprobs)
        other = ~twice & (tokens[known] != tokens) if self.samples else np.zeros(len(twice), np.bool_)
        for at in np.flatnonzero(other)[:5].tolist():
            text = f"record {records[at]} has the log-probs of record {records[known[at]]} and other tokens"
            self.other_seen.append((int(records[at]), text))
        begin = 0
        for path, own, *_ in self.parts:
            end = begin + len(own)
            self.twice.add(path, own[twice[begin:end]])
            self.other.add(path, own[other[begin:end]])
            begin = end
        self.parts, self.kept = [], 0

    def answer(self, case: Case) -> Iterator[Finding]:
        """Copies in a minority of the records; log-probs of another sample."""
        self._compare()
        if self.twice and (self.twice.rows <= 0.5 * self.rows or self.shared):
            how = ", in another slice of the same step" if self.shared else ""
            text = f"duplicate samples: {self.twice.rows} of {self.rows} records hold what another one holds{how}: {self.twice_seen[0][1]}"
            yield case.finding("GYR337", text, where=self.twice, evidence=self.twice_seen)
        if self.other:
            text = (
                f"`{case.roles.key('logprob')}` belongs to another sample at {self.other.rows} of {self.rows} records: "
                f"{self.other_seen[0][1]}; a buffer that was not copied, or a join by the wrong index"
            )
            yield case.finding("GYR349", text, where=self.other, role="logprob", evidence=self.other_seen)


def _unlikely(logprob: Column, rows: int) -> Bools:
    """[rows] answers that a policy does not give twice: short ones of which it is sure come again by themselves."""
    row = np.repeat(np.arange(rows), np.asarray(logprob.counts))
    return np.bincount(row, np.abs(np.nan_to_num(np.asarray(logprob.flat).astype(np.float64))), rows) >= SURPRISE


def sums(column: Column, rows: int) -> Sums:
    """[rows] one 64-bit number for each row's values in their order."""
    counts: Ints = np.asarray(column.counts)
    bits = np.asarray(column.flat).astype(np.float64).view(np.uint64)
    bits ^= bits >> np.uint64(29)
    size = int(counts[0]) if rows else 0
    if size and (counts == size).all():
        mixed = bits.reshape(rows, size)
        mixed *= np.arange(size, dtype=np.uint64) * np.uint64(2) + SEED
        mixed ^= mixed >> np.uint64(31)
        return np.asarray(mixed.sum(axis=1) + np.uint64(size))
    start = np.cumsum(counts) - counts
    position = (np.arange(len(bits)) - np.repeat(start, counts)).astype(np.uint64)
    bits *= position * np.uint64(2) + SEED
    bits ^= bits >> np.uint64(31)
    out = np.zeros(rows, np.uint64)
    filled = np.flatnonzero(counts > 0)
    if len(filled):
        out[filled] = np.add.reduceat(bits, start[filled])
    return out + counts.astype(np.uint64)


def prefix_sums(column: Column, rows: int) -> Sums:
    """[len(flat)] what `sums` would give for each row cut off behind each of its values."""
    counts: Ints = np.asarray(column.counts)
    bits = np.asarray(column.flat).astype(np.float64).view(np.uint64)
    bits ^= bits >> np.uint64(29)
    start = np.cumsum(counts) - counts
    position = (np.arange(len(bits)) - np.repeat(start, counts)).astype(np.uint64)
    bits *= position * np.uint64(2) + SEED
    bits ^= bits >> np.uint64(31)
    total = np.concatenate((np.zeros(1, np.uint64), np.cumsum(bits, dtype=np.uint64)))
    return total[1:] - np.repeat(total[start], counts) + position + np.uint64(1) if rows else bits


def marks_of(view: View, role: str) -> Sums:
    """`sums` of the column that plays `role`, made once a batch; 0 where none does or it holds no numbers."""
    made: Sums | None = view.shared.get(f"marks {role}")
    if made is None:
        column = view.column(role)
        made = sums(column, view.rows) if column is not None and _numbers(column) else np.zeros(view.rows, np.uint64)
        view.shared[f"marks {role}"] = made
    return made


def marks_named(view: View, words: str) -> Sums:
    """[rows] one number for the scalars under all keys that have one of these `words` (of the field contract) in their name."""
    known = view.contract.words.get(words, frozenset())
    apart = view.contract.words.get("slices", frozenset()) if words == "passes" else frozenset()
    total = np.zeros(view.rows, np.uint64)
    for key, column in view.batch.columns.items():
        named = normal(leaf(key)).split("_")
        if known.isdisjoint(named) or not apart.isdisjoint(named) or len(np.asarray(column.counts)) != view.rows or rank(column) > 0:
            continue
        if column.texts is not None:
            marks = [0 if text is None else hash(text) & _WORD for text in column.texts]
            total = together((total, np.array(marks, np.uint64))) if len(marks) == view.rows else total
        elif _numbers(column):
            total = together((total, sums(column, view.rows)))
    return total


def labels(view: View, role: str) -> Sums:
    """[rows] one 64-bit number for each row's label, 0 where there is none; equal for equal labels, numbers and text."""
    column = view.column(role)
    if column is not None and column.texts is None and _numbers(column) and (np.asarray(column.counts) == 1).all():
        return np.asarray(np.asarray(column.flat).astype(np.float64).view(np.uint64))
    found = view.labels(role)
    if found is None:
        return np.zeros(view.rows, np.uint64)
    return np.fromiter((0 if label is None else hash(label) & _WORD for label in found), np.uint64, view.rows)


def together(parts: Sequence[Sums]) -> Sums:
    """[rows] one number for several, in their order."""
    total = np.zeros(len(parts[0]), np.uint64)
    for number, part in enumerate(parts):
        total = total * np.uint64(0x9E3779B97F4A7C15) + (part ^ (part >> np.uint64(32))) + np.uint64(number)
        total ^= total >> np.uint64(29)
    return total


def first_equal(values: Sums) -> Ints:
    """[rows] index of the first row that has the same value."""
    _, first, which = np.unique(values, return_index=True, return_inverse=True)
    return np.asarray(first[which], np.int64)


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
