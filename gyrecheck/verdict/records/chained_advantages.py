"""Generalised advantages that run on over the end of an episode, or stop at a cut-off beside the value that was to follow (GYR344, GYR329).

A_t = r_t + gamma V_{t+1} - V_t + gamma lambda A_{t+1} inside an episode (Schulman et al. 2015); at a true end both later terms are 0. Discount,
lambda and a scaling of the whole batch are fitted on the steps inside episodes; a file that they do not explain is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.question import Case, Question, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.step_columns import numeric, previous_in_lane
from gyrecheck.verdict.records.steps import Steps, steps_of
from gyrecheck.verdict.records.view import Bools, Floats, Ints, View, rank

LEAST_PAIRS, LEAST_ENDS = 20, 3
EXPLAINED = 0.95
"""Share of the steps inside episodes that the fitted relation must give."""
ROUNDS = 3
KEPT = 500_000


class ChainedAdvantages(Question):
    """Fits the recursion inside episodes, then holds every end against it."""

    about = "advantages over ends"
    needs = tuple(("reward", "value", "advantage", role) for role in ("terminated", "truncated", "done"))

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.parts: list[tuple[Ints, Ints, Floats, Bools, Bools]] = []
        """Of each batch: record, the next row of the same lane, [N, 4] reward, value, advantage, value of what follows; ends; true ends."""
        self.files: list[Ints] = []
        self.pairs: list[Bools] = []
        self.kept = 0
        self.certain = True
        """Whether ids or step counts tell episodes apart, and bear the flags out."""

    def feed(self, view: View) -> None:
        """Read one batch."""
        steps = steps_of(view)
        if steps is None or steps.reward is None or steps.ends is None or len(steps) < 2 or self.kept > KEPT:
            return
        value, advantage = _of_steps(view, steps, "value"), _of_steps(view, steps, "advantage")
        if value is None or advantage is None:
            return
        last = _of_steps(view, steps, "bootstrap_value")
        numbers = np.stack([steps.reward, value, advantage, last if last is not None else np.full(len(steps), np.nan)], axis=1)
        cut = steps.truncated if steps.truncated is not None else np.zeros(len(steps), np.bool_)
        true = steps.terminated if steps.terminated is not None else np.asarray(steps.ends & ~cut)
        following = _next_row(view, steps)
        inner = (following == np.arange(len(steps)) + 1) & (np.append(steps.episode[1:], -1) == steps.episode) & ~steps.ends
        self.certain &= (
            _told_apart(view, steps, following)
            and not steps.per_record
            and bool((steps.ends[:-1] <= (steps.episode[1:] != steps.episode[:-1])).all())
        )
        base = self.kept
        if view.path not in self.paths:
            self.paths.append(view.path)
        self.files.append(np.full(len(steps), self.paths.index(view.path)))
        self.pairs.append(inner)
        self.parts.append((steps.record, np.where(following >= 0, following + base, -1), numbers, steps.ends, true))
        self.kept += len(steps)

    def answer(self, case: Case) -> Iterator[Finding]:
        """Ends that chain to the next episode; cut-offs beside a value that is not taken."""
        if not self.parts:
            return
        record, following, numbers, ends, true = (np.concatenate([part[at] for part in self.parts]) for at in range(5))
        fine = np.isfinite(numbers[:, :3]).all(axis=1)
        inner = np.flatnonzero(np.concatenate(self.pairs) & fine)
        inner = inner[fine[np.minimum(inner + 1, len(fine) - 1)] & (inner + 1 < len(fine))]
        inner = inner[~ends[inner + 1]]  # a sum that stops one step early shall not hide the rest
        scale = float(np.abs(numbers[fine, 2]).max(initial=0.0))
        fit = _fitted(numbers, inner, scale)
        if fit is None:
            return
        limit = 2e-3 * max(scale, 1e-3) + 1e-4
        at = np.flatnonzero(ends & fine)
        alone = _at_end(numbers[at], fit)
        own = np.abs(numbers[at, 2] - alone) <= limit
        then = following[at]
        chained = np.zeros(len(at), np.bool_)
        known = (then >= 0) & fine[np.maximum(then, 0)]
        chained[known] = np.abs(numbers[at[known], 2] - _inside(numbers, at[known], then[known], fit)) <= limit
        before = at[at > 0] - 1
        late = np.abs(numbers[before, 2] - _at_end(numbers[before], fit)) <= limit
        if late.sum() * 2 >= max(len(before), 1):
            yield from self._one_early(case, record, at, chained & ~own, late)
            return
        across = chained & ~own
        if across.sum() >= LEAST_ENDS and across.sum() * 2 >= known.sum():
            first = int(at[across][0])
            text = (
                f"`{case.roles.key('advantage')}` runs on over the end of the episode at {int(across.sum())} of {int(known.sum())} ends: it takes the "
                f"value and the advantage of the next episode's first step, as inside an episode: {show(numbers[first, 2])} at record "
                f"{int(record[first])}, where the episode alone gives {show(alone[across][0])}"
            )
            where = self._where(record, at[across])
            yield case.finding("GYR344", text, where=where, role="advantage", side="training")
            return
        cut = own & ~true[at] & (np.nan_to_num(numbers[at, 3]) != 0)
        if self._held(numbers, inner, at[cut], fit):
            return
        told = ~true[at] & np.isfinite(numbers[at, 3])
        if cut.sum() >= LEAST_ENDS and cut.sum() == told.sum():
            key, last = case.roles.key("advantage"), case.roles.key("bootstrap_value")
            text = (
                f"`{key}` counts nothing behind the {int(cut.sum())} ends that were cut off, as at true ends, although `{last}` stands beside them: "
                "a time limit is learnt as the end of all reward"
            )
            where = self._where(record, at[cut])
            yield case.finding("GYR329", text, where=where, role="advantage", side="training", severity=Severity.WARNING)

    @staticmethod
    def _held(numbers: Floats, inner: Ints, cut: Ints, fit: Floats) -> bool:
        """Whether rewards at cut-offs hold the discounted value already: less it, most lie nearer to the usual reward than as they are."""
        usual, ahead = float(np.median(numbers[inner, 0])), float(fit[2] / fit[0])
        as_is, less = np.abs(numbers[cut, 0] - usual), np.abs(numbers[cut, 0] - ahead * numbers[cut, 3] - usual)
        return bool(len(cut)) and int((less <= as_is).sum()) * 5 > len(cut)

    def _one_early(self, case: Case, record: Ints, at: Ints, across: Bools, late: Bools) -> Iterator[Finding]:
        """The sum stops one step before the end and runs over it: ends that an id or a step count bears out are not those of the row before."""
        if not self.certain or across.sum() < LEAST_ENDS or across.sum() * 2 < len(at):
            return
        text = (
            f"`{case.roles.key('advantage')}` stops one step early at {int(late.sum())} of {len(at)} ends and runs on over the end itself: the flag of "
            "the step after was asked, so the last step takes the value and the advantage of the next episode"
        )
        yield case.finding("GYR344", text, where=self._where(record, at[across]), role="advantage", side="training")

    def _where(self, record: Ints, rows: Ints) -> Ranges:
        files, where = np.concatenate(self.files), Ranges()
        for number, path in enumerate(self.paths):
            where.add(path, np.sort(record[rows[files[rows] == number]]))
        return where


def _of_steps(view: View, steps: Steps, role: str) -> Floats | None:
    """[N] the role's number at each step; a record's one number stands at its last step."""
    column = view.column(role)
    if column is None or not numeric(column):
        return None
    if not steps.per_record:
        found = view.number(role)
        return found[steps.order] if found is not None else None
    flat = np.asarray(column.flat).astype(np.float64)
    if len(flat) == len(steps) and rank(column) == 1:
        return flat[steps.order]
    if role != "bootstrap_value" or (found := view.number(role)) is None:
        return None
    out = np.full(len(steps), np.nan)
    number = dict(zip(view.records.tolist(), found.tolist(), strict=True))
    for at in np.flatnonzero(np.append(np.diff(steps.episode) != 0, True)).tolist():
        out[at] = number.get(int(steps.record[at]), np.nan)
    return out


def _next_row(view: View, steps: Steps) -> Ints:
    """[N] the step that the same lane holds next in the file; -1 for its last one."""
    back = np.argsort(steps.order, kind="stable")
    previous = np.arange(-1, len(steps) - 1) if steps.per_record else previous_in_lane(view)
    out, here = np.full(len(steps), -1), np.flatnonzero(previous >= 0)
    out[back[previous[here]]] = back[here]
    return out


def _told_apart(view: View, steps: Steps, following: Ints) -> bool:
    """Whether ids name the episodes, or the step count starts again behind every flag: a flag alone may speak of the row before."""
    if any(view.has(role) for role in ("episode_id", "trajectory_id")):
        return steps.labelled
    if steps.step is None or steps.ends is None:
        return False
    at = np.flatnonzero(steps.ends & (following >= 0))
    return bool((steps.step[following[at]] < steps.step[at]).all())


def _design(numbers: Floats, at: Ints, then: Ints) -> Floats:
    return np.stack([numbers[at, 0], numbers[at, 1], numbers[then, 1], numbers[then, 2], np.ones(len(at))], axis=1)


def _inside(numbers: Floats, at: Ints, then: Ints, fit: Floats) -> Floats:
    return np.asarray(_design(numbers, at, then) @ fit)


def _at_end(numbers: Floats, fit: Floats) -> Floats:
    """[N] r - V under the fitted scaling: the constant is that of a mean taken off, once more for what follows."""
    return np.asarray(fit[0] * numbers[:, 0] + fit[1] * numbers[:, 1] + fit[4] / (1 - fit[3]))


def _fitted(numbers: Floats, inner: Ints, scale: float) -> Floats | None:
    """Factors of reward, value, next value, next advantage and 1; None where they are not those of a generalised advantage."""
    if len(inner) < LEAST_PAIRS or scale == 0:
        return None
    limit, use = 2e-3 * max(scale, 1e-3) + 1e-4, inner
    fit = np.zeros(5)
    for _ in range(ROUNDS):
        design = _design(numbers, use, use + 1)
        fit, _, full, _ = np.linalg.lstsq(design, numbers[use, 2], rcond=None)
        if full < 5:
            return None
        off = np.abs(_inside(numbers, inner, inner + 1, fit) - numbers[inner, 2])
        use = inner[off <= max(limit, 3 * float(np.median(off)))]
        if len(use) < LEAST_PAIRS:
            return None
    share = float((np.abs(_inside(numbers, inner, inner + 1, fit) - numbers[inner, 2]) <= limit).mean())
    scaled, against, ahead, carried = (float(x) for x in fit[:4])
    right = scaled > 0 and abs(against + scaled) <= 0.02 * scaled and 0 < ahead <= 1.01 * scaled and 0.05 < carried <= 0.9999
    return fit if share >= EXPLAINED and right else None
