"""Tokens that the trainer counts against the tokens that were sampled: both sides' own lists, where one record holds both.

The trainer's row may hold prompt, answer and padding, be cut at a greatest length, or leave sampled tokens uncounted. Only a counted
token that the sampler did not give in that order is a mismatch, as after text was encoded a second time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import numpy as np

from gyrecheck.model.fields import Column, Kind
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.question import Case, Question
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import Bools, View, lead, rank

ALIKE = 0.5
"""Share of tokens in common from which two lists are two splits of one text."""
READ = 20_000
"""Records of a batch that are compared one by one."""


def lies_with_trainer(view: View, other: Column) -> bool:
    """Whether a list is as long as the trainer's own token ids at more rows than it is as long as the sampler's."""
    tokens, trained = view.column("tokens"), view.column("train_tokens")
    if tokens is None or trained is None or rank(trained) < 1 or trained.kind is not Kind.INT:
        return False
    there = lead(other) > 0
    return int((there & (lead(other) == lead(trained))).sum()) > int((there & (lead(other) == lead(tokens))).sum())


class TrainedTokens(Question):
    """Counted tokens of the trainer's row that the sampler did not give."""

    about = "tokens of both sides"
    needs = (("tokens", "train_tokens"),)

    def __init__(self) -> None:
        self.agree = 0
        self.alike = Ranges()
        self.unlike = Ranges()
        self.seen: list[tuple[int, str]] = []

    def feed(self, view: View) -> None:
        """Read one batch."""
        sampled, trained = view.column("tokens"), view.column("train_tokens")
        if sampled is None or trained is None or sampled.kind is not Kind.INT or trained.kind is not Kind.INT:
            return
        if rank(sampled) != 1 or rank(trained) != 1:
            return
        given, used = _lists(sampled), _lists(trained)
        mask = view.column("mask")
        on = _flags(view, trained) if mask is not None else None
        prompts = view.column("prompt_tokens")
        heads = _lists(prompts) if prompts is not None and prompts.kind is Kind.INT and rank(prompts) == 1 else None
        for at in range(min(view.rows, READ)):
            part = _counted(used[at], given[at], on[at] if on is not None else None, heads[at] if heads is not None else None)
            if not given[at] or not part:
                continue
            if _holds(used[at], given[at]) or _in_order(part, given[at]):
                self.agree += 1
                continue
            match = SequenceMatcher(None, given[at], part, autojunk=False)
            where = self.alike if match.ratio() >= ALIKE else self.unlike
            where.add(view.path, view.records[at : at + 1])
            if where is self.alike and len(self.seen) < 5:
                first = next(block for block in match.get_opcodes() if block[0] != "equal")
                one, two = given[at][first[1] : first[2]][:4], part[first[3] : first[4]][:4]
                self.seen.append(
                    (int(view.records[at]), f"sampled {one or 'nothing'} at token {first[1] + 1}, trained on {two or 'nothing'}")
                )

    def answer(self, case: Case) -> Iterator[Finding]:
        """Lists that are two splits of one text; lists with nothing in common tell no more than that they are of two kinds."""
        if not self.alike or self.unlike.rows > self.agree + self.alike.rows:
            return
        key, base = case.roles.key("train_tokens"), case.roles.key("tokens")
        total = self.agree + self.alike.rows + self.unlike.rows
        text = f"`{key}` counts other tokens than `{base}` at {self.alike.rows} of {total} records: {self.seen[0][1]}"
        severity = None if self.agree else Severity.WARNING
        yield case.finding("GYR342", text, where=self.alike, role="train_tokens", evidence=self.seen, side="training", severity=severity)


def _lists(column: Column) -> list[list[int]]:
    """[rows] the values of each row."""
    ends = np.cumsum(np.asarray(column.counts))
    flat = np.asarray(column.flat).tolist()
    return [flat[end - count : end] for end, count in zip(ends.tolist(), np.asarray(column.counts).tolist(), strict=True)]


def _flags(view: View, trained: Column) -> list[Bools] | None:
    """[rows] which values of the trainer's row the mask counts; None where the mask is not that row's."""
    mask = view.column("mask")
    if mask is None or not np.array_equal(np.asarray(mask.counts), np.asarray(trained.counts)):
        return None
    ends = np.cumsum(np.asarray(mask.counts))
    return np.split(view.counted("mask"), ends[:-1])


def _counted(used: list[int], given: list[int], on: Bools | None, head: list[int] | None) -> list[int]:
    """The part of the trainer's row that stands for the answer; empty where nothing tells it."""
    if on is not None:
        return [token for token, counts in zip(used, on.tolist(), strict=True) if counts]
    if head and used[: len(head)] == head:
        return used[len(head) : len(head) + len(given)]
    return []


def _holds(whole: Sequence[int], part: Sequence[int]) -> bool:
    """Whether `part` stands in `whole` in one piece."""
    return any(whole[at : at + len(part)] == part for at in range(len(whole) - len(part) + 1))


def _in_order(part: Sequence[int], whole: Sequence[int]) -> bool:
    """Whether all of `part` stands in `whole` in this order, others between them."""
    rest = iter(whole)
    return all(token in rest for token in part)
