"""Group-relative advantages as formulas over one group's rewards [n], and when values agree with them.

A = a (r - b): b the group's mean or the mean of the others (leave-one-out), a = 1 or 1 / standard deviation (n or n - 1), with or
without an epsilon of 1e-4.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gyrecheck.model.fields import Kind
from gyrecheck.rulebook.record_limits import load_record_limits
from gyrecheck.verdict.records.view import Floats, View


def _mean(r: Floats) -> Floats:
    return np.asarray(r - r.mean())


def _leave_one_out(r: Floats) -> Floats:
    return (r - r.mean()) * (len(r) / (len(r) - 1)) if len(r) > 1 else r


def _scaled(ddof: int, epsilon: float) -> Callable[[Floats], Floats]:
    def model(r: Floats) -> Floats:
        spread = float(r.std(ddof=ddof)) if len(r) > ddof else 0.0
        return np.asarray((r - r.mean()) / (spread + epsilon)) if spread > 0 else r - r.mean()

    return model


MODELS: dict[str, Callable[[Floats], Floats]] = {
    "reward minus group mean": _mean,
    "leave-one-out": _leave_one_out,
    "divided by the group's standard deviation (n)": _scaled(0, 0.0),
    "divided by the group's standard deviation (n - 1)": _scaled(1, 0.0),
    "divided by the group's standard deviation (n) + 1e-4": _scaled(0, 1e-4),
    "divided by the group's standard deviation (n - 1) + 1e-4": _scaled(1, 1e-4),
}


def close(a: Floats, b: Floats, scale: float) -> bool:
    """Whether all values agree up to the file's rounding."""
    return bool((np.abs(a - b) <= load_record_limits().group_rounding * scale + 1e-4).all())


def same(values: Floats, scale: float) -> bool:
    """Whether all values are one."""
    return bool(np.ptp(values) <= 2 * (load_record_limits().group_rounding * scale + 1e-4))


def affine(r: Floats, a: Floats, scale: float) -> bool:
    """Whether advantage is a rising line over reward within the group."""
    if np.ptp(r) == 0:
        return same(a, scale)
    slope = float(np.cov(r, a, bias=True)[0, 1] / r.var())
    return slope > 0 and close(a, slope * (r - r.mean()) + a.mean(), scale)


def advantage_of(view: View) -> Floats:
    """[rows] one advantage a row: the scalar, or the one value that all counted tokens of a list share; NaN otherwise."""
    column = view.column("advantage")
    if column is None or column.kind in {Kind.TEXT, Kind.OBJECT, Kind.NONE}:
        return np.full(view.rows, np.nan)
    counts = np.asarray(column.counts)
    flat = np.asarray(column.flat).astype(np.float64)
    out = np.full(view.rows, np.nan)
    filled = counts > 0
    if not filled.any():
        return out
    starts = (np.cumsum(counts) - counts)[filled]
    low, high = np.minimum.reduceat(flat, starts), np.maximum.reduceat(flat, starts)
    positive, negative = (low == 0) & (high > 0), (high == 0) & (low < 0)
    inner = np.where(negative, low, high)
    nonzero_low = np.minimum.reduceat(np.where(flat == 0, np.inf, flat), starts)
    nonzero_high = np.maximum.reduceat(np.where(flat == 0, -np.inf, flat), starts)
    one = (low == high) | ((positive | negative) & (nonzero_low == nonzero_high))
    out[filled] = np.where(one, inner, np.nan)
    return out


def reward_of(view: View) -> Floats:
    """[rows] one reward a row: the scalar, or the sum of a list of rewards of tokens; NaN where there is none."""
    column, number = view.column("reward"), view.number("reward")
    if column is None or number is None:
        return np.full(view.rows, np.nan)
    counts = np.asarray(column.counts)
    if not view.has("tokens") or int(counts.max(initial=0)) < 2:
        return number
    row = np.repeat(np.arange(view.rows), counts)
    total = np.bincount(row, weights=np.asarray(column.flat).astype(np.float64), minlength=view.rows)
    return np.where(counts > 0, total, np.nan)
