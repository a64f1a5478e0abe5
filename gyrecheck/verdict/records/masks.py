"""What a mask counts, against log-probs, prompt length, attention and padding."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.fields import Column, Kind
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.rulebook.record_limits import load_record_limits
from gyrecheck.verdict.records.fillers import Fillers
from gyrecheck.verdict.records.question import Case, Question, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.told_spans import ToldSpans
from gyrecheck.verdict.records.unsampled import UnsampledRuns
from gyrecheck.verdict.records.view import Bools, Floats, Ints, View, lead, per_row, rank


class Masks(Question):
    """What the mask counts, against log-probs, prompt length, attention and padding."""

    about = "masks"
    needs = (("mask",),)

    def __init__(self) -> None:
        self.rows = 0
        self.odd = Ranges()
        self.odd_value = 0.0
        self.empty = Ranges()
        self.empty_excused = 0
        self.judged = 0
        self.inverted = Ranges()
        self.inverted_seen: list[tuple[int, str]] = []
        self.prompt = Ranges()
        self.prompt_seen: list[tuple[int, str]] = []
        self.padding = Ranges()
        self.padding_seen: list[tuple[int, str]] = []
        self.fillers = Fillers()
        self.runs = UnsampledRuns()
        self.spans = ToldSpans()
        self.told = 0

    def feed(self, view: View) -> None:
        """Read one batch."""
        column = view.column("mask")
        if column is None or column.kind in {Kind.TEXT, Kind.OBJECT, Kind.NONE}:
            return
        mask = np.asarray(column.flat)
        counts = np.asarray(column.counts)
        filled = counts > 0
        if not filled.any():
            return
        self.rows += int(filled.sum())
        strange = (mask < 0) | (mask > 1) if column.kind is not Kind.BOOL else np.zeros(0, np.bool_)
        if strange.any():
            self.odd.add(view.path, view.records[per_row(strange, counts) > 0])
            self.odd_value = float(mask[strange][0])
        on = view.counted("mask")
        total = per_row(on, counts)
        if rank(column) == 0:
            self._single(view, on)
            return
        self._empty(view, filled & (total == 0))
        turned = self._against_logprobs(view, on, counts) | self._against_prompt(view, on, counts)
        if turned.any():
            self.inverted.add(view.path, view.records[turned])
        self._against_padding(view, on, counts)
        self.spans.read(view, on, counts)

    def _single(self, view: View, on: Bools) -> None:
        if not on.any():
            self.empty.add(view.path, view.records)

    def _empty(self, view: View, empty: Bools) -> None:
        words = view.words("status")
        if words is not None and empty.any():
            cut = view.contract.words.get("truncated", frozenset()) | view.contract.words.get("failed", frozenset())
            excused = empty & np.array([word in cut for word in words])
            self.empty_excused += int(excused.sum())
            empty &= ~excused
        flag = view.flag("truncated")
        if flag is not None:
            empty &= ~flag
        self.empty.add(view.path, view.records[self.fillers.read(view, empty)])

    def _against_logprobs(self, view: View, on: Bools, counts: Ints) -> Bools:
        logprob = view.column("logprob")
        if logprob is None or not np.array_equal(np.asarray(logprob.counts), counts) or logprob.kind not in {Kind.FLOAT, Kind.INT}:
            return np.zeros(view.rows, np.bool_)
        value = np.asarray(logprob.flat).astype(np.float64, copy=False)
        zero = (value == 0) | ~(value > load_record_limits().fill_logprob)
        all_on, all_zero = per_row(on, counts), per_row(zero, counts)
        on_zero = per_row(on & zero, counts) if all_zero.any() else all_zero
        on_real, off_zero = all_on - on_zero, all_zero - on_zero
        off_real = counts - all_on - off_zero
        mixed = (on_zero + on_real > 0) & (off_zero + off_real > 0) & (counts >= 2)
        self.told += int(mixed.sum())
        turned = mixed & (on_real == 0) & (off_zero == 0)
        self.judged += int((mixed & (on_real + off_real > 0) & (on_zero + off_zero > 0)).sum())
        if turned.any():
            at = int(turned.argmax())
            self.inverted_seen.append(
                (
                    int(view.records[at]),
                    f"log-prob 0 at all {on_zero[at]} positions with mask 1, sampled log-probs at all {off_real[at]} with mask 0",
                )
            )
        self.runs.read(view, zero, on, value, counts, np.asarray((on_zero >= 1) & (on_real >= 1) & ~turned))
        return np.asarray(turned)

    def _against_prompt(self, view: View, on: Bools, counts: Ints) -> Bools:
        length = view.number("prompt_length")
        tokens = view.column("tokens")
        prompt_tokens = view.column("prompt_tokens")
        if length is None and prompt_tokens is not None and prompt_tokens.kind is Kind.INT and tokens is not None:
            prompt = lead(prompt_tokens).astype(np.float64)
            length = np.where(lead(tokens) > prompt, prompt, np.nan) if _starts_with(tokens, prompt_tokens) else None
        if length is None:
            return np.zeros(view.rows, np.bool_)
        whole = np.isfinite(length) & (counts > np.nan_to_num(length))
        if tokens is not None and rank(tokens) >= 1:
            whole &= lead(tokens) == counts
        row = np.repeat(np.arange(view.rows), counts)
        position = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        in_prompt = (position < np.nan_to_num(length)[row]) & whole[row]
        n = view.rows
        counted = np.bincount(row[in_prompt & on], minlength=n)
        answer_on = np.bincount(row[~in_prompt & on & whole[row]], minlength=n)
        size = np.bincount(row[in_prompt], minlength=n)
        turned = (counted == size) & (size > 0) & (answer_on == 0) & whole
        over = (counted > 0) & ~turned
        if turned.any():
            at = int(turned.argmax())
            self.inverted_seen.append((int(view.records[at]), f"mask 1 on all {size[at]} prompt tokens and 0 on the answer"))
        if over.any():
            self.prompt.add(view.path, view.records[over])
            at = int(over.argmax())
            self.prompt_seen.append((int(view.records[at]), f"mask 1 on {counted[at]} of {size[at]} prompt tokens"))
        return np.asarray(turned)

    def _against_padding(self, view: View, on: Bools, counts: Ints) -> None:
        attention = view.column("attention_mask")
        pad = np.zeros(len(on), np.bool_)
        if attention is not None and np.array_equal(np.asarray(attention.counts), counts) and attention.kind is not Kind.TEXT:
            pad |= np.asarray(attention.flat) == 0
        tokens, fill = view.column("tokens"), view.number("pad_token")
        if fill is not None and tokens is not None and np.array_equal(np.asarray(tokens.counts), counts):
            pad |= _trailing(np.asarray(tokens.flat) == np.repeat(fill, counts), counts)
        wrong = pad & on
        if wrong.any():
            number_wrong = per_row(wrong, counts)
            rows = np.flatnonzero(number_wrong)
            self.padding.add(view.path, view.records[rows])
            number = int(number_wrong[rows[0]])
            self.padding_seen.append((int(view.records[rows[0]]), f"mask 1 on {number} padding tokens"))

    def answer(self, case: Case) -> Iterator[Finding]:
        """From certain to likely."""
        key = case.roles.key("mask")
        yield from self.fillers.answer(case, self.rows)
        for path, records in self.fillers.alone():
            self.empty.add(path, records)
        if self.odd:
            yield case.finding(
                "GYR322", f"`{key}` holds {show(self.odd_value)}, expected 0 to 1", where=self.odd, role="mask", severity=Severity.WARNING
            )
        if self.inverted and self.inverted.rows >= 0.8 * max(self.judged, self.inverted.rows):
            text = (
                f"mask inverted: `{key}` is 1 where nothing was sampled and 0 where the policy acted, at "
                f"{self.inverted.rows} of {self.rows} records: {self.inverted_seen[0][1]}"
            )
            yield case.finding("GYR332", text, where=self.inverted, role="mask", evidence=self.inverted_seen)
            return
        if self.inverted:
            text = f"mask inverted at {self.inverted.rows} of {self.rows} records, not at the others: {self.inverted_seen[0][1]}"
            yield case.finding("GYR332", text, where=self.inverted, role="mask", evidence=self.inverted_seen)
        if self.empty and self.empty.rows + self.empty_excused == self.rows and not self.empty_excused:
            yield case.finding(
                "GYR333",
                f"`{key}` is 0 everywhere in all {self.rows} records: nothing is counted in the loss",
                where=self.empty,
                role="mask",
            )
        elif self.empty:
            severity = Severity.WARNING if self.empty.rows <= 0.5 * self.rows else None
            yield case.finding(
                "GYR333",
                f"`{key}` is 0 everywhere in {self.empty.rows} of {self.rows} records: they count for nothing in the loss",
                where=self.empty,
                role="mask",
                severity=severity,
            )
        if self.prompt:
            yield case.finding(
                "GYR334",
                f"`{key}` counts prompt tokens at {self.prompt.rows} of {self.rows} records: {self.prompt_seen[0][1]}",
                where=self.prompt,
                role="mask",
                evidence=self.prompt_seen,
            )
        if self.padding:
            yield case.finding(
                "GYR334",
                f"`{key}` counts padding at {self.padding.rows} of {self.rows} records: {self.padding_seen[0][1]}",
                where=self.padding,
                role="mask",
                evidence=self.padding_seen,
            )
        yield from self.spans.answer(case)
        if not self.prompt and not self.padding and not self.spans.found:
            yield from self.runs.answer(case, self.rows)


def _trailing(equal: Bools, counts: Ints) -> Bools:
    """[values] the run of True at the end of each row, one of them left out (an end-of-text token may be the padding token)."""
    out = np.zeros(len(equal), np.bool_)
    ends = np.cumsum(counts)
    for end, count in zip(ends.tolist(), counts.tolist(), strict=True):
        part = equal[end - count : end]
        run = count if part.all() else int(np.argmin(part[::-1]))
        if run >= 2:
            out[end - run + 1 : end] = True
    return out


def _starts_with(tokens: Column, prompt: Column) -> bool:
    """Whether the tokens of the first record begin with its prompt tokens."""
    a, b = np.asarray(tokens.counts), np.asarray(prompt.counts)
    if not len(a) or b[0] == 0 or a[0] <= b[0]:
        return False
    head: Floats = np.asarray(tokens.flat)[: int(b[0])]
    return bool(np.array_equal(head, np.asarray(prompt.flat)[: int(b[0])]))
