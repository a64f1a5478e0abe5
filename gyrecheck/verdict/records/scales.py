"""Observations of two scales in one file: some rows divided by the largest value a byte holds, others not; or one side of a transition only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.fields import Kind
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.rulebook.record_limits import load_record_limits
from gyrecheck.verdict.records.question import Case, Question, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import Bools, Floats, Ints, View, per_row


class Scales(Question):
    """Rows whose observation lies in [-1, 1] beside rows of the same field that hold whole numbers up to 255 or more."""

    about = "scale of observations"
    needs = (("obs",),)

    def __init__(self) -> None:
        self.scaled: dict[str, Ranges] = {}
        self.raw: dict[str, Ranges] = {}
        self.top: dict[str, float] = {}
        self.apart = Ranges()
        self.both = 0
        self.seen: tuple[float, float] = (0.0, 0.0)

    def feed(self, view: View) -> None:
        """Read one batch."""
        limit = load_record_limits().raw_scale
        found = {role: _numbers(view, role) for role in ("obs", "next_obs")}
        found = {role: (flat, counts) for role, (flat, counts) in found.items() if len(counts)}
        for role in found:
            self.raw.setdefault(role, Ranges())
            self.scaled.setdefault(role, Ranges())
        if all(counts.min() == counts.max() and flat.max() < limit for flat, counts in found.values()):  # no row can be raw, in most files
            for role, (flat, _) in found.items():
                self.scaled[role].add(view.path, view.records[_within_one(flat.reshape(view.rows, -1))])
            self.both += view.rows if len(found) == 2 else 0
            return
        tops: dict[str, Floats] = {}
        for role, (flat, counts) in found.items():
            tops[role], whole = _tops(flat, counts)
            raw, scaled = whole & (tops[role] >= limit), ~whole & (tops[role] > 0) & (tops[role] <= 1.0)
            self.raw[role].add(view.path, view.records[raw])
            self.scaled[role].add(view.path, view.records[scaled])
            self.top[role] = max(self.top.get(role, 0.0), float(tops[role][raw].max(initial=0.0)))
        if len(tops) == 2:
            low, high = np.minimum(*tops.values()), np.maximum(*tops.values())
            there = low > 0
            self.both += int(there.sum())
            wide = there & (low <= 1.0) & (high >= limit)
            if wide.any():
                self.seen = (float(tops["obs"][wide][0]), float(tops["next_obs"][wide][0]))
            self.apart.add(view.path, view.records[wide])

    def answer(self, case: Case) -> Iterator[Finding]:
        """One finding: both sides of a transition apart, or rows of one field."""
        least = load_record_limits().scaled_rows
        if self.apart.rows >= least and self.apart.rows * 2 > self.both:
            obs, after = case.roles.key("obs"), case.roles.key("next_obs")
            text = (
                f"`{obs}` reaches {show(self.seen[0])} and `{after}` {show(self.seen[1])} in the same record, at {self.apart.rows} of "
                f"{self.both}: one of the two is scaled, the other is not"
            )
            yield case.finding("GYR306", text, where=self.apart, role="next_obs", severity=Severity.WARNING)
            return
        for role, raw in self.raw.items():
            scaled = self.scaled[role]
            if min(raw.rows, scaled.rows) < least:
                continue
            fewer = raw if raw.rows < scaled.rows or (raw.rows == scaled.rows) else scaled
            text = (
                f"`{case.roles.key(role)}` has two scales: whole numbers up to {show(self.top[role])} at {raw.rows} records, values within 1 "
                f"at {scaled.rows}: it was divided on one path and not on the other"
            )
            yield case.finding("GYR306", text, where=fewer, role=role, severity=Severity.WARNING)
            return


def _numbers(view: View, role: str) -> tuple[Floats, Ints]:
    """([numbers] finite, [rows] how many of them each) of observations of several numbers; two empty arrays where there are none."""
    column = view.column(role)
    if column is None or column.kind not in {Kind.INT, Kind.FLOAT, Kind.MIXED}:
        return np.zeros(0), np.zeros(0, np.int64)
    counts = np.asarray(column.counts)
    if counts.max(initial=0) < 3:
        return np.zeros(0), np.zeros(0, np.int64)
    flat = np.asarray(column.flat)
    return (np.nan_to_num(flat) if flat.dtype.kind == "f" and not np.isfinite(flat.min() + flat.max()) else flat), counts


def _within_one(values: Floats) -> Bools:
    """[rows] which of [rows, numbers] lie within [-1, 1] with a number below 0 or a fraction; most rows are known by their first numbers."""
    rows = np.arange(len(values))
    for place in range(values.shape[1] if values.max() > 1 or values.min() < -1 else 0):
        rows = rows[np.abs(values[rows, place]) <= 1]
    found = np.zeros(len(values), np.bool_)
    for place in range(values.shape[1]):
        if not len(rows):
            break
        broken = _broken(values[rows, place])
        found[rows[broken]] = True
        rows = rows[~broken]
    return found


def _tops(flat: Floats, counts: Ints) -> tuple[Floats, Bools]:
    """([rows] largest magnitude, [rows] whether all its values are whole and none below 0)."""
    filled = counts > 0
    top = np.zeros(len(counts))
    starts = (np.cumsum(counts) - counts)[filled]
    top[filled] = np.maximum(np.maximum.reduceat(flat, starts).astype(np.float64), -np.minimum.reduceat(flat, starts).astype(np.float64))
    return top, (per_row(_broken(flat), counts) == 0) & (counts >= 3)


def _broken(values: Floats) -> Bools:
    """Which numbers are below 0 or have a fraction."""
    if values.dtype.kind == "f":
        return np.asarray((values != np.floor(values)) | (values < 0))
    return np.asarray(values < 0)
