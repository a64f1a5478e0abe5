"""Tokens that the record itself says others wrote (a tool, an environment, a user), and that its mask counts.

Told by a list of spans with a kind and their bounds or lengths, or by one word a token. Bounds are read only where the spans cover the
mask from its first token to its last, so that no offset is guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np

from gyrecheck.model.fields import Column, Kind
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.rulebook.field_names import normal
from gyrecheck.verdict.records.question import Case
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import Bools, Ints, View

READ = 20_000
"""Records of a batch that are looked at one by one."""
T = TypeVar("T")
Span = tuple[str, int, int]
"""Kind, first token, token after the last."""


class ToldSpans:
    """Counted tokens of spans that the policy did not write."""

    def __init__(self) -> None:
        self.where = Ranges()
        self.rows = 0
        self.own = 0
        """Records with a counted span of the policy's own: only then the words are understood."""
        self.filled = 0
        """Records whose counted foreign tokens all have the fill value of a log-prob."""
        self.key = ""
        self.seen: list[tuple[int, str]] = []

    @property
    def found(self) -> bool:
        """Whether anything will be said."""
        return bool(self.where) and self.own > 0

    def read(self, view: View, on: Bools, counts: Ints) -> None:
        """`on` is [tokens], whether the mask counts them; `counts` [rows] of them."""
        key, spans = _spans(view, counts)
        if not spans:
            return
        self.key = self.key or key
        words = view.contract.words
        own, others = words.get("written_by_policy", frozenset()), words.get("written_by_others", frozenset())
        tool = words.get("written_by_tool", frozenset())
        logprob = view.column("logprob")
        told = logprob is not None and logprob.kind in {Kind.FLOAT, Kind.INT} and np.array_equal(np.asarray(logprob.counts), counts)
        value = np.asarray(logprob.flat) if told and logprob is not None else None
        starts = np.cumsum(counts) - counts
        for at, row in enumerate(spans[:READ]):
            begin, size = int(starts[at]), int(counts[at])
            if not row or row[0][1] != 0 or row[-1][2] not in {size, size - 1} or not all(a[2] <= b[1] for a, b in pairwise(row)):
                continue
            self.rows += 1
            self.own += any(kind in own and bool(on[begin + first : begin + last].any()) for kind, first, last in row)
            for kind, first, last in row:
                counted = on[begin + first : begin + last]
                if kind not in others | tool or not counted.any():
                    continue
                fill = value is not None and bool(_fill(value[begin + first : begin + last][counted]))
                if value is not None and not fill:
                    continue  # log-probs of their own: the policy may have written it, such as a call
                self.filled += fill
                self.where.add(view.path, view.records[at : at + 1])
                if len(self.seen) < 5:
                    beside = ", whose log-prob is a fill value" if fill else ""
                    self.seen.append(
                        (
                            int(view.records[at]),
                            f"mask 1 on {int(counted.sum())} of the {last - first} tokens of `{kind}` from {first} on{beside}",
                        )
                    )
                break

    def answer(self, case: Case) -> Iterator[Finding]:
        """Sure where a log-prob says too that nothing was sampled there."""
        if not self.found:
            return
        text = (
            f"`{case.roles.key('mask')}` counts tokens that `{self.key}` says the policy did not write, at {self.where.rows} of {self.rows} "
            f"records: {self.seen[0][1]}"
        )
        severity = None if self.filled == self.where.rows else Severity.WARNING
        yield case.finding("GYR334", text, where=self.where, role="mask", evidence=self.seen, severity=severity)


def _fill(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> bool:
    return bool(np.all((values == 0) | np.isnan(values.astype(np.float64))))


def _spans(view: View, counts: Ints) -> tuple[str, list[list[Span]]]:
    """The key that tells whose tokens they are, and [rows] the spans in order; empty where no key does."""
    for key, column in view.batch.columns.items():
        if column.items and (rows := _of_items(view, column)):
            return key, rows
    known = frozenset[str]().union(*(view.contract.words.get(f"written_by_{who}", frozenset()) for who in ("policy", "others", "tool")))
    for key, column in view.batch.columns.items():
        if (
            column.texts is None
            or key in view.roles.roles
            or not np.array_equal(np.asarray(column.counts), counts)
            or counts.max(initial=0) < 2
        ):
            continue
        if {normal(text or "") for text in set(column.texts)} <= known:
            return key, [_runs(part) for part in _split(column.texts, counts)]
    return "", []


def _of_items(view: View, column: Column) -> list[list[Span]]:
    """[rows] the spans that a list of objects tells by bounds or by lengths."""
    items = column.items or {}

    def named(word: str, *kinds: Kind) -> Column | None:
        names = view.contract.words.get(word, frozenset())
        return next((one for name, one in items.items() if normal(name) in names and one.kind in kinds and one.holes is None), None)

    kind = named("span_kind", Kind.TEXT)
    first, last, length = named("span_start", Kind.INT), named("span_end", Kind.INT), named("span_length", Kind.INT)
    if kind is None or kind.texts is None:
        return []
    counts = np.asarray(kind.counts)
    bounds = [one for one in ((first, last) if first is not None and last is not None else (length,)) if one is not None]
    if not bounds or not all(np.array_equal(np.asarray(one.counts), counts) for one in bounds):
        return []
    words = _split([normal(text or "") for text in kind.texts], counts)
    numbers = [_split(np.asarray(one.flat).tolist(), counts) for one in bounds]
    if len(numbers) == 1:
        ends = [np.cumsum(row).astype(int).tolist() for row in numbers[0]]
        return [
            [(w, int(e - n), int(e)) for w, n, e in zip(row, size, end, strict=True)]
            for row, size, end in zip(words, numbers[0], ends, strict=True)
        ]
    return [
        sorted(((w, int(a), int(b)) for w, a, b in zip(row, one, two, strict=True)), key=lambda span: span[1])
        for row, one, two in zip(words, numbers[0], numbers[1], strict=True)
    ]


def _split(values: Sequence[T], counts: Ints) -> list[list[T]]:
    ends = np.cumsum(counts).tolist()
    return [list(values[end - count : end]) for end, count in zip(ends, counts.tolist(), strict=True)]


def _runs(words: Sequence[str | None]) -> list[Span]:
    """Runs of one word as spans."""
    spans: list[Span] = []
    for at, word in enumerate(words):
        name = normal(word or "")
        if spans and spans[-1][0] == name:
            spans[-1] = (name, spans[-1][1], at + 1)
        else:
            spans.append((name, at, at + 1))
    return spans
