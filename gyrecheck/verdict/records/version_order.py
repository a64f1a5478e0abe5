"""Versions in the order of writing, placeholders among them, and age in sampling steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.question import Case, Question, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.versions import listed
from gyrecheck.verdict.records.view import Bools, Ints, View


class VersionOrder(Question):
    """Versions that go back in the order of writing, and placeholder versions among real ones."""

    about = "version order"
    needs = (("policy_version",), ("trainer_version",))

    def __init__(self) -> None:
        self.last: dict[tuple[str, Any], tuple[int, int]] = {}
        self.resets: dict[str, Ranges] = {}
        self.seen: dict[str, list[tuple[int, str]]] = {}
        self.placeholder = Ranges()
        self.placeholder_values: set[int] = set()
        self.zero = Ranges()
        self.low: int | None = None
        self.falls = 0
        self.steps = 0
        self.total = 0

    def feed(self, view: View) -> None:
        """Read one batch."""
        for role in ("policy_version", "trainer_version"):
            found = view.integer(role)
            if found is None:
                continue
            value, there = found
            self._order(view, role, value, there)
            if role != "policy_version":
                continue
            self.total += int(there.sum())
            below = there & (value < 0)
            if below.any():
                self.placeholder.add(view.path, view.records[below])
                self.placeholder_values.update(np.unique(value[below]).tolist()[:5])
            zero = there & (value == 0)
            if zero.any():
                self.zero.add(view.path, view.records[zero])
            real = there & (value > 0)
            if real.any():
                low = int(value[real].min())
                self.low = low if self.low is None else min(low, self.low)

    def _order(self, view: View, role: str, value: Ints, there: Bools) -> None:
        source = view.labels("env_id")
        groups = (
            {name: np.array([s == name for s in source]) for name in set(source) if name is not None}
            if source and len(set(source)) <= 64
            else {None: np.ones(view.rows, np.bool_)}
        )
        for name, member in groups.items():
            rows = np.flatnonzero(member & there)
            if not len(rows):
                continue
            previous, number = self.last.get((role, name), (int(value[rows[0]]), int(view.records[rows[0]])))
            series = np.concatenate(([previous], value[rows]))
            numbers = np.concatenate(([number], view.records[rows]))
            change = np.diff(series)
            if role == "policy_version":
                self.steps += int((change != 0).sum())
                self.falls += int((change < 0).sum())
            fall = (change < -2) & (series[1:] * 2 < series[:-1])
            if fall.any():
                self.resets.setdefault(role, Ranges()).add(view.path, numbers[1:][fall])
                at = int(fall.argmax())
                self.seen.setdefault(role, []).append(
                    (int(numbers[at + 1]), f"{series[at]} at record {numbers[at]}, then {series[at + 1]}")
                )
            self.last[role, name] = (int(series[-1]), int(numbers[-1]))

    def answer(self, case: Case) -> Iterator[Finding]:
        """Counters that started again, placeholders."""
        for role, where in self.resets.items():
            if where.count > 3 and self.falls * 4 > self.steps:
                continue  # shuffled records: order says nothing
            key = case.roles.key(role)
            text = f"`{key}` goes back: {self.seen[role][0][1]}; a version counter that starts again makes old data look new"
            yield case.finding("GYR415", text, where=where, role=role, evidence=self.seen[role], side="training", severity=Severity.WARNING)
        key = case.roles.key("policy_version")
        if self.placeholder and self.placeholder.rows < self.total:
            text = (
                f"`{key}` is {listed(sorted(self.placeholder_values))} at {self.placeholder.rows} of {self.total} records: a "
                "placeholder, not a version"
            )
            yield case.finding("GYR401", text, where=self.placeholder, role="policy_version")
        elif self.placeholder:
            text = f"`{key}` is {listed(sorted(self.placeholder_values))} in all {self.total} records: a placeholder, not a version"
            yield case.finding("GYR401", text, where=self.placeholder, role="policy_version", severity=Severity.WARNING)
        if self.zero and self.low is not None and self.low >= 5 and self.zero.rows * 2 <= self.total and self.zero.count < self.total:
            text = (
                f"`{key}` is 0 at {self.zero.rows} of {self.total} records while all others are {self.low} or above: looks like a default"
            )
            yield case.finding("GYR401", text, where=self.zero, role="policy_version", severity=Severity.WARNING)


class Age(Question):
    """Age in sampling steps at the moment of use, where records carry both."""

    about = "age in sampling steps"
    needs = (("sample_step", "trainer_step", "max_age"),)

    def __init__(self) -> None:
        self.old = Ranges()
        self.seen: list[tuple[int, str]] = []
        self.rows = 0

    def feed(self, view: View) -> None:
        """Read one batch."""
        made, used, limit = view.number("sample_step"), view.number("trainer_step"), view.number("max_age")
        if made is None or used is None or limit is None:
            return
        refused = view.flag("dropped")
        age = used - made
        over = np.nan_to_num(age - limit) > 0
        if refused is not None:
            over &= ~refused
        self.rows += view.rows
        self.old.add(view.path, view.records[over])
        if over.any():
            at = int(over.argmax())
            self.seen.append((int(view.records[at]), f"age {show(age[at])} steps, limit {show(limit[at])}"))

    def answer(self, case: Case) -> Iterator[Finding]:
        """Records over the age limit that were not dropped."""
        if self.old:
            yield case.finding(
                "GYR404",
                f"{self.old.rows} of {self.rows} records are older than the limit and were not dropped: {self.seen[0][1]}",
                where=self.old,
                role="sample_step",
                evidence=self.seen,
                side="training",
            )


class DeclaredLag(Question):
    """A lag that the trainer wrote down, where the versions themselves are not in the records."""

    about = "recorded lag"
    needs = (("lag",),)

    def __init__(self) -> None:
        self.negative = Ranges()
        self.old = Ranges()
        self.seen: list[tuple[int, str]] = []
        self.rows = 0

    def feed(self, view: View) -> None:
        """Read one batch."""
        lag, limit, refused = view.number("lag"), view.number("max_lag"), view.flag("dropped")
        if lag is None or (view.has("policy_version") and view.has("trainer_version")):
            return
        self.rows += view.rows
        below = np.nan_to_num(lag) < 0
        self.negative.add(view.path, view.records[below])
        over = np.nan_to_num(lag - limit) > 0 if limit is not None else np.zeros(view.rows, np.bool_)
        if refused is not None:
            over &= ~refused
        self.old.add(view.path, view.records[over])
        for at in np.flatnonzero(below | over)[: max(0, 5 - len(self.seen))].tolist():
            self.seen.append((int(view.records[at]), f"lag {show(lag[at])}" + (f", limit {show(limit[at])}" if limit is not None else "")))

    def answer(self, case: Case) -> Iterator[Finding]:
        """Negative lags, and lags over the limit that were not dropped."""
        key = case.roles.key("lag")
        if self.negative:
            text = (
                f"`{key}` is negative at {self.negative.rows} of {self.rows} records: the sample's version is ahead of the "
                "trainer's, which is impossible"
            )
            yield case.finding("GYR408", text, where=self.negative, role="lag", evidence=self.seen, side="training")
        if self.old:
            text = f"`{key}` is over the limit at {self.old.rows} of {self.rows} records that were not dropped"
            yield case.finding("GYR404", text, where=self.old, role="lag", evidence=self.seen, side="training")
