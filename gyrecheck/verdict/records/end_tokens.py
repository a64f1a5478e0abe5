"""End tokens that were put behind an answer: counted, with a log-prob of exactly 0, while sampled ones carry their own (GYR304).

A confident policy gives the end of an answer a log-prob that rounds to 0; then it gives small ones beside it. So exact zeros count only where
the same token, sampled elsewhere, was never certain, or where the record itself says that a text stopped it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.fields import Column, Kind
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.rulebook.record_limits import load_record_limits
from gyrecheck.verdict.records.question import Case, Question, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import Bools, Ints, View, per_row

SAMPLED = 3
"""End tokens with a log-prob of their own from which on a 0 stands out."""
RARE = 5
"""Zeros and sampled ones a small one from which on small ones are too rare for the zeros to be rounded."""
KEPT = 4_096
"""Different last tokens followed."""
ENDS = 16
"""Different ones with a log-prob of 0: an end token is one of a few."""


class EndTokens(Question):
    """The last counted token of every answer: which token, and whether its log-prob is 0, small or neither."""

    about = "end tokens"
    needs = (("tokens", "logprob"),)

    def __init__(self) -> None:
        self.zero: dict[int, Ranges] = {}
        self.stopped: dict[int, int] = {}
        """Zeros in records that say that a text stopped them."""
        self.unlike: dict[int, int] = {}
        """Last tokens with a log-prob that is not small."""
        self.small: dict[int, int] = {}
        self.elsewhere = 0
        self.low = 0.0
        self.rows = 0
        self.greedy = False

    def feed(self, view: View) -> None:
        """Read one batch."""
        tokens, logprob = view.column("tokens"), view.column("logprob")
        if tokens is None or logprob is None or tokens.kind is not Kind.INT or logprob.kind is not Kind.FLOAT:
            return
        counts = np.asarray(tokens.counts)
        if not np.array_equal(np.asarray(logprob.counts), counts):
            return
        temperature = view.number("temperature")
        self.greedy |= temperature is not None and bool((temperature == 0).any())
        value, on = np.asarray(logprob.flat), _counted(view, tokens)
        zero = on & (value == 0)
        taken = per_row(on, counts)
        rows = np.flatnonzero(taken >= 2)
        self.rows += len(rows)
        if not len(rows):
            return
        last = _last(on, counts)[rows]
        ending, held = np.asarray(tokens.flat)[last].astype(np.int64), value[last]
        self.elsewhere += int(zero.sum()) - int((held == 0).sum())
        words = view.words("status")
        by_text = view.contract.words.get("stopped_by_text", frozenset())
        told = np.array([word in by_text for word in words], np.bool_)[rows] if words is not None else np.zeros(len(rows), np.bool_)
        certain = load_record_limits().certain
        small, none = (np.abs(held) < certain) & (held != 0), held == 0
        found, which = np.unique(ending, return_inverse=True)
        counts_of = [np.bincount(which[chosen], minlength=len(found)).tolist() for chosen in (~small & ~none, small)]
        for token, unlike, few in zip(found.tolist(), *counts_of, strict=True):
            if token in self.unlike or len(self.unlike) < KEPT:
                self.unlike[token] = self.unlike.get(token, 0) + unlike
                self.small[token] = self.small.get(token, 0) + few
        for token in np.unique(ending[none]).tolist():
            hit = none & (ending == token)
            if token in self.unlike and (token in self.zero or len(self.zero) < ENDS):
                self.zero.setdefault(token, Ranges()).add(view.path, view.records[rows[hit]])
                self.stopped[token] = self.stopped.get(token, 0) + int((hit & told).sum())

    def answer(self, case: Case) -> Iterator[Finding]:
        """Only where no other counted token is exactly 0."""
        if self.elsewhere or self.greedy:
            return
        key = case.roles.key("logprob")
        for token, where in self.zero.items():
            sampled = self.unlike[token] >= SAMPLED and RARE * self.small[token] <= min(where.rows, self.unlike[token])
            said = self.stopped[token] == where.rows
            if where.rows < 2 or not (sampled or said) or where.rows > 0.9 * self.rows:
                continue
            why = (
                f"where it was sampled ({self.unlike[token]} records) it is not near 0"
                if sampled
                else f"each of them says in `{case.roles.key('status')}` that a text stopped it"
            )
            counted = ", and the loss counts it" if case.roles.key("mask") else ""
            text = (
                f"`{key}` is exactly 0 at the last token ({show(token)}) of {where.rows} of {self.rows} records{counted}; {why}: "
                "an end token that was put there, with a fill value"
            )
            yield case.finding("GYR304", text, where=where, role="logprob", severity=Severity.WARNING)


def _counted(view: View, tokens: Column) -> Bools:
    """[tokens] which the mask counts; all without one."""
    mask = view.column("mask")
    if mask is None or mask.kind is Kind.TEXT or not np.array_equal(np.asarray(mask.counts), np.asarray(tokens.counts)):
        return np.ones(len(np.asarray(tokens.flat)), np.bool_)
    return view.counted("mask")


def _last(on: Bools, counts: Ints) -> Ints:
    """[rows] place of the last token of each row if it is counted, else of the last counted one (0 where none is)."""
    place = np.where(on, np.arange(len(on)), -1)
    out = np.zeros(len(counts), np.int64)
    filled = np.flatnonzero(counts > 0)
    if len(filled):
        out[filled] = np.maximum(np.maximum.reduceat(place, (np.cumsum(counts) - counts)[filled]), 0)
    return out
