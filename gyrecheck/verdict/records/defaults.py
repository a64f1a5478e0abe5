"""Values that were not measured: defaults in some records, failures kept as samples, constant fields."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.fields import Kind
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.neighbours import Neighbours
from gyrecheck.verdict.records.question import Case, Question, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import View, lead, per_row, rank

NEVER_ALL_ZERO = ("value", "advantage", "obs", "next_obs", "return", "entropy")
CONTINUOUS = ("value", "logprob", "entropy", "advantage", "return", "reward")
DEFAULTS = (0.0, -1.0, 1.0)


class Failures(Question):
    """Records that say they failed, or hold no answer, and yet carry a reward as if measured."""

    about = "failures kept as samples"
    needs = (("reward", "status"), ("reward", "error"), ("reward", "failed"), ("reward", "tokens"), ("reward", "action"))

    def __init__(self) -> None:
        self.failed = Ranges()
        self.failed_seen: list[tuple[int, str]] = []
        self.blank = Ranges()
        self.blank_seen: list[tuple[int, str]] = []
        self.rows = 0

    def feed(self, view: View) -> None:
        """Read one batch."""
        reward = view.number("reward")
        if reward is None:
            return
        self.rows += view.rows
        measured = np.isfinite(reward)
        refused = view.flag("dropped")
        if refused is not None:
            measured &= ~refused
        mask = view.column("mask")
        if mask is not None and mask.kind is not Kind.TEXT:
            counts = np.asarray(mask.counts)
            on = per_row(view.counted("mask"), counts)
            measured &= (on > 0) | (counts == 0)
        said = view.failed()
        failed = measured & said if said is not None else None
        if failed is not None and failed.any():
            self.failed.add(view.path, view.records[failed])
            at = int(failed.argmax())
            told = [f"{view.roles.key(role)} {words[at]!r}" for role in ("status", "error") if (words := view.words(role)) and words[at]]
            why = ", ".join(told) or f"{view.roles.key('failed')} true"
            self.failed_seen.append((int(view.records[at]), f"{why}, {view.roles.key('reward')} {show(reward[at])}"))
        tokens = view.column("tokens")
        if tokens is not None and rank(tokens) >= 1 and tokens.kind is not Kind.TEXT:
            blank = measured & (lead(tokens) == 0)
            if blank.any():
                self.blank.add(view.path, view.records[blank])
                at = int(blank.argmax())
                self.blank_seen.append((int(view.records[at]), f"no tokens, {view.roles.key('reward')} {show(reward[at])}"))

    def answer(self, case: Case) -> Iterator[Finding]:
        """Where a failure stands as a sample."""
        key = case.roles.key("reward")
        if self.failed:
            text = (
                f"{self.failed.rows} of {self.rows} records failed and stand as samples with a reward: "
                f"{self.failed_seen[0][1]}; the failure is learnt from as an outcome"
            )
            yield case.finding("GYR343", text, where=self.failed, role="reward", evidence=self.failed_seen, severity=Severity.WARNING)
        if self.blank:
            text = (
                f"{self.blank.rows} of {self.rows} records hold no tokens and a `{key}`: {self.blank_seen[0][1]}; a "
                "placeholder in place of a sample"
            )
            yield case.finding("GYR343", text, where=self.blank, role="tokens", evidence=self.blank_seen, severity=Severity.WARNING)


class FilledIn(Question):
    """Exact defaults in some records of a field that otherwise varies, and fields that are zero throughout."""

    about = "defaults and zero fill"

    def __init__(self) -> None:
        self.zero: dict[str, bool] = {}
        self.all_rows: dict[str, Ranges] = {}
        self.values: dict[str, int] = {}
        self.hits: dict[tuple[str, float], Ranges] = {}
        self.other: dict[tuple[str, float], set[float]] = {}
        self.near: dict[tuple[str, float], Neighbours] = {}
        self.rows_with: dict[str, int] = {}
        self.blank = Ranges()
        self.blank_possible = False
        self.rows = 0

    def feed(self, view: View) -> None:
        """Read one batch."""
        self.rows += view.rows
        for role in NEVER_ALL_ZERO:
            column = view.column(role)
            if column is None or column.kind not in {Kind.INT, Kind.FLOAT} or not len(np.asarray(column.flat)):
                continue
            flat = np.asarray(column.flat)
            self.values[role] = self.values.get(role, 0) + len(flat)
            self.zero[role] = self.zero.get(role, True) and not flat.any()
            if self.zero[role]:
                self.all_rows.setdefault(role, Ranges()).add(view.path, view.records)
        self._defaults(view)
        self._blank(view)

    def _defaults(self, view: View) -> None:
        ends = [view.flag(role) for role in ("terminated", "truncated", "done")]
        ended = (
            np.any([flag for flag in ends if flag is not None], axis=0)
            if any(flag is not None for flag in ends)
            else np.zeros(view.rows, np.bool_)
        )
        for role in CONTINUOUS:
            number = view.number(role)
            if number is None:
                continue
            there = np.isfinite(number)
            self.rows_with[role] = self.rows_with.get(role, 0) + int(there.sum())
            for default in DEFAULTS:
                hit = there & (number == default) & ~ended
                if hit.any():
                    self.hits.setdefault((role, default), Ranges()).add(view.path, view.records[hit])
                others = self.other.setdefault((role, default), set())
                if len(others) < 64:
                    others.update(number[there & (number != default)][:64].tolist())
                self.near.setdefault((role, default), Neighbours(default)).read(number[there])

    def _blank(self, view: View) -> None:
        """Rows in which observation, action and log-prob are all zero, while other rows are not."""
        columns = [view.column(role) for role in ("logprob", "obs")]
        zero = np.ones(view.rows, np.bool_)
        for column in columns:
            if column is None or column.kind not in {Kind.INT, Kind.FLOAT} or len(np.asarray(column.counts)) != view.rows:
                return
            counts = np.asarray(column.counts)
            nonzero = per_row(np.asarray(column.flat) != 0, counts)
            zero &= (nonzero == 0) & (counts > 0)
            if not zero.any():
                break
        self.blank_possible = True
        self.blank.add(view.path, view.records[zero])

    def answer(self, case: Case) -> Iterator[Finding]:
        """Zero throughout; the same default in a minority of records; blank rows."""
        for role, zero in self.zero.items():
            if zero and self.values[role] >= 8 and role in {"value", "obs", "next_obs", "entropy"}:
                yield case.finding(
                    "GYR304",
                    f"`{case.roles.key(role)}` is 0 in all {self.rows} records: zero fill, or never computed",
                    where=self.all_rows.get(role),
                    role=role,
                    severity=Severity.WARNING,
                )
            elif zero and self.values[role] >= 8 and role == "advantage" and not case.roles.key("group_id"):
                yield case.finding(
                    "GYR340",
                    f"no learning signal: `{case.roles.key(role)}` is 0 in all {self.rows} records",
                    where=self.all_rows.get(role),
                    role=role,
                    side="training",
                    severity=Severity.WARNING,
                )
        if self.blank_possible and self.blank and self.blank.rows < 0.9 * self.rows:
            text = f"{self.blank.rows} of {self.rows} records have an all-zero `{case.roles.key('obs')}` and log-prob 0: placeholder rows"
            yield case.finding("GYR336", text, where=self.blank, role="obs", severity=Severity.WARNING)
            return
        for (role, default), where in self.hits.items():
            rows = self.rows_with.get(role, 0)
            others = self.other[role, default]
            fine = sum(1 for x in others if not float(x * 4).is_integer())
            if (
                role in {"advantage", "reward", "return"}
                or where.rows < 2
                or where.rows > 0.5 * rows
                or len(others) < 8
                or fine < 0.9 * len(others)
                or not self.near[role, default].stands_out(where.rows)
            ):
                continue
            if role == "logprob" and default == 0.0:
                continue  # judged with the log-probs
            text = (
                f"`{case.roles.key(role)}` is exactly {show(default)} at {where.rows} of {rows} records and varies in all "
                "others: a default in place of a measurement"
            )
            yield case.finding("GYR304", text, where=where, role=role, severity=Severity.WARNING)
