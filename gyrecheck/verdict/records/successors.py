"""Whether the next observation of a step is the observation of the step after it, and at an end belongs to the ended episode.

Observations are held equal when they differ by less than the file's rounding: 1e-6 absolute plus 1e-4 of the usual size.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.finding import Finding, Severity
from gyrecheck.rulebook.field_names import leaf, normal
from gyrecheck.rulebook.record_limits import load_record_limits
from gyrecheck.verdict.records.later_starts import LaterStarts, only_resets
from gyrecheck.verdict.records.question import Case, Question, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.steps import Steps, steps_of
from gyrecheck.verdict.records.view import Bools, Floats, View

LEAST = 5
"""Pairs from which on a second relation is told."""
SHUFFLED = 64
"""Steps that chain nowhere from which on the records are held to be in no order."""
NEARLY_ALL = 0.95
MOSTLY = 0.8
MOST_STEPS = 10


class Successor(Question):
    """Chains next_obs to the following obs, inside episodes and over their ends."""

    about = "successor observation"
    needs = (("obs", "next_obs"),)

    def __init__(self) -> None:
        self.tail: Steps | None = None
        self.pairs = 0
        self.broken = Ranges()
        self.broken_seen: list[tuple[int, str]] = []
        self.leak = Ranges()
        self.leak_truncated = 0
        self.leak_seen: list[tuple[int, str]] = []
        self.ends = 0
        self.later = LaterStarts()
        self.labelled = False
        self.starts: set[tuple[float, ...]] = set()
        """First observations that were found as successors, up to 64: one alone may be chance where every episode starts alike."""
        self.same = Ranges()
        self.rows = 0
        self.two_ahead = 0
        self.two_pairs = 0
        self.wrapped = Ranges()
        self.wraps = 0
        self.ahead: dict[int, list[int]] = {}
        """Of each number of steps the rows that chain so far on, and all that could."""
        self.distinct: Floats | None = None
        self.moves = False

    def feed(self, view: View) -> None:
        """Read one batch."""
        steps = steps_of(view)
        if steps is None or steps.obs is None or steps.next_obs is None or steps.obs.shape[1] != steps.next_obs.shape[1] or not len(steps):
            return
        obs, after = steps.obs, steps.next_obs
        if self.distinct is None:
            self.distinct = obs[0].copy()
        self.moves = self.moves or bool((obs[:64] != self.distinct).any()) or bool((obs != self.distinct).any())
        self.rows += len(steps)
        self.labelled |= steps.labelled or view.batch.promised
        equal = equal_rows(obs, after)
        self.same.add(view.path, np.sort(steps.record[equal]))
        if len(steps) < 2:
            return
        chained = equal_rows(after[:-1], obs[1:])
        inside = steps.episode[1:] == steps.episode[:-1]
        ends = steps.ends
        if ends is not None:
            inside &= ~ends[:-1]
        if steps.step is not None:
            inside &= steps.step[1:] == steps.step[:-1] + 1
        known = chained | ~(np.isnan(after[:-1, 0]) | np.isnan(obs[1:, 0])) if obs.dtype.kind == "f" else np.ones(len(chained), np.bool_)
        self.pairs += int((inside & known).sum())
        wrong = inside & known & ~chained
        if wrong.any():
            self.broken.add(view.path, np.sort(steps.record[:-1][wrong]))
            at = int(wrong.argmax())
            self.broken_seen.append((int(steps.record[at]), f"next_obs {_short(after[at])}, following obs {_short(obs[at + 1])}"))
        if len(steps) > 2:
            both: Bools = inside[1:] & inside[:-1] & known[:-1]
            self.two_pairs += int(both.sum())
            if wrong.any():
                self.two_ahead += int((both & equal_rows(after[:-2], obs[2:])).sum())
        self._several(view, steps)
        self._wrapped(view, steps)
        self._over_ends(view, steps)

    def _wrapped(self, view: View, steps: Steps) -> None:
        """Last steps whose successor is the first observation of their own episode: rolled round in place of shifted."""
        if steps.obs is None or steps.next_obs is None or steps.obs.dtype.kind != "f":
            return
        starts = np.flatnonzero(np.diff(steps.episode, prepend=-1))
        lasts = np.append(starts[1:], len(steps)) - 1
        whole = (lasts - starts >= 2) & (steps.obs[starts] != np.round(steps.obs[starts])).any(axis=1)
        if not steps.per_record:
            whole &= steps.ends[lasts] if steps.ends is not None else False
        starts, lasts = starts[whole], lasts[whole]
        self.wraps += len(lasts)
        self.wrapped.add(view.path, np.sort(steps.record[lasts[equal_rows(steps.next_obs[lasts], steps.obs[starts])]]))

    def _several(self, view: View, steps: Steps) -> None:
        """Rows that say that they lead over several steps: how many of them chain k rows on in their episode, for each k."""
        said = view.contract.words.get("several_steps", frozenset())
        if steps.obs is None or steps.next_obs is None or not any(normal(leaf(key)) in said for key in view.batch.columns):
            return
        for k in range(2, min(MOST_STEPS, len(steps) - 1) + 1):
            same = steps.episode[k:] == steps.episode[:-k]
            seen = self.ahead.setdefault(k, [0, 0])
            seen[0] += int((same & equal_rows(steps.next_obs[:-k], steps.obs[k:])).sum())
            seen[1] += int(same.sum())

    def _over_ends(self, view: View, steps: Steps) -> None:
        """The last step of an episode against the first observation of the next one, or of a later one where episodes lie interleaved."""
        if steps.obs is None or steps.next_obs is None:
            return
        if not (np.diff(steps.order) == 1).all():
            self.later.read(view.path, steps)
            return
        crossing = steps.episode[1:] != steps.episode[:-1]
        if (ends := steps.ends) is not None:
            crossing &= ends[:-1]
        before = np.flatnonzero(crossing)
        behind = before + 1
        self.ends += len(before)
        if not len(before):
            return
        last, following = steps.next_obs[before], steps.obs[behind]
        hit = equal_rows(last, following) & ~equal_rows(last, steps.obs[before]) & ~only_resets(steps)[behind]
        if steps.final_obs is not None:
            hit &= ~steps.final_obs[before]
        if hit.any():
            for row in following[hit][:64].tolist():
                if len(self.starts) < 64:
                    self.starts.add(tuple(row))
            self.leak.add(view.path, steps.record[before][hit])
            if steps.truncated is not None:
                self.leak_truncated += int((hit & steps.truncated[before]).sum())
            at = int(hit.argmax())
            number, start = int(steps.record[before[at]]), int(steps.record[behind[at]])
            self.leak_seen.append((number, f"next_obs {_short(last[at])} is obs of record {start}, the start of another episode"))

    def unjudged(self, case: Case) -> str:
        """Rows that chain nowhere, in a file without episode ids or step numbers."""
        del case
        return "records are in no order: none follows the one before it, and no id or step number orders them" if self._shuffled() else ""

    def _shuffled(self) -> bool:
        known = self.same.rows > 0.1 * self.pairs or (self.two_pairs >= LEAST and self.two_ahead >= NEARLY_ALL * self.two_pairs)
        return not self.labelled and self.pairs >= SHUFFLED and self.broken.rows > NEARLY_ALL * self.pairs and not known

    def _interleaved(self) -> None:
        """Take over what was found where episodes lie interleaved: at half of the ends, or nearly all where every episode starts alike."""
        later = self.later
        share = later.hits.rows / max(later.followed, 1)
        if later.hits.rows < 2 or share < (0.5 if len(later.starts) > 1 else 0.8):
            return
        self.leak.add_all(later.hits)
        self.leak_truncated += later.truncated
        self.leak_seen += later.seen
        self.ends += later.followed
        self.starts.update((float(mark),) for mark in later.starts)

    def answer(self, case: Case) -> Iterator[Finding]:
        """Aliased, leaking over the end, or not chained."""
        obs, after = case.roles.key("obs"), case.roles.key("next_obs")
        if self.same.rows >= load_record_limits().aliased * self.rows and self.rows >= 4 and self.moves:
            text = (
                f"`{after}` equals `{obs}` of the same step at {self.same.rows} of {self.rows} steps although observations "
                "change: both point at one live buffer, or the successor was never read"
            )
            yield case.finding("GYR327", text, where=self.same, role="next_obs")
            return
        self._interleaved()
        share = self.leak.rows / max(self.ends, 1)
        if self.leak and (len(self.starts) > 1 or share >= 0.8):
            cut = (
                f", {self.leak_truncated} of them truncated, where the value of the true successor is bootstrapped"
                if self.leak_truncated
                else ""
            )
            text = (
                f"successor observation belongs to the next episode: at {self.leak.rows} of {self.ends} episode ends "
                f"`{after}` is the first `{obs}` of the episode that follows (the reset observation){cut}"
            )
            sure = len(self.starts) > 1 and (share >= 0.5 or self.leak_truncated > 0)
            severity = None if sure else Severity.WARNING
            yield case.finding("GYR325", text, where=self.leak, role="next_obs", evidence=self.leak_seen, severity=severity)
        if self.wrapped.rows >= 2 and self.wrapped.rows >= MOSTLY * self.wraps:
            text = (
                f"`{after}` of the last step is the first `{obs}` of the same episode at {self.wrapped.rows} of {self.wraps} ends: rolled round in "
                "place of shifted, so the end leads back to the start"
            )
            yield case.finding("GYR326", text, where=self.wrapped, role="next_obs")
        several = any(pairs >= LEAST and hits >= MOSTLY * pairs for hits, pairs in self.ahead.values())
        if not self.broken or self._shuffled() or several:
            return
        share = self.broken.rows / max(self.pairs, 1)
        if self.two_pairs >= LEAST and self.two_ahead >= NEARLY_ALL * self.two_pairs and share > 0.9:
            text = (
                f"`{after}` is the observation two steps later at {self.two_ahead} of {self.two_pairs} steps: shifted by one "
                "row, or a two-step transition"
            )
        elif self.same.rows and share > 0.1:
            text = (
                f"`{after}` is not the `{obs}` of the following step at {self.broken.rows} of {self.pairs} steps "
                f"({self.broken_seen[0][1]}); at {self.same.rows} it equals `{obs}` of its own step"
            )
        else:
            text = (
                f"`{after}` is not the `{obs}` of the following step at {self.broken.rows} of {self.pairs} steps inside "
                f"episodes: {self.broken_seen[0][1]}"
            )
        yield case.finding("GYR326", text, where=self.broken, role="next_obs", evidence=self.broken_seen)


def equal_rows(a: Floats, b: Floats) -> Bools:
    """[N] rows that are equal up to rounding: exact ones first, the tolerance only for rows whose first number is near."""
    same = np.asarray(a[:, 0] == b[:, 0])
    if same.all():
        same = _same(a, b)
        rest = np.flatnonzero(~same)
    else:
        low = np.minimum(np.abs(a[:, 0]), 1.0) if a.dtype.kind == "f" else 1.0
        rest = np.flatnonzero(np.abs(a[:, 0] - b[:, 0]) <= 1e-6 + 2e-4 * low) if a.dtype.kind == "f" else np.flatnonzero(same)
        same = np.zeros(len(a), np.bool_)
        if len(rest) > len(a) // 2:
            same = _same(a, b)
            rest = rest[~same[rest]]
    if len(rest):
        one, two = a[rest].astype(np.float64), b[rest].astype(np.float64)
        scale = np.minimum(np.maximum(np.abs(one), np.abs(two)), 1.0)
        same[rest] = (np.abs(one - two) <= 1e-6 + 1e-4 * scale).all(axis=1)
    return same


def _same(a: Floats, b: Floats) -> Bools:
    """[N] rows that are equal to the last bit; quick where most are."""
    unlike = a != b
    places = np.flatnonzero(unlike)
    if len(places) > len(a):
        return np.asarray(~unlike.any(axis=1))
    same = np.ones(len(a), np.bool_)
    same[places // a.shape[1]] = False
    return same


def _short(row: Floats) -> str:
    return "[" + ", ".join(show(x, 3) for x in row[:3]) + (", …" if len(row) > 3 else "") + "]"
