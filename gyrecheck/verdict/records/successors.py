"""Whether the next observation of a step is the observation of the step after it, and at an end belongs to the ended episode.

Observations are held equal when they differ by less than the file's rounding: 1e-6 absolute plus 1e-4 of the usual size.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.finding import Finding, Severity
from gyrecheck.rulebook.record_limits import load_record_limits
from gyrecheck.verdict.records.question import Case, Question, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.steps import Steps, steps_of
from gyrecheck.verdict.records.view import Bools, Floats, View


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
        self.starts: set[tuple[float, ...]] = set()
        """First observations that were found as successors, up to 64: one alone may be chance where every episode starts alike."""
        self.same = Ranges()
        self.rows = 0
        self.two_ahead = 0
        self.two_pairs = 0
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
        equal = _equal(obs, after)
        self.same.add(view.path, np.sort(steps.record[equal]))
        if len(steps) < 2:
            return
        chained = _equal(after[:-1], obs[1:])
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
                self.two_ahead += int((both & _equal(after[:-2], obs[2:])).sum())
        self._over_ends(view, steps)

    def _over_ends(self, view: View, steps: Steps) -> None:
        """The last step of an episode against the first observation of the next one in file order."""
        if steps.obs is None or steps.next_obs is None:
            return
        sorted_already = bool((np.diff(steps.order) == 1).all())
        file_order = np.arange(len(steps)) if sorted_already else np.argsort(steps.order, kind="stable")
        episode = steps.episode[file_order]
        crossing = episode[1:] != episode[:-1]
        ends = steps.ends
        if ends is not None:
            crossing &= ends[file_order][:-1]
        before = file_order[:-1][crossing]
        behind = file_order[1:][crossing]
        self.ends += len(before)
        if not len(before):
            return
        last, following = steps.next_obs[before], steps.obs[behind]
        hit = _equal(last, following) & ~_equal(last, steps.obs[before])
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
        if not self.broken:
            return
        share = self.broken.rows / max(self.pairs, 1)
        if self.two_pairs >= 5 and self.two_ahead >= 0.95 * self.two_pairs and share > 0.9:
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


class StuckObservation(Question):
    """Observations that do not change within a trajectory: a reference to one live buffer, stored again and again."""

    about = "observations that stand still"
    needs = (("obs", "episode_id"), ("obs", "reward"), ("obs", "terminated"), ("obs", "done"))

    def __init__(self) -> None:
        self.stuck: dict[int, list[float]] = {}
        self.first: dict[int, int] = {}
        """Of each episode the hash of its first observation: an array of its own for each would pin the memory between them."""
        self.length: dict[int, int] = {}
        self.still: dict[int, bool] = {}
        self.where: dict[int, Ranges] = {}
        self.fraction = False

    def feed(self, view: View) -> None:
        """Read one batch."""
        steps = steps_of(view)
        if steps is None or steps.obs is None or not len(steps) or len(self.first) > 100_000:
            return
        self.fraction = self.fraction or bool((steps.obs[:64] != np.round(steps.obs[:64])).any())
        starts = np.flatnonzero(np.diff(steps.episode, prepend=-1))
        ends = np.concatenate((starts[1:], [len(steps)]))
        same = np.concatenate(([True], steps.obs[1:, 0] == steps.obs[:-1, 0]))
        near = np.flatnonzero(same[1:])
        same[near + 1] = (steps.obs[near + 1] == steps.obs[near]).all(axis=1)
        same[starts] = True
        changes = np.concatenate(([0], np.cumsum(~same)))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            code = int(steps.episode[start])
            still = bool(changes[end] == changes[start])
            if code in self.first:
                still &= self.still[code] and _hash(steps.obs[start]) == self.first[code]
            else:
                self.first[code] = _hash(steps.obs[start])
            self.still[code] = still
            self.length[code] = self.length.get(code, 0) + end - start
            if still:
                self.where.setdefault(code, Ranges()).add(view.path, steps.record[start:end])
            else:
                self.where.pop(code, None)

    def answer(self, case: Case) -> Iterator[Finding]:
        """Said when every episode of some length stands still, and they differ from each other."""
        long = [code for code, length in self.length.items() if length >= 3]
        stuck = [code for code in long if self.still[code]]
        kinds = len({self.first[c] for c in stuck})
        if len(long) < 2 or not stuck or len(stuck) < len(long) * 0.9 or kinds < 2:
            yield from self._frozen(case, long, stuck)
            return
        where = Ranges()
        for code in stuck:
            if code in self.where:
                where.add_all(self.where[code])
        text = (
            f"`{case.roles.key('obs')}` is the same at every step of {len(stuck)} of {len(long)} episodes, and differs "
            "between them: a reference to one live buffer was stored, not a copy"
        )
        yield case.finding("GYR327", text, where=where, role="obs")

    def _frozen(self, case: Case, long: list[int], stuck: list[int]) -> Iterator[Finding]:
        """Some episodes in which nothing is seen to change, beside others that do."""
        lasting = [code for code in stuck if self.length[code] >= load_record_limits().frozen_steps]
        if not lasting or len(long) == len(stuck) or not self.fraction:
            return  # on a grid one may stand still
        where = Ranges()
        for code in lasting:
            if code in self.where:
                where.add_all(self.where[code])
        text = (
            f"`{case.roles.key('obs')}` does not change in {len(lasting)} of {len(long)} episodes although it does in the others: a sensor, a "
            "wrapper or a buffer that no longer follows the environment"
        )
        yield case.finding("GYR327", text, where=where, role="obs", severity=Severity.WARNING)


def _equal(a: Floats, b: Floats) -> Bools:
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


def _hash(row: Floats) -> int:
    """Equal for equal observations; 0 and -0 are equal."""
    return hash((row + 0).tobytes())


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
