"""Masks and log-probs of tokens or steps: turned round, without signal, over unsampled tokens; impossible or filled-in log-probs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.fields import Column, Kind
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.question import Case, Question, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import Bools, Floats, Ints, View, lead, rank

SENTINEL = -1000.0
"""Log-probs at or below it are fill values: no float32 softmax gives exp of it."""


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
        self.unsampled = Ranges()
        self.unsampled_seen: list[tuple[int, str]] = []
        self.told = 0

    def feed(self, view: View) -> None:
        """Read one batch."""
        column = view.column("mask")
        if column is None or column.kind in {Kind.TEXT, Kind.OBJECT, Kind.NONE}:
            return
        mask = np.nan_to_num(np.asarray(column.flat).astype(np.float64))
        counts = np.asarray(column.counts)
        filled = counts > 0
        if not filled.any():
            return
        self.rows += int(filled.sum())
        row = np.repeat(np.arange(view.rows), counts)
        strange = (mask < 0) | (mask > 1)
        if strange.any():
            self.odd.add(view.path, view.records[np.unique(row[strange])])
            self.odd_value = float(mask[strange][0])
        on = mask != 0
        total = np.bincount(row[on], minlength=view.rows)
        if rank(column) == 0:
            self._single(view, on)
            return
        self._empty(view, filled & (total == 0))
        self._against_logprobs(view, on, counts, row)
        self._against_prompt(view, on, counts, row)
        self._against_padding(view, on, counts, row)

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
        self.empty.add(view.path, view.records[empty])

    def _against_logprobs(self, view: View, on: Bools, counts: Ints, row: Ints) -> None:
        logprob = view.column("logprob")
        if logprob is None or not np.array_equal(np.asarray(logprob.counts), counts) or logprob.kind not in {Kind.FLOAT, Kind.INT}:
            return
        value = np.asarray(logprob.flat).astype(np.float64)
        zero = (value == 0) | np.isnan(value) | (value <= SENTINEL)
        n = view.rows
        on_zero, on_real = np.bincount(row[on & zero], minlength=n), np.bincount(row[on & ~zero], minlength=n)
        off_zero, off_real = np.bincount(row[~on & zero], minlength=n), np.bincount(row[~on & ~zero], minlength=n)
        mixed = (on_zero + on_real > 0) & (off_zero + off_real > 0) & (counts >= 2)
        self.told += int(mixed.sum())
        turned = mixed & (on_real == 0) & (off_zero == 0)
        self.judged += int((mixed & (on_real + off_real > 0) & (on_zero + off_zero > 0)).sum())
        if turned.any():
            self.inverted.add(view.path, view.records[turned])
            at = int(turned.argmax())
            self.inverted_seen.append((int(view.records[at]), f"log-prob 0 at all {on_zero[at]} positions with mask 1, sampled log-probs at all {off_real[at]} with mask 0"))
        # a run of exact zeros at the start or the end, counted, while every other counted token has a log-prob
        start = np.cumsum(counts) - counts
        candidates = np.flatnonzero((on_zero >= 2) & (on_real >= 1) & ~turned)
        for at in candidates[:20_000].tolist():
            part = zero[start[at] : start[at] + counts[at]]
            used = on[start[at] : start[at] + counts[at]]
            head = int(np.argmin(part)) if not part.all() else len(part)
            tail = int(np.argmin(part[::-1])) if not part.all() else 0
            if head + tail >= 2 and int(part.sum()) == head + tail and (used[:head].sum() + used[len(part) - tail :].sum()) >= 2:
                place = "start" if head >= tail else "end"
                self.unsampled.add(view.path, view.records[at : at + 1])
                if len(self.unsampled_seen) < 5:
                    self.unsampled_seen.append((int(view.records[at]), f"mask 1 on {max(head, tail)} tokens at the {place} with log-prob exactly 0"))

    def _against_prompt(self, view: View, on: Bools, counts: Ints, row: Ints) -> None:
        length = view.number("prompt_length")
        tokens = view.column("tokens")
        prompt_tokens = view.column("prompt_tokens")
        if length is None and prompt_tokens is not None and prompt_tokens.kind is Kind.INT and tokens is not None:
            prompt = lead(prompt_tokens).astype(np.float64)
            length = np.where(lead(tokens) > prompt, prompt, np.nan) if _starts_with(tokens, prompt_tokens) else None
        if length is None:
            return
        whole = np.isfinite(length) & (counts > np.nan_to_num(length))
        if tokens is not None and rank(tokens) >= 1:
            whole &= lead(tokens) == counts
        position = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        in_prompt = (position < np.nan_to_num(length)[row]) & whole[row]
        n = view.rows
        counted = np.bincount(row[in_prompt & on], minlength=n)
        answer_on = np.bincount(row[~in_prompt & on & whole[row]], minlength=n)
        size = np.bincount(row[in_prompt], minlength=n)
        turned = (counted == size) & (size > 0) & (answer_on == 0) & whole
        over = (counted > 0) & ~turned
        if turned.any():
            fresh = turned
            self.inverted.add(view.path, view.records[fresh])
            at = int(turned.argmax())
            self.inverted_seen.append((int(view.records[at]), f"mask 1 on all {size[at]} prompt tokens and 0 on the answer"))
        if over.any():
            self.prompt.add(view.path, view.records[over])
            at = int(over.argmax())
            self.prompt_seen.append((int(view.records[at]), f"mask 1 on {counted[at]} of {size[at]} prompt tokens"))

    def _against_padding(self, view: View, on: Bools, counts: Ints, row: Ints) -> None:
        attention = view.column("attention_mask")
        pad = np.zeros(len(on), np.bool_)
        if attention is not None and np.array_equal(np.asarray(attention.counts), counts) and attention.kind is not Kind.TEXT:
            pad |= np.asarray(attention.flat) == 0
        tokens, fill = view.column("tokens"), view.number("pad_token")
        if fill is not None and tokens is not None and np.array_equal(np.asarray(tokens.counts), counts):
            pad |= _trailing(np.asarray(tokens.flat) == fill[row], counts)
        wrong = pad & on
        if wrong.any():
            rows = np.unique(row[wrong])
            self.padding.add(view.path, view.records[rows])
            number = int(np.bincount(row[wrong], minlength=view.rows)[rows[0]])
            self.padding_seen.append((int(view.records[rows[0]]), f"mask 1 on {number} padding tokens"))

    def answer(self, case: Case) -> Iterator[Finding]:
        """From certain to likely."""
        key = case.roles.key("mask")
        if self.odd:
            yield case.finding("GYR322", f"`{key}` holds {show(self.odd_value)}, expected 0 to 1", where=self.odd, role="mask", severity=Severity.WARNING)
        if self.inverted and self.inverted.rows >= 0.8 * max(self.judged, self.inverted.rows):
            text = f"mask inverted: `{key}` is 1 where nothing was sampled and 0 where the policy acted, at {self.inverted.rows} of {self.rows} records: {self.inverted_seen[0][1]}"
            yield case.finding("GYR332", text, where=self.inverted, role="mask", evidence=self.inverted_seen)
            return
        if self.inverted:
            text = f"mask inverted at {self.inverted.rows} of {self.rows} records, not at the others: {self.inverted_seen[0][1]}"
            yield case.finding("GYR332", text, where=self.inverted, role="mask", evidence=self.inverted_seen)
        if self.empty and self.empty.rows + self.empty_excused == self.rows and not self.empty_excused:
            yield case.finding("GYR333", f"`{key}` is 0 everywhere in all {self.rows} records: nothing is counted in the loss", where=self.empty, role="mask")
        elif self.empty:
            severity = Severity.WARNING if self.empty.rows <= 0.5 * self.rows else None
            yield case.finding("GYR333", f"`{key}` is 0 everywhere in {self.empty.rows} of {self.rows} records: they count for nothing in the loss", where=self.empty, role="mask", severity=severity)
        if self.prompt:
            yield case.finding("GYR334", f"`{key}` counts prompt tokens at {self.prompt.rows} of {self.rows} records: {self.prompt_seen[0][1]}", where=self.prompt, role="mask", evidence=self.prompt_seen)
        if self.padding:
            yield case.finding("GYR334", f"`{key}` counts padding at {self.padding.rows} of {self.rows} records: {self.padding_seen[0][1]}", where=self.padding, role="mask", evidence=self.padding_seen)
        if self.unsampled and not self.prompt and not self.padding:
            yield case.finding("GYR334", f"`{key}` counts tokens that were not sampled at {self.unsampled.rows} of {self.rows} records: {self.unsampled_seen[0][1]}", where=self.unsampled, role="mask", evidence=self.unsampled_seen, severity=Severity.WARNING)


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
        self.zeros = 0
        self.values = 0
        self.low, self.high = np.inf, -np.inf
        self.discrete = False
        self.rows = 0
        self.greedy = False
        self.single = False
        self.fraction = 0

    def feed(self, view: View) -> None:
        """Read one batch."""
        column = view.column("logprob")
        if column is None or column.kind not in {Kind.FLOAT, Kind.INT}:
            return
        flat = np.asarray(column.flat).astype(np.float64)
        counts = np.asarray(column.counts)
        finite = np.isfinite(flat)
        if not finite.any():
            return
        self.rows += int((counts > 0).sum())
        self.discrete |= _discrete(view)
        temperature = view.number("temperature")
        self.greedy |= temperature is not None and bool((temperature == 0).any())
        row = np.repeat(np.arange(view.rows), counts)
        counted = _counted(view, counts)
        use = finite & counted
        if not use.any():
            return
        self.values += int(use.sum())
        self.low, self.high = min(self.low, float(flat[use].min())), max(self.high, float(flat[use].max()))
        above = use & (flat > 1e-4)  # noqa: PLR2004
        if above.any():
            self.positive.add(view.path, view.records[np.unique(row[above])])
            at = int(above.argmax())
            self.seen.append((int(view.records[row[at]]), f"log-prob {show(flat[at])} is a probability of {show(np.exp(min(flat[at], 50)))}"))
        filler = use & (flat <= SENTINEL)
        if filler.any():
            self.sentinel.add(view.path, view.records[np.unique(row[filler])])
            self.sentinel_value = float(flat[filler][0])
        zero = use & (flat == 0)
        self.zeros += int(zero.sum())
        per_row = np.bincount(row[use], minlength=view.rows)
        zero_row = np.bincount(row[zero], minlength=view.rows)
        self.single |= rank(column) == 0
        whole = (per_row > 0) & (zero_row == per_row)
        self.zero_rows.add(view.path, view.records[whole])

    def answer(self, case: Case) -> Iterator[Finding]:
        """Impossible ones for discrete actions; zeros that look like a default."""
        key = case.roles.key("logprob")
        if self.positive and self.discrete:
            share = self.positive.rows / max(self.rows, 1)
            if self.low >= 0 and self.high <= 1 and share > 0.9:  # noqa: PLR2004
                text = f"`{key}` holds probabilities (0 to 1), not log-probabilities: every value is at or above 0 at {self.positive.rows} of {self.rows} records"
            elif self.low >= 0 and share > 0.9:  # noqa: PLR2004
                text = f"`{key}` is above 0 throughout ({show(self.low)} to {show(self.high)}) for discrete actions: a negated log-prob, or no log-prob at all"
            else:
                text = f"`{key}` is above 0 for a discrete action at {self.positive.rows} of {self.rows} records: {self.seen[0][1]}"
            yield case.finding("GYR335", text, where=self.positive, role="logprob", evidence=self.seen)
        if self.sentinel:
            yield case.finding("GYR336", f"`{key}` holds the fill value {show(self.sentinel_value)} at counted positions of {self.sentinel.rows} records", where=self.sentinel, role="logprob", severity=Severity.WARNING)
        if self.greedy or not self.zeros or self.values < 4:  # noqa: PLR2004
            return
        if self.zeros == self.values:
            text = f"`{key}` is exactly 0 at all {self.values} counted values of {self.rows} records, a probability of 1 for every action: filled with zeros, not recorded"
            yield case.finding("GYR304", text, where=self.zero_rows, role="logprob", severity=Severity.WARNING)
        elif self.zero_rows and self.zero_rows.rows < 0.9 * self.rows and self._unlikely():
            text = f"`{key}` is exactly 0 throughout {self.zero_rows.rows} of {self.rows} records while the others vary ({show(self.low)} to {show(self.high)}): a default in place of a measurement"
            yield case.finding("GYR304", text, where=self.zero_rows, role="logprob", severity=Severity.WARNING)

    def _unlikely(self) -> bool:
        """Whether exact zeros are rare outside the records that hold nothing else (a confident model rounds to 0 here and there)."""
        if self.single:
            return self.zeros >= 2 and self.zeros <= 0.6 * self.values and self.high <= 0
        return self.values > 0 and self.zero_rows.rows > 0


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
    on = np.nan_to_num(np.asarray(mask.flat).astype(np.float64)) != 0
    return on if on.any() else np.ones(len(on), np.bool_)


def _trailing(equal: Bools, counts: Ints) -> Bools:
    """[values] the run of True at the end of each row, one of them left out (an end-of-text token may be the padding token)."""
    out = np.zeros(len(equal), np.bool_)
    ends = np.cumsum(counts)
    for end, count in zip(ends.tolist(), counts.tolist(), strict=True):
        part = equal[end - count : end]
        run = count if part.all() else int(np.argmin(part[::-1]))
        if run >= 2:  # noqa: PLR2004
            out[end - run + 1 : end] = True
    return out


def _starts_with(tokens: Column, prompt: Column) -> bool:
    """Whether the tokens of the first record begin with its prompt tokens."""
    a, b = np.asarray(tokens.counts), np.asarray(prompt.counts)
    if not len(a) or b[0] == 0 or a[0] <= b[0]:
        return False
    head: Floats = np.asarray(tokens.flat)[: int(b[0])]
    return bool(np.array_equal(head, np.asarray(prompt.flat)[: int(b[0])]))
