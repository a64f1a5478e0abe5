"""Clock and sampling counter in the order of writing: each writer's only rise.

Parallel environments written one after the other are no fall: an episode may begin where the ones before it began.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gyrecheck.model.finding import Finding, Severity
from gyrecheck.rulebook.record_limits import load_record_limits
from gyrecheck.verdict.records.question import Case, Question, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import View


class WritingOrder(Question):
    """A clock that goes back, a count of sampling steps that starts again, in files that otherwise rise."""

    about = "order of writing"
    needs = (("wall_clock",), ("sample_step",))

    def __init__(self) -> None:
        self.last: dict[tuple[str, Any], tuple[float, int]] = {}
        self.rises: dict[str, list[float]] = {}
        self.count: dict[str, int] = {}
        self.falls: dict[str, list[tuple[str, int, float, float, int]]] = {}
        self.begun: dict[tuple[str, Any], tuple[Any, float]] = {}

    def feed(self, view: View) -> None:
        """Read one batch."""
        if not view.has("wall_clock") and not view.has("sample_step"):
            return
        writers = view.labels("env_id") or [None] * view.rows
        episodes = view.labels("episode_id") or [None] * view.rows
        for role in ("wall_clock", "sample_step"):
            number = view.number(role)
            if number is None:
                continue
            alone = len(set(writers)) == 1
            groups = {writers[0]: np.arange(view.rows)} if alone and view.rows else _by(writers)
            for name, rows in groups.items():
                self._one(view, role, name, rows[np.isfinite(number[rows])], number, episodes)

    def _one(self, view: View, role: str, name: Any, rows: Any, number: Any, episodes: list[Any]) -> None:  # noqa: ANN401 - a label and arrays
        if not len(rows):
            return
        before = self.last.get((role, name), (number[rows[0]], int(view.records[rows[0]])))
        series = np.concatenate(([before[0]], number[rows]))
        numbers = np.concatenate(([before[1]], view.records[rows]))
        change = np.diff(series)
        self.count[role] = self.count.get(role, 0) + len(rows)
        rises = self.rises.setdefault(role, [])
        if len(rises) < 10_000:
            rises += change[change > 0][:1000].tolist()
        falls = self.falls.setdefault(role, [])
        episode, lowest = self.begun.get((role, name), (episodes[rows[0]], float(series[0])))
        for at in np.flatnonzero(change < 0)[: max(0, 1000 - len(falls))].tolist():
            changed = episodes[rows[at]] != (episodes[rows[at - 1]] if at else episode)
            if not (changed and series[at + 1] >= lowest):
                falls.append((view.path, int(numbers[at + 1]), float(series[at]), float(series[at + 1]), int(numbers[at])))
        self.begun[role, name] = (episodes[rows[-1]], lowest)
        self.last[role, name] = (float(series[-1]), int(numbers[-1]))

    def answer(self, case: Case) -> Iterator[Finding]:
        """Rare falls that are larger than the usual rise."""
        for role, falls in self.falls.items():
            total = self.count[role]
            if (
                not falls
                or total < load_record_limits().ordered_records
                or len(falls) > max(1, load_record_limits().rare_falls * total)
                or not self.rises[role]
            ):
                continue
            usual = float(np.median(self.rises[role]))
            least = load_record_limits().clock_slack if role == "wall_clock" else 0.0
            large = [f for f in falls if f[2] - f[3] > max(load_record_limits().large_fall * usual, least * _per_second(f[2]))]
            if not large:
                continue
            where = Ranges()
            for path, record, _, _, _ in large:
                where.add(path, np.array([record]))
            seen = [(record, f"{show(a, 12)} at record {before}, then {show(b, 12)}") for _, record, a, b, before in large[:5]]
            text = (
                f"`{case.roles.key(role)}` goes back in the order of writing, {len(large)} times in {total} records: {seen[0][1]}; "
                "a counter that started again, or old records written again"
            )
            yield case.finding("GYR347", text, where=where, role=role, evidence=seen, severity=Severity.WARNING)


def _per_second(clock: float) -> float:
    """Units of a second that a time since the epoch is counted in: 1, or 1e3, 1e6, 1e9 where it is far too large for seconds."""
    return float(next((scale for scale in (1e9, 1e6, 1e3) if clock > 1e8 * scale), 1.0))


def _by(writers: list[Any]) -> dict[Any, Any]:
    rows: dict[Any, list[int]] = {}
    for at, name in enumerate(writers):
        rows.setdefault(name, []).append(at)
    return {name: np.array(found) for name, found in rows.items()}
