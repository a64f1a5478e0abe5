"""How an answer ended: the word for it, the flag for it and its last token must say the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.fields import Kind
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.question import Case, Question
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import Bools, Floats, Ints, View, rank

LEAST = 3
"""Answers whose end token is not counted."""


class Endings(Question):
    """A stop reason that contradicts the truncated flag, or the last token."""

    about = "how answers end"
    needs = (("status", "truncated"), ("tokens", "eos_token"))

    def __init__(self) -> None:
        self.unflagged = Ranges()
        self.flagged = Ranges()
        self.bare = Ranges()
        self.closed = 0
        self.ended = 0
        self.uncounted = Ranges()
        self.closing = 0
        self.seen: dict[str, list[tuple[int, str]]] = {"unflagged": [], "flagged": [], "bare": []}
        self.rows = 0

    def feed(self, view: View) -> None:
        """Read one batch."""
        words = view.words("status")
        cut = finished = np.zeros(view.rows, np.bool_)
        if words is not None:
            cut = np.array([word in view.contract.words.get("truncated", frozenset()) for word in words], np.bool_)
            finished = np.array([word in view.contract.words.get("finished", frozenset()) for word in words], np.bool_)
        self.rows += view.rows
        truncated = view.flag("truncated")
        if truncated is not None and words is not None:
            for name, rows in (("unflagged", cut & ~truncated & view.present("truncated")), ("flagged", finished & truncated)):
                where: Ranges = getattr(self, name)
                where.add(view.path, view.records[rows])
                for at in np.flatnonzero(rows)[: 5 - len(self.seen[name])].tolist():
                    flag = view.roles.key("truncated")
                    text = f"{view.roles.key('status')} {words[at]!r}, {flag} {str(bool(truncated[at])).lower()}"
                    self.seen[name].append((int(view.records[at]), text))
        self._last_token(view, cut if truncated is None else cut | truncated)

    def _last_token(self, view: View, cut: Bools) -> None:
        tokens, end = view.column("tokens"), view.number("eos_token")
        if tokens is None or end is None or tokens.kind is not Kind.INT or rank(tokens) == 0:
            return
        failed = view.failed()
        flat, counts = np.asarray(tokens.flat), np.asarray(tokens.counts)
        there = (counts > 0) & np.isfinite(end) & ~cut
        if failed is not None:
            there &= ~failed
        row = np.repeat(np.arange(view.rows), counts)
        holds = np.bincount(row[flat == end[row]], minlength=view.rows) > 0  # padded answers hold it further in
        self.ended += int(there.sum())
        self._counted_end(view, there & (counts >= 2), end, counts)
        self.closed += int((there & holds).sum())
        self.bare.add(view.path, view.records[there & ~holds])
        for at in np.flatnonzero(there & ~holds)[: 5 - len(self.seen["bare"])].tolist():
            last = int(flat[int(np.cumsum(counts)[at]) - 1])
            self.seen["bare"].append((int(view.records[at]), f"last token {last}, `{view.roles.key('eos_token')}` {int(end[at])}"))

    def _counted_end(self, view: View, there: Bools, end: Floats, counts: Ints) -> None:
        """Answers whose last token is their end token, and those of them whose mask counts every token but that one."""
        mask, tokens = view.column("mask"), view.column("tokens")
        if mask is None or tokens is None or mask.kind is Kind.TEXT or not np.array_equal(np.asarray(mask.counts), counts):
            return
        on, last = view.counted("mask"), np.maximum(np.cumsum(counts) - 1, 0)
        closing = there & (np.asarray(tokens.flat)[last] == end) & on[last - 1] & (np.asarray(tokens.flat)[last - 1] != end)
        logprob = view.column("logprob")
        if logprob is not None and np.array_equal(np.asarray(logprob.counts), counts) and logprob.kind in {Kind.FLOAT, Kind.INT}:
            sampled = np.asarray(logprob.flat).astype(np.float64)
            closing &= np.isfinite(sampled[last]) & (sampled[last] != 0)  # an end token that was appended, not sampled, is no action
        self.closing += int(closing.sum())
        self.uncounted.add(view.path, view.records[closing & ~on[last]])

    def answer(self, case: Case) -> Iterator[Finding]:
        """Contradictions, and answers that lack the end token that most have."""
        if self.unflagged:
            text = (
                f"`{case.roles.key('truncated')}` is false at {self.unflagged.rows} of {self.rows} records that were cut off: "
                f"{self.seen['unflagged'][0][1]}; a cut-off answer is learnt from as a complete one"
            )
            yield case.finding(
                "GYR330", text, where=self.unflagged, role="truncated", evidence=self.seen["unflagged"], severity=Severity.WARNING
            )
        if self.flagged:
            text = (
                f"`{case.roles.key('truncated')}` is true at {self.flagged.rows} of {self.rows} records that came to their own end: "
                f"{self.seen['flagged'][0][1]}"
            )
            yield case.finding(
                "GYR330", text, where=self.flagged, role="truncated", evidence=self.seen["flagged"], severity=Severity.WARNING
            )
        if self.uncounted.rows >= LEAST and self.uncounted.rows * 2 > self.closing:
            text = (
                f"`{case.roles.key('mask')}` leaves out the end token of {self.uncounted.rows} of {self.closing} answers whose other tokens it counts "
                f"to the last (`{case.roles.key('eos_token')}`): the policy never learns to stop there"
            )
            yield case.finding("GYR348", text, where=self.uncounted, role="mask", severity=Severity.WARNING)
        if self.bare and self.closed >= 2 and self.closed > self.bare.rows:
            text = (
                f"no end token in {self.bare.rows} of {self.ended} answers that were not cut off, the others hold it: {self.seen['bare'][0][1]}; "
                "the policy never learns to stop there"
            )
            yield case.finding("GYR348", text, where=self.bare, role="tokens", evidence=self.seen["bare"])
