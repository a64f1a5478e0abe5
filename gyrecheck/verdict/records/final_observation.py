"""Cut-off episodes and the observation that follows them, from which the value is bootstrapped."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.fields import Column, Kind, State
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.contents import marks_of
from gyrecheck.verdict.records.question import Case, Question
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import View, lead, rank


def _zeroed(after: Column | None, obs: Column, rows: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """[rows] rows whose next observation is 0 throughout although their observation is not."""
    blank = []
    for column in (after, obs):
        if column is None or column.kind not in {Kind.INT, Kind.FLOAT}:
            return np.zeros(rows, np.bool_)
        counts = np.asarray(column.counts)
        row = np.repeat(np.arange(rows), counts)
        blank.append((np.bincount(row[np.asarray(column.flat) != 0], minlength=rows) == 0) & (counts > 1))
    return np.asarray(blank[0] & ~blank[1])


def _cut_off(view: View) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
    """[rows] rows at whose end an episode is truncated: the row's own flag, or the last one of its list."""
    column = view.column("truncated")
    if column is None or column.kind in {Kind.TEXT, Kind.OBJECT, Kind.NONE}:
        return None
    counts = np.asarray(column.counts)
    out = np.zeros(view.rows, np.bool_)
    out[counts > 0] = np.nan_to_num(np.asarray(column.flat)[(np.cumsum(counts) - 1)[counts > 0]].astype(np.float64)) != 0
    return out


SELDOM = 0.05
"""Share of other steps that may lead back to where they began."""


class FinalObservation(Question):
    """Cut-off episodes whose last observation is not kept, so that nothing can be bootstrapped."""

    about = "final observation"
    needs = (("obs", "truncated"),)

    def __init__(self) -> None:
        self.missing = Ranges()
        self.ends = 0
        self.null = False
        self.repeated = Ranges()
        self.stays = self.rows = self.cut = 0

    def feed(self, view: View) -> None:
        """Read one batch."""
        truncated = _cut_off(view)
        obs = view.column("obs")
        if truncated is None or obs is None or obs.kind is Kind.TEXT or not truncated.any():
            return
        self.ends += int(truncated.sum())
        kept = np.zeros(view.rows, np.bool_)
        for role in ("next_obs", "final_obs", "bootstrap_value"):
            column = view.column(role)
            if column is not None:
                kept |= (np.asarray(column.state) == int(State.PRESENT)) & (np.asarray(column.counts) > 0)
        kept &= ~_zeroed(view.column("next_obs"), obs, view.rows)
        reward = view.column("reward")
        if reward is not None and rank(reward) >= 1:
            kept |= lead(obs) == lead(reward) + 1
        same = marks_of(view, "obs") == marks_of(view, "next_obs") if view.has("next_obs") else np.zeros(view.rows, np.bool_)
        flat = np.asarray(obs.flat)
        if flat.dtype.kind == "f" and bool((flat != np.round(flat)).any()):  # on a grid a step may lead nowhere
            told = [flag for role in ("terminated", "done") if (flag := view.flag(role)) is not None]
            ended = np.asarray(np.any([truncated, *told], axis=0))
            self.repeated.add(view.path, view.records[ended & same])
            self.cut += int((truncated & same & kept).sum())
            self.stays += int((same & ~ended).sum())
            self.rows += int((~ended).sum())
        missing = truncated & ~kept
        kept_apart = any(view.has(role) for role in ("next_obs", "final_obs", "bootstrap_value"))
        self.null |= kept_apart and bool(missing.any())
        self.missing.add(view.path, view.records[missing])

    def answer(self, case: Case) -> Iterator[Finding]:
        """A warning where the field is there and left out at cut-offs, a note where the file has none."""
        if self.cut >= 2 and 2 * self.cut >= self.ends and self.stays <= SELDOM * self.rows:
            after, obs = case.roles.key("next_obs"), case.roles.key("obs")
            text = (
                f"no final observation at {self.cut} of {self.ends} truncated ends: `{after}` repeats the `{obs}` of its own step there "
                "and nowhere else, so the value that is bootstrapped is that of the step before"
            )
            yield case.finding("GYR345", text, where=self.repeated, role="next_obs", severity=Severity.WARNING)
        if self.missing:
            text = (
                f"no final observation at {self.missing.rows} of {self.ends} truncated ends: the value of what would have "
                "followed cannot be bootstrapped"
            )
            yield case.finding(
                "GYR345",
                text,
                where=self.missing,
                role="next_obs" if self.null else "obs",
                severity=Severity.WARNING if self.null else Severity.NOTE,
            )
