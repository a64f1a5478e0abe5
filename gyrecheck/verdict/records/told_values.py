"""Numbers that the file tells and that its other fields determine: an importance ratio, an episode's return, a discount at an end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.fields import Kind
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.question import Case, Question, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.steps import steps_of
from gyrecheck.verdict.records.view import Bools, Floats, Ints, View

ROUNDING = 5e-3
"""How far a told number may lie off, relative; files keep three to five digits."""
LEAST = 4


class RatioTold(Question):
    """A stored importance ratio against the two log-probs beside it: exp(trainer's - sampler's)."""

    about = "stored importance ratio"
    needs = (("ratio", "logprob", "replay_logprob"), ("ratio", "logprob", "proximal_logprob"))

    def __init__(self) -> None:
        self.values = 0
        self.fits = {"right": 0, "turned": 0, "logarithm": 0, "one": 0}
        self.where = Ranges()
        self.example: tuple[int, str] | None = None

    def feed(self, view: View) -> None:
        """Read one batch."""
        other = "replay_logprob" if view.has("replay_logprob") else "proximal_logprob"
        columns = [view.column(role) for role in ("ratio", "logprob", other)]
        if any(c is None or c.kind not in {Kind.FLOAT, Kind.INT, Kind.MIXED} for c in columns):
            return
        counts = [np.asarray(c.counts) for c in columns if c is not None]
        if not all(np.array_equal(counts[0], more) for more in counts[1:]):
            return
        ratio, old, new = (np.asarray(c.flat).astype(np.float64) for c in columns if c is not None)
        row = np.repeat(np.arange(view.rows), counts[0])
        gap = new - old
        use = np.isfinite(ratio) & np.isfinite(gap) & (np.abs(gap) > 4 * ROUNDING) & (np.abs(gap) < 20)
        if not use.any():
            return
        told, gap, row = ratio[use], gap[use], row[use]
        self.values += len(told)
        right = np.isclose(told, np.exp(gap), rtol=ROUNDING, atol=1e-4)
        forms = {"right": right, "turned": np.isclose(told, np.exp(-gap), rtol=ROUNDING, atol=1e-4)}
        forms |= {"logarithm": np.isclose(told, gap, rtol=ROUNDING, atol=1e-3), "one": told == 1.0}
        for name, fit in forms.items():
            self.fits[name] += int(fit.sum())
        self.where.add(view.path, view.records[np.unique(row[~right])])
        if self.example is None and not right.all():
            at = int((~right).argmax())
            self.example = (int(view.records[row[at]]), f"stored {show(told[at])}, the log-probs give {show(np.exp(gap[at]))}")

    def answer(self, case: Case) -> Iterator[Finding]:
        """What the stored number is instead."""
        if self.values < LEAST or self.fits["right"] * 2 > self.values or self.example is None:
            return
        key = case.roles.key("ratio")
        best = max(("turned", "logarithm", "one"), key=lambda name: self.fits[name])
        if self.fits[best] < 0.9 * self.values:
            return  # clipped, averaged, or of another pair of policies: nothing is known of it
        code, severity, what = {
            "turned": ("GYR402", None, "is turned upside down: it is the sampler's probability over the trainer's"),
            "logarithm": ("GYR402", Severity.WARNING, "holds the logarithm of the ratio, not the ratio"),
            "one": ("GYR407", None, "is exactly 1 although the two log-probs differ: the denominator is the trainer's own"),
        }[best]
        text = f"`{key}` {what} at {self.fits[best]} of {self.values} values: {self.example[1]}"
        yield case.finding(code, text, where=self.where, role="ratio", evidence=(self.example,), side="training", severity=severity)


class EpisodeReturn(Question):
    """An episode's return told at its last step, against the sum of its rewards."""

    about = "return of an episode"
    needs = (("episode_return", "reward"),)

    def __init__(self) -> None:
        self.sums: list[float] = []
        self.told: list[float] = []
        self.ends: list[tuple[str, int]] = []
        self.open: dict[int, float] = {}

    def feed(self, view: View) -> None:
        """Read one batch."""
        steps, told = steps_of(view), view.number("episode_return")
        if steps is None or steps.reward is None or steps.per_record or told is None or len(self.sums) > 100_000:
            return
        ends = steps.ends
        if ends is None:
            return
        told = told[steps.order]
        for at, (code, reward) in enumerate(zip(steps.episode.tolist(), steps.reward.tolist(), strict=True)):
            total = self.open.pop(code, 0.0) + reward
            if ends[at]:
                self.sums.append(total)
                self.told.append(float(told[at]))
                self.ends.append((view.path, int(steps.record[at])))
            else:
                self.open[code] = total

    def answer(self, case: Case) -> Iterator[Finding]:
        """Returns that belong to the episode before, or to none."""
        sums, told = np.array(self.sums), np.array(self.told)
        known = np.isfinite(told) & np.isfinite(sums)
        if known.sum() < 3 or len(np.unique(sums[known])) < 2:
            return
        wrong = known & ~_near(told, sums)
        if wrong.sum() * 2 < known.sum():
            return
        before = np.concatenate(([0.0], sums[:-1]))
        late = bool(_near(told, before)[known].mean() >= 0.8)
        grown = np.cumsum(sums)
        piled = bool(_near(told, grown)[known].mean() >= 0.8)
        if not late and not piled:
            return  # scaled, discounted or clipped: the file does not say how
        where = Ranges()
        for path, record in [self.ends[i] for i in np.flatnonzero(wrong).tolist()]:
            where.add(path, np.array([record]))
        key, at = case.roles.key("episode_return"), int(wrong.argmax())
        how = "is that of the episode before" if late else "adds up over all episodes"
        text = (
            f"`{key}` {how} at {int(wrong.sum())} of {int(known.sum())} ends: {show(told[at])} where the rewards add up to {show(sums[at])}"
        )
        yield case.finding("GYR308", text, where=where, role="episode_return", severity=Severity.WARNING)


