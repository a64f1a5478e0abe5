"""Versions of the parts of a record (tokens, or segments of several tokens), and which of them the loss counts.

A list of versions may be numbers or texts (`"6"`, `"v6"`), one a token or one a segment with the segments' lengths beside it. A part all
of whose tokens are masked out does not count: its version is no matter to the loss.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from gyrecheck.model.fields import Column, Kind
from gyrecheck.verdict.records.view import Bools, Floats, Ints, View, per_row, rank


@dataclass(frozen=True, slots=True, eq=False)
class VersionList:
    """The P parts of all rows that have a version and count in the loss, in their order."""

    version: Floats
    """[P]"""
    row: Ints
    """[P] the row of each."""
    low: Floats
    """[rows] oldest, inf where a row has none."""
    high: Floats
    """[rows] newest, -inf where a row has none."""

    @property
    def told(self) -> Bools:
        """[rows] which rows have a version."""
        return np.asarray(np.isfinite(self.low))


def version_list(view: View, role: str) -> VersionList | None:
    """The list of versions under `role`; None where it is no list of versions. Negative entries (prompt tokens) do not count."""
    made = view.shared.get(f"versions {role}", "")
    if made == "":
        made = view.shared[f"versions {role}"] = _read(view, role)
    return made if isinstance(made, VersionList) else None


def _read(view: View, role: str) -> VersionList | None:
    column = view.column(role)
    if column is None or column.kind in {Kind.OBJECT, Kind.NONE} or rank(column) < 1:
        return None
    if column.texts is not None and int(np.asarray(column.counts).max(initial=0)) == 1:
        return None  # one text in brackets is one version
    flat = _numbers(column)
    if flat is None:
        return None
    counts = np.asarray(column.counts)
    row = np.repeat(np.arange(view.rows), counts)
    real = (flat >= 0) & counted_parts(view, counts)
    version, owner = flat[real], row[real]
    low, high = np.full(view.rows, np.inf), np.full(view.rows, -np.inf)
    np.minimum.at(low, owner, version)
    np.maximum.at(high, owner, version)
    return VersionList(version, owner, low, high)


def counted_parts(view: View, counts: Ints) -> Bools:
    """[parts] which parts hold a token that the mask counts; all where nothing tells. `counts` are each row's parts."""
    out = np.ones(int(counts.sum()), np.bool_)
    mask, sizes = view.column("mask"), view.column("segment_lengths")
    if mask is None or mask.kind not in {Kind.BOOL, Kind.INT, Kind.FLOAT}:
        return out
    on, tokens = view.counted("mask"), np.asarray(mask.counts)
    live = per_row(on, tokens) > 0  # a record that no loss counts keeps its versions
    if np.array_equal(tokens, counts) and not (counts == 1).all():
        return np.asarray(on | ~np.repeat(live, counts))
    row = np.repeat(np.arange(view.rows), counts)
    if sizes is None or sizes.kind is not Kind.INT or not np.array_equal(np.asarray(sizes.counts), counts):
        newest = np.zeros(len(out), np.bool_)
        newest[np.cumsum(counts)[counts > 0] - 1] = True
        return np.asarray(newest | ~_starts_masked(view, on, tokens)[row] | ~live[row])
    size = np.asarray(sizes.flat).astype(np.int64)
    if (size < 0).any() or not np.array_equal(np.bincount(row, size, view.rows), tokens):
        return out
    totals = np.concatenate(([0], np.cumsum(on)))
    ends = np.cumsum(size)
    return np.asarray((totals[ends] > totals[ends - size]) | ~live[row])


def _starts_masked(view: View, on: Bools, tokens: Ints) -> Bools:
    """[rows] rows whose first sampled token is masked out, so that without lengths only the newest part surely counts."""
    prompt = view.number("prompt_length")
    skip = np.nan_to_num(prompt).astype(np.int64) if prompt is not None else np.zeros(view.rows, np.int64)
    held = np.where(skip < tokens, skip, 0)
    at = np.minimum(np.cumsum(tokens) - tokens + held, max(len(on) - 1, 0))
    return np.asarray((tokens > 0) & ~on[at]) if len(on) else np.zeros(view.rows, np.bool_)


def _numbers(column: Column) -> Floats | None:
    """[values] the versions, NaN where there is none; texts must all have one stem."""
    if column.texts is None:
        return np.nan_to_num(np.asarray(column.flat).astype(np.float64), nan=-1.0) if column.kind in {Kind.INT, Kind.FLOAT} else None
    found = [re.fullmatch(r"([A-Za-z_\-. ]*)(\d{1,15})", text) if text else None for text in column.texts]
    if len({match.group(1) for match in found if match}) != 1 or not all(m for m, text in zip(found, column.texts, strict=True) if text):
        return None
    return np.array([float(match.group(2)) if match else -1.0 for match in found])
