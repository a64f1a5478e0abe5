"""Reward and return: mixed up, in each other's place, or summed over the end of an episode."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.question import Case, Question, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.steps import Steps, steps_of
from gyrecheck.verdict.records.view import Floats, View


class Returns(Question):
    """Reward and return: mixed up, swapped, or summed over the end of an episode.

    A return obeys G_t = r_t + gamma G_{t+1} inside an episode; gamma is found from the file (median over steps).
    """

    about = "reward and return"
    needs = (("reward", "return"), ("reward",))

    def __init__(self) -> None:
        self.inner: list[tuple[Floats, Floats, Floats, Floats]] = []
        self.over: list[tuple[str, Floats, Floats, Floats, Floats]] = []
        self.stored = 0
        self.equal = 0
        self.rows = 0
        self.nonzero = 0
        self.constant: dict[int, tuple[float, int, bool]] = {}
        self.path = ""
        self.everywhere = Ranges()

    def feed(self, view: View) -> None:
        """Read one batch."""
        steps = steps_of(view)
        if steps is None or steps.reward is None or len(steps) < 2:
            return
        self.path = self.path or view.path
        reward, gain = steps.reward, steps.returns
        self._spread(steps)
        if gain is None or self.stored > 500_000:
            return
        inside = steps.episode[1:] == steps.episode[:-1]
        ends = steps.ends
        final = steps.terminated if steps.terminated is not None else ends
        if ends is not None:
            inside &= ~ends[:-1]
        self.stored += len(steps)
        self.rows += len(steps)
        if self.equal == self.rows - len(steps):
            self.everywhere.add(view.path, np.sort(steps.record))
        self.equal += int(np.isclose(reward, gain, atol=1e-6).sum())
        self.nonzero += int((inside & (reward[1:] != 0)).sum())
        self.inner.append((reward[:-1][inside], reward[1:][inside], gain[:-1][inside], gain[1:][inside]))
        if final is not None:
            file_order = np.argsort(steps.order, kind="stable")
            at = file_order[:-1][final[file_order][:-1]]
            following = file_order[1:][final[file_order][:-1]]
            self.over.append((view.path, steps.record[at].astype(np.float64), reward[at], gain[at], gain[following]))

    def _spread(self, steps: Steps) -> None:
        if steps.reward is None or len(self.constant) > 100_000:
            return
        starts = np.flatnonzero(np.diff(steps.episode, prepend=-1))
        lengths = np.diff(np.concatenate((starts, [len(steps)])))
        low, high = np.minimum.reduceat(steps.reward, starts), np.maximum.reduceat(steps.reward, starts)
        for code, a, b, n in zip(steps.episode[starts].tolist(), low.tolist(), high.tolist(), lengths.tolist(), strict=True):
            known = self.constant.get(code)
            self.constant[code] = (a, n + (known[1] if known else 0), a == b and (known is None or (known[2] and known[0] == a)))

    def answer(self, case: Case) -> Iterator[Finding]:
        """Equal, swapped, or leaking over an end."""
        reward_key, key = case.roles.key("reward"), case.roles.key("return")
        long = [entry for entry in self.constant.values() if entry[1] >= 3]
        flat = [entry for entry in long if entry[2]]
        if len(long) >= 3 and len(flat) == len(long) and len({entry[0] for entry in flat}) >= 3:
            text = (
                f"`{reward_key}` is the same at every step of an episode and differs between all {len(long)} episodes: the "
                "episode's return stands where the step's reward belongs"
            )
            yield case.finding("GYR308", text, role="reward", severity=Severity.WARNING)
        if not self.inner:
            return
        r0, r1, g0, g1 = (np.concatenate([part[i] for part in self.inner]) for i in range(4))
        if len(r0) < 5:
            return
        if self.equal == self.rows and self.nonzero > 0.3 * len(r0):
            yield case.finding(
                "GYR308",
                f"`{key}` equals `{reward_key}` at all {self.rows} steps although later rewards are not 0: one of the two holds the other",
                where=self.everywhere,
                role="return",
            )
            return
        gamma = discount_of(r0, g0, g1)
        swapped = discount_of(g0, r0, r1)
        if gamma is None and swapped is not None:
            text = (
                f"`{reward_key}` and `{key}` stand in each other's place: `{reward_key}`[t] = `{key}`[t] + {show(swapped)} "
                f"`{reward_key}`[t+1] holds at the steps inside episodes"
            )
            yield case.finding("GYR308", text, role="reward")
            return
        if gamma is None or not self.over or not gamma:
            return
        where = Ranges()
        ends = 0
        seen: list[tuple[int, str]] = []
        for path, record, r, g, following in self.over:
            ends += len(r)
            leak = np.isclose(g, r + gamma * following, atol=2e-3) & ~np.isclose(g, r, atol=2e-3)
            where.add(path, np.sort(record[leak].astype(np.int64)))
            if leak.any():
                at = int(leak.argmax())
                seen.append(
                    (
                        int(record[at]),
                        f"return {show(g[at])} = reward {show(r[at])} + {show(gamma)} x {show(following[at])} of the next episode",
                    )
                )
        if where.rows and where.rows * 2 >= ends:
            text = f"`{key}` is summed over the end of the episode at {where.rows} of {ends} terminated steps: {seen[0][1]}"
            yield case.finding("GYR344", text, where=where, role="return", evidence=seen, side="training")


def discount_of(r: Floats, g: Floats, following: Floats) -> float | None:
    """The discount for which g = r + gamma * following at 90 % of the steps, or None."""
    use = np.abs(following) > 1e-3
    if use.sum() < 5:
        return None
    gamma = float(np.median((g[use] - r[use]) / following[use]))
    if not 0 < gamma <= 1.0005:
        return None
    return gamma if float(np.isclose(g, r + gamma * following, atol=5e-3, rtol=1e-3).mean()) >= 0.9 else None