def _near(a: Floats, b: Floats) -> Bools:
    return np.asarray(np.isclose(a, b, rtol=ROUNDING, atol=2e-3))


class Discounts(Question):
    """A stored discount (or its flag) at ends: 0 where nothing follows, and only there."""

    about = "discount at ends"
    needs = (("discount", "truncated"), ("discount", "limit_reached"), ("discount", "terminated"))

    def __init__(self) -> None:
        self.cut = Ranges()
        self.ended = Ranges()
        self.cuts = self.ends = self.inner = self.nothing = 0

    def feed(self, view: View) -> None:
        """Read one batch."""
        discount = view.number("discount")
        terminated, truncated = view.flag("terminated"), view.flag("truncated")
        if truncated is None:
            truncated = view.flag("limit_reached")
        if discount is None:
            return
        nothing: Bools = np.zeros(view.rows, np.bool_)
        cut = (truncated if truncated is not None else nothing) & ~(terminated if terminated is not None else nothing)
        ended = terminated if terminated is not None else nothing
        self.cuts, self.ends = self.cuts + int(cut.sum()), self.ends + int(ended.sum())
        self.inner += int((~cut & ~ended & (discount > 0)).sum())
        self.nothing += int((discount == 0).sum())
        self.cut.add(view.path, self._at(view, cut & (discount == 0)))
        self.ended.add(view.path, self._at(view, ended & (discount > 0)))

    @staticmethod
    def _at(view: View, rows: Bools) -> Ints:
        return np.asarray(view.records[rows])

    def answer(self, case: Case) -> Iterator[Finding]:
        """Cut-off steps whose future is left out, and ends whose future counts."""
        key = case.roles.key("discount")
        if not self.inner or not self.nothing:
            return  # the same at every step: the discount of the whole task
        if self.cut.rows >= 2 and self.cut.rows * 2 > self.cuts:
            flag = case.roles.key("truncated") or case.roles.key("limit_reached")
            text = (
                f"`{key}` is 0 at {self.cut.rows} of {self.cuts} steps that `{flag}` calls cut off: the time limit counts as an end, and "
                "nothing is bootstrapped there"
            )
            yield case.finding("GYR329", text, where=self.cut, role="discount")
        if self.ended.rows >= 2 and self.ended.rows * 2 > self.ends:
            text = (
                f"`{key}` is above 0 at {self.ended.rows} of {self.ends} steps that `{case.roles.key('terminated')}` calls ends: the value of "
                "what follows the end is counted"
            )
            yield case.finding("GYR330", text, where=self.ended, role="discount", severity=Severity.WARNING)


class RewardPlace(Question):
    """Rewards told token by token: they count only where the mask does."""

    about = "place of token rewards"
    needs = (("reward", "mask", "tokens"), ("reward", "attention_mask", "tokens"))

    def __init__(self) -> None:
        self.outside = Ranges()
        self.told = 0
        self.example: tuple[int, str] | None = None

    def feed(self, view: View) -> None:
        """Read one batch."""
        role = "mask" if view.has("mask") else "attention_mask"
        reward, mask = view.column("reward"), view.column(role)
        if (
            reward is None
            or mask is None
            or reward.kind not in {Kind.INT, Kind.FLOAT}
            or mask.kind not in {Kind.INT, Kind.FLOAT, Kind.BOOL}
        ):
            return
        counts = np.asarray(reward.counts)
        if counts.max(initial=0) < 2 or not np.array_equal(counts, np.asarray(mask.counts)):
            return
        row = np.repeat(np.arange(view.rows), counts)
        given, on = (
            np.nan_to_num(np.asarray(reward.flat).astype(np.float64)) != 0,
            np.nan_to_num(np.asarray(mask.flat).astype(np.float64)) != 0,
        )
        inside, outside = np.bincount(row[given & on], minlength=view.rows), np.bincount(row[given & ~on], minlength=view.rows)
        self.told += int(((inside + outside) > 0).sum())
        lost = (outside > 0) & (inside == 0) & (np.bincount(row[on], minlength=view.rows) > 0)
        self.outside.add(view.path, view.records[lost])
        if self.example is None and lost.any():
            at = int(lost.argmax())
            place = int(np.flatnonzero(given & ~on & (row == at))[0] - (np.cumsum(counts) - counts)[at])
            self.example = (int(view.records[at]), f"reward at position {place + 1} of {int(counts[at])}, where the mask is 0")

    def answer(self, case: Case) -> Iterator[Finding]:
        """Records whose whole reward lies where nothing counts."""
        if self.example is None or self.outside.rows < 2 or self.outside.rows * 2 < self.told:
            return
        key, mask = case.roles.key("reward"), case.roles.key("mask") or case.roles.key("attention_mask")
        text = f"`{key}` lies outside `{mask}` at {self.outside.rows} of {self.told} records, so it counts for nothing: {self.example[1]}"
        yield case.finding("GYR333", text, where=self.outside, role="reward", evidence=(self.example,))
