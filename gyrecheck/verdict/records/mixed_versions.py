"""More than one policy version where one is expected: inside a trajectory, or in one training batch; and versions that go back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.question import Case, Question, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.token_versions import TokenVersions
from gyrecheck.verdict.records.version_lists import VersionList, version_list
from gyrecheck.verdict.records.versions import listed, told
from gyrecheck.verdict.records.view import Ints, View


class MixedVersions(Question):
    """More than one policy version in one trajectory or one training batch."""

    about = "mixed versions"
    needs = (("policy_version",),)

    def __init__(self) -> None:
        self.inside = Ranges()
        self.inside_seen: list[tuple[int, str]] = []
        self.backward = Ranges()
        self.backward_seen: list[tuple[int, str]] = []
        self.span = Ranges()
        self.refused = Ranges()
        self.tokens = TokenVersions()
        self.trajectories: dict[Any, Any] = {}
        self.mixed = Ranges()
        self.apart = 0.0
        self.mixed_seen: list[tuple[int, str]] = []
        self.batches: dict[Any, dict[Any, int]] = {}
        self.batch_records: dict[Any, Ranges] = {}
        self.limit: float = np.nan

    def feed(self, view: View) -> None:
        """Read one batch."""
        parts = version_list(view, "policy_version")
        if parts is not None:
            self._lists(view, parts)
            return
        labels = view.labels("policy_version")
        if labels is None:
            return
        self.tokens.read(view)
        self._trajectories(view, labels)
        self._batches(view, labels)
        limit = view.number("max_lag")
        if limit is not None and np.isfinite(limit).any():
            self.limit = float(np.nanmax(limit))

    def _lists(self, view: View, parts: VersionList) -> None:
        flat, row = parts.version, parts.row
        same = row[1:] == row[:-1]
        for wrong, where, seen in (
            (same & (flat[1:] > flat[:-1]), self.inside, self.inside_seen),
            (same & (flat[1:] < flat[:-1]), self.backward, self.backward_seen),
        ):
            if wrong.any():
                rows = np.unique(row[1:][wrong])
                where.add(view.path, view.records[rows])
                at = int(wrong.argmax())
                seen.append((int(view.records[row[at]]), f"{show(flat[at])} then {show(flat[at + 1])}"))
                self._refused(view, rows)

    def _refused(self, view: View, rows: Ints) -> None:
        """Rows that hold several versions although they say that none is resumed under other weights."""
        allowed = view.column("mixing_allowed")
        if allowed is not None and (value := view.number("mixing_allowed")) is not None:
            off = rows[value[rows] == 0]
            self.refused.add(view.path, view.records[off])

    def _trajectories(self, view: View, labels: list[Any]) -> None:
        end = view.labels("policy_version_end")
        before, after = view.integer("policy_version"), view.integer("policy_version_end")
        if before is not None and after is not None:
            fell = before[1] & after[1] & (after[0] < before[0]) & (after[0] >= 0)
            self.backward.add(view.path, view.records[fell])
            self.backward_seen += [(int(view.records[i]), f"{before[0][i]} then {after[0][i]}") for i in np.flatnonzero(fell)[:5].tolist()]
        if end is not None:
            spans = np.array([a is not None and b is not None and a != b for a, b in zip(labels, end, strict=True)])
            self.span.add(view.path, view.records[spans])
            self._refused(view, np.flatnonzero(spans))
        ids = view.labels("trajectory_id")
        if ids is None or len(self.trajectories) > 1_000_000:
            return
        groups = view.labels("group_id") or [None] * view.rows  # members may be counted from 0 in each group
        for at, (name, version) in enumerate(zip(ids, labels, strict=True)):
            if name is None or version is None:
                continue
            known = self.trajectories.setdefault((name, groups[at]), version)
            if known != version:
                self.mixed.add(view.path, view.records[at : at + 1])
                apart = abs(version - known) if isinstance(version, (int, float)) and isinstance(known, (int, float)) else np.inf
                self.apart = max(self.apart, float(apart))
                if len(self.mixed_seen) < 5:
                    self.mixed_seen.append((int(view.records[at]), f"trajectory {name}: version {told(version)} after {told(known)}"))

    def _batches(self, view: View, labels: list[Any]) -> None:
        use, batch = view.labels("trainer_version"), view.labels("batch_id")
        if use is None and batch is None:
            return
        refused = view.flag("dropped")
        keys = list(zip(use or [None] * view.rows, batch or [None] * view.rows, strict=True))
        for at, (key, version) in enumerate(zip(keys, labels, strict=True)):
            if version is None or (refused is not None and refused[at]) or (key not in self.batches and len(self.batches) >= 2_000):
                continue
            self.batches.setdefault(key, {}).setdefault(version, 0)
            self.batches[key][version] += 1
            self.batch_records.setdefault(key, Ranges()).add(view.path, view.records[at : at + 1])

    def answer(self, case: Case) -> Iterator[Finding]:
        """Mixed versions; the higher the spread against the limit, the graver."""
        key = case.roles.key("policy_version")
        if self.backward:
            yield case.finding(
                "GYR415",
                f"`{key}` goes back inside a trajectory at {self.backward.rows} records: {self.backward_seen[0][1]}",
                where=self.backward,
                role="policy_version",
                evidence=self.backward_seen,
            )
        if self.inside:
            setting = case.roles.key("mixing_allowed")
            although = f", although `{setting}` is false at {self.refused.rows} of them" if self.refused else ""
            text = (
                f"version mixed inside a trajectory: `{key}` rises within {self.inside.rows} records "
                f"({self.inside_seen[0][1]}){although}; one ratio a trajectory does not hold for it"
            )
            severity = Severity.WARNING if self.refused else Severity.NOTE
            yield case.finding("GYR341", text, where=self.inside, role="policy_version", evidence=self.inside_seen, severity=severity)
        if self.span:
            yield case.finding(
                "GYR341",
                f"version mixed inside a trajectory: {self.span.rows} records span more than one policy version",
                where=self.span,
                role="policy_version_end",
                severity=Severity.WARNING if self.refused else Severity.NOTE,
            )
        if self.mixed:
            text = (
                f"version mixed inside a trajectory: steps of one trajectory carry different `{key}` at {self.mixed.rows} "
                f"records ({self.mixed_seen[0][1]})"
            )
            within = np.isfinite(self.limit) and self.apart <= self.limit  # each step says its own, and the trainer allows as much
            level = Severity.NOTE if within else None
            yield case.finding("GYR341", text, where=self.mixed, role="policy_version", evidence=self.mixed_seen, severity=level)
        yield from self.tokens.answer(case)
        worst = max(self.batches, key=lambda k: _spread(self.batches[k]), default=None)
        if worst is None or len(self.batches[worst]) < 2:
            return
        mixed = [k for k in self.batches if len(self.batches[k]) > 1]
        where = Ranges()
        for batch in mixed:
            where.add_all(self.batch_records[batch])
        versions_seen = sorted(self.batches[worst], key=str)
        spread = _spread(self.batches[worst])
        grave = np.isfinite(self.limit) and spread > self.limit
        many = f"{len(mixed)} training batches hold" if len(mixed) > 1 else "one training batch holds"
        limit = f", the limit on the lag is {show(self.limit)}" if np.isfinite(self.limit) else ""
        text = (
            f"version mixed in a batch: {many} more than one policy version, up to {len(versions_seen)} "
            f"({listed(versions_seen)}), {show(spread)} apart{limit}"
        )
        yield case.finding("GYR341", text, where=where, role="policy_version", severity=Severity.WARNING if grave else Severity.NOTE)


def _spread(versions_of: dict[Any, int]) -> float:
    numbers = [v for v in versions_of if isinstance(v, (int, float))]
    return float(max(numbers) - min(numbers)) if len(numbers) == len(versions_of) else float(len(versions_of) - 1)
