"""Which policy version sampled each record, against the version that used it: ahead, too old, misreported, never renewed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.question import Case, Question, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.version_lists import version_list
from gyrecheck.verdict.records.view import Bools, Ints, View


class Lag(Question):
    """Trainer's version minus behaviour version, record by record."""

    about = "version lag"
    needs = (("policy_version", "trainer_version"),)

    def __init__(self) -> None:
        self.ahead = Ranges()
        self.ahead_seen: list[tuple[int, int, int]] = []
        self.old = Ranges()
        self.old_seen: list[tuple[int, int, int, int]] = []
        self.misreported = Ranges()
        self.misreported_seen: list[tuple[int, str]] = []
        self.rows = 0
        self.behaviour: set[int] = set()
        self.trainer: dict[int, None] = {}
        self.lag_range: list[int] = []

    def feed(self, view: View) -> None:
        """Read one batch."""
        pair = versions(view)
        use = view.integer("trainer_version")
        if pair is None or use is None:
            return
        oldest, newest, there = pair
        trainer, used = use
        both = there & used
        if not both.any():
            return
        self.rows += int(both.sum())
        lag = trainer - oldest
        if len(self.behaviour) < 10_000:
            self.behaviour.update(np.unique(oldest[both]).tolist())
            self.trainer.update(dict.fromkeys(np.unique(trainer[both]).tolist()))
        self.lag_range = [min([*self.lag_range, int(lag[both].min())]), max([*self.lag_range, int(lag[both].max())])]
        ahead = both & (newest > trainer)
        if ahead.any():
            self.ahead.add(view.path, view.records[ahead])
            self.ahead_seen += [
                (int(n), int(v), int(t)) for n, v, t in zip(view.records[ahead], newest[ahead], trainer[ahead], strict=True)
            ][: 5 - len(self.ahead_seen)]
        self._too_old(view, lag, both, oldest, trainer)
        said = view.integer("lag")
        if said is not None:
            wrong = both & said[1] & (said[0] != lag) & (said[0] != trainer - newest) & (said[0] != lag + 1)
            if wrong.any():
                self.misreported.add(view.path, view.records[wrong])
                at = int(wrong.argmax())
                self.misreported_seen.append(
                    (int(view.records[at]), f"says {said[0][at]}, versions {oldest[at]} and {trainer[at]} give {lag[at]}")
                )

    def _too_old(self, view: View, lag: Ints, both: Bools, oldest: Ints, trainer: Ints) -> None:
        limit = view.number("max_lag")
        if limit is None:
            return
        refused = view.flag("dropped")
        over = both & np.isfinite(limit) & (limit >= 0) & (lag > limit)
        if refused is not None:
            over &= ~refused
        if over.any():
            self.old.add(view.path, view.records[over])
            some = np.flatnonzero(over)[: max(0, 5 - len(self.old_seen))]
            self.old_seen += [(int(view.records[i]), int(oldest[i]), int(trainer[i]), int(limit[i])) for i in some]

    def answer(self, case: Case) -> Iterator[Finding]:
        """Versions from the future, records over the limit, a sampler that never loads."""
        key, use = case.roles.key("policy_version"), case.roles.key("trainer_version")
        if self.ahead:
            seen = sorted({version for _, version, _ in self.ahead_seen})
            trainer = sorted({version for _, _, version in self.ahead_seen})
            lag = self.ahead_seen[0][2] - self.ahead_seen[0][1]
            text = (
                f"version ahead: `{key}` ({listed(seen)}) is above `{use}` ({listed(trainer)}) at {self.ahead.rows} of "
                f"{self.rows} records; a lag of {lag} is impossible, "
                f"and passes every check of the form lag <= limit"
            )
            evidence = [(number, f"{key} {version} > {use} {other}") for number, version, other in self.ahead_seen]
            yield case.finding("GYR408", text, where=self.ahead, role="policy_version", evidence=evidence, side="training")
        if self.old:
            number, version, other, limit = self.old_seen[0]
            text = (
                f"{self.old.rows} of {self.rows} records are older than the limit and were not dropped: at record {number} "
                f"the lag is {other - version} ({use} {other}, {key} {version}), the limit {limit}"
            )
            evidence = [(n, f"lag {t - v} > {m}") for n, v, t, m in self.old_seen]
            yield case.finding("GYR404", text, where=self.old, role="policy_version", evidence=evidence, side="training")
        if self.misreported:
            yield case.finding(
                "GYR341",
                f"`{case.roles.key('lag')}` is not `{use}` - `{key}` at {self.misreported.rows} records: {self.misreported_seen[0][1]}",
                where=self.misreported,
                role="lag",
                evidence=self.misreported_seen,
                severity=Severity.WARNING,
                side="training",
            )
        trainers = sorted(self.trainer)
        if len(self.behaviour) == 1 and len(trainers) >= 4 and not self.ahead:
            only = next(iter(self.behaviour))
            text = (
                f"`{key}` stays at {only} in all {self.rows} records while `{use}` goes from {trainers[0]} to "
                f"{trainers[-1]}: the sampler does not load what is published"
            )
            yield case.finding("GYR406", text, role="policy_version", severity=Severity.WARNING if not self.old else None)


def versions(view: View) -> tuple[Ints, Ints, Bools] | None:
    """[rows] oldest and newest behaviour version of each row and which rows have one.

    Of a list neither negative entries (prompt tokens) count nor parts that are masked out.
    """
    parts = version_list(view, "policy_version")
    if parts is not None:
        there = parts.told
        return np.where(there, parts.low, 0).astype(np.int64), np.where(there, parts.high, 0).astype(np.int64), there
    found = view.integer("policy_version")
    if found is None:
        return None
    end = view.integer("policy_version_end")
    value, there = found
    there = there & (value >= 0)
    newest = np.where(end[1], np.maximum(end[0], value), value) if end is not None else value
    return value, newest, there


def told(value: Any) -> str:  # noqa: ANN401 - a label
    """A version as it is written in a sentence."""
    return show(value) if isinstance(value, (int, float)) else str(value)


def listed(values: list[Any]) -> str:
    """The first six, comma-separated."""
    shown = ", ".join(told(value) for value in values[:6])
    return shown + (", …" if len(values) > 6 else "")
