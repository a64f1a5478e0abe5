"""Ticks that only reset, learnt from as steps: behind an end an environment that resets on the next step ignores one action (GYR328).

Such a tick begins at its lane's final observation, brings a reward of 0 and leads to the first observation of the next episode. It is no step.
Only a file that says of its rows whether they are learnt from, or holds what only learning makes, tells that it is taken for one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gyrecheck.model.fields import Kind
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.later_starts import RARE
from gyrecheck.verdict.records.question import Case, Question
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.step_columns import lanes_of, previous_in_lane, rows_of
from gyrecheck.verdict.records.successors import equal_rows
from gyrecheck.verdict.records.view import Bools, Ints, View

LEAST = 2
"""Ticks from which on they are no accident."""
USUAL = 0.8
MADE = ("reward", "advantage", "return", "value")
"""Numbers of a step that may be 0 at a tick by themselves."""
WORDS = 8
"""Words of one key up to which it says what kind of row each is."""
"""Share of the ends with a row behind them that must be followed by such a tick."""


class ResetTicks(Question):
    """Follows each environment's rows, and looks at the one behind each end."""

    about = "ticks that only reset"
    yields = frozenset({"GYR328"})
    needs = (("obs", "next_obs", "reward", "terminated"), ("obs", "next_obs", "reward", "truncated"), ("obs", "next_obs", "reward", "done"))

    def __init__(self) -> None:
        self.last: dict[Any, tuple[Any, bool]] = {}
        """Of each lane the successor of its last row and whether that row ended an episode."""
        self.followed = self.ticks = self.zeros = self.others = 0
        self.counted = Ranges()
        self.seen: list[tuple[int, str]] = []
        self.words: dict[str, tuple[set[str | None], set[str | None]]] = {}
        """Of each text the words at ticks and at other rows."""
        self.flags: dict[str, list[int]] = {}
        """Of each flag the ticks at which it is on and off, and the other rows at which it is."""

    def feed(self, view: View) -> None:
        """Read one batch."""
        obs, after, reward = rows_of(view, "obs"), rows_of(view, "next_obs"), view.number("reward")
        told = [flag for role in ("terminated", "truncated", "done") if (flag := view.flag(role)) is not None]
        if obs is None or after is None or reward is None or not told or obs.shape != after.shape or not np.isfinite(reward).all():
            return
        ends = np.asarray(np.any(told, axis=0))
        lanes = lanes_of(view)
        previous = previous_in_lane(view)
        before, ended = np.where(previous[:, None] >= 0, after[previous], np.nan), (previous >= 0) & ends[previous]
        for at in np.flatnonzero(previous < 0).tolist():
            lane = lanes[at] if lanes is not None else 0
            if lane in self.last:
                before[at], ended[at] = self.last[lane]
        last = np.ones(view.rows, np.bool_)
        last[previous[previous >= 0]] = False
        self.last.update(
            {lanes[at] if lanes is not None else 0: (after[at].copy(), bool(ends[at])) for at in np.flatnonzero(last).tolist()}
        )
        tick = ended & (reward == 0) & ~ends & equal_rows(before, obs.astype(np.float64)) & ~equal_rows(obs, after)
        self.followed += int(ended.sum())
        self.ticks += int(tick.sum())
        self.zeros += int(((reward == 0) & ~tick).sum())
        self.others += int((~tick).sum())
        self._told(view, tick)
        learnt = tick & ~view.idle()
        self.counted.add(view.path, view.records[learnt])
        for at in np.flatnonzero(learnt)[: 5 - len(self.seen)].tolist():
            self.seen.append((int(view.records[at]), "begins at the final observation, reward 0, ends at a first observation"))

    def _told(self, view: View, tick: Bools) -> None:
        """How often each flag is on at ticks and elsewhere: one that is on at the ticks alone says itself what they are."""
        for key, column in view.batch.columns.items():
            counts: Ints = np.asarray(column.counts)
            single = len(counts) == view.rows and bool((counts == 1).all())
            if single and column.texts is not None:
                words = self.words.setdefault(key, (set(), set()))
                for text, at in zip(column.texts, tick.tolist(), strict=True):
                    if len(words[not at]) <= WORDS:
                        words[not at].add(text)
                continue
            plain = single and (
                column.kind in {Kind.BOOL, Kind.INT} or (column.kind is Kind.FLOAT and view.roles.roles.get(key) not in MADE)
            )
            if plain and column.kind is Kind.FLOAT and not np.isin(np.asarray(column.flat), (0, 1)).all():
                continue
            if not plain or view.roles.roles.get(key) in {"mask", "terminated", "truncated", "done"}:
                continue
            on = np.asarray(column.flat) != 0
            seen = self.flags.setdefault(key, [0, 0, 0, 0])
            for at, rows in enumerate((tick & on, tick & ~on, ~tick & on, ~tick & ~on)):
                seen[at] += int(rows.sum())

    def answer(self, case: Case) -> Iterator[Finding]:
        """Where most ends are followed by such a tick and the file learns from it."""
        rare = self.zeros < RARE * self.others
        told = any(not (off or other) or not (on or rest) for on, off, other, rest in self.flags.values())
        told |= any(len(own) == 1 and own.isdisjoint(rest) and len(rest) <= WORDS for own, rest in self.words.values())
        if self.ticks < LEAST or self.ticks < USUAL * self.followed or not rare or told or not self.counted:
            return
        mask = case.roles.key("mask")
        if not mask and not any(case.roles.key(role) for role in ("advantage", "return", "ratio", "replay_logprob")):
            return
        said = f" and counted by `{mask}`" if mask else ""
        text = (
            f"{self.counted.rows} rows behind an end are no steps{said}: each begins at the final observation of its environment, has a reward of "
            "exactly 0 and leads to the first observation of the next episode (the tick on which the environment resets): its action was ignored"
        )
        severity = None if mask else Severity.WARNING
        yield case.finding("GYR328", text, where=self.counted, role="next_obs", evidence=self.seen, severity=severity)
