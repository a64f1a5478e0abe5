"""Observations of two scales in one file: some rows divided by the largest value a byte holds, others not; or one side of a transition only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.fields import Kind
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.rulebook.record_limits import load_record_limits
from gyrecheck.verdict.records.question import Case, Question, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import Bools, Floats, View, per_row


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
        tops: dict[str, Floats] = {}
        for role in ("obs", "next_obs"):
            found = _tops(view, role)
            if found is None:
                continue
            top, whole = found
            tops[role] = top
            raw, scaled = whole & (top >= limit), ~whole & (top > 0) & (top <= 1.0)
            self.raw.setdefault(role, Ranges()).add(view.path, view.records[raw])
            self.scaled.setdefault(role, Ranges()).add(view.path, view.records[scaled])
            self.top[role] = max(self.top.get(role, 0.0), float(top[raw].max(initial=0.0)))
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


def _tops(view: View, role: str) -> tuple[Floats, Bools] | None:
    """([rows] largest magnitude, [rows] whether all its values are whole and none below 0) of observations of several numbers."""
    column = view.column(role)
    if column is None or column.kind not in {Kind.INT, Kind.FLOAT, Kind.MIXED}:
        return None
    counts = np.asarray(column.counts)
    if counts.max(initial=0) < 3:
        return None
    flat = np.asarray(column.flat)
    if flat.dtype.kind == "f" and not np.isfinite(flat.min() + flat.max()):
        flat = np.nan_to_num(flat)
    if counts.min() == counts.max():
        values = flat.reshape(view.rows, -1)
        top = np.maximum(values.max(axis=1).astype(np.float64), -values.min(axis=1).astype(np.float64))
        broken = _broken(values[:, 0])
        rest = np.flatnonzero(~broken)  # a fraction in its first place says enough of most rows
        broken[rest] = _broken(values[rest]).any(axis=1)
        return top, ~broken
    filled = counts > 0
    top = np.zeros(view.rows)
    top[filled] = np.maximum.reduceat(np.abs(flat.astype(np.float64)), (np.cumsum(counts) - counts)[filled])
    return top, (per_row(_broken(flat), counts) == 0) & (counts >= 3)


def _broken(values: Floats) -> Bools:
    """Which numbers are below 0 or have a fraction."""
    if values.dtype.kind == "f":
        return np.asarray((values != np.floor(values)) | (values < 0))
    return np.asarray(values < 0)
