"""Columns of a batch as arrays of steps: [rows, D] where a row is a step, [N, D] where a row is a trajectory of several."""

from __future__ import annotations

from typing import Any

import numpy as np

from gyrecheck.model.fields import Column, Kind
from gyrecheck.verdict.records.view import Floats, Ints, View, rank


def numeric(column: Column) -> bool:
    """Whether a column holds numbers."""
    return column.kind not in {Kind.TEXT, Kind.OBJECT, Kind.NONE} and column.texts is None


def is_list(column: Column) -> bool:
    """Whether a row holds several values: [1] is a scalar with an axis too many."""
    return rank(column) >= 1 and bool(len(np.asarray(column.counts))) and int(np.asarray(column.counts).max()) > 1


def reordered(values: Any, order: Ints) -> Any:  # noqa: ANN401 - arrays of several dtypes or None
    """Values in another order; the very array where the order is the one they have."""
    if values is None or (len(order) and order[0] == 0 and order[-1] == len(order) - 1 and bool((np.diff(order) == 1).all())):
        return values
    return values[order]


def rows_of(view: View, role: str) -> Floats | None:
    """[rows, D], NaN rows where a row has no value; None where dimensions differ."""
    column = view.column(role)
    if column is None or not numeric(column):
        return None
    counts = np.asarray(column.counts)
    filled = counts > 0
    if not filled.any():
        return None
    width = int(counts[filled][0])
    if (counts[filled] != width).any():
        return None
    flat = np.asarray(column.flat).reshape(-1, width)
    if filled.all():
        return flat
    out = np.full((view.rows, width), np.nan)
    out[filled] = flat
    return out


def previous_in_lane(view: View) -> Ints:
    """[rows] the row before each in its own lane (`env_id`); -1 for a lane's first one. Without lanes all rows are one. Made once a batch."""
    if "previous" not in view.shared:
        view.shared["previous"] = _previous(lanes_of(view), view.rows)
    made: Ints = view.shared["previous"]
    return made


def lanes_of(view: View) -> list[Any] | None:
    """[rows] the lane of each row: its `env_id`, and its agent too where several agents of an environment act at one step. Made once a batch."""
    if "lanes" not in view.shared:
        view.shared["lanes"] = _lanes(view)
    made: list[Any] | None = view.shared["lanes"]
    return made


def _lanes(view: View) -> list[Any] | None:
    lanes, agents, step = view.labels("env_id"), view.labels("agent_id"), view.integer("step")
    if agents is None or step is None or not step[1].all():
        return lanes
    before = _previous(lanes, view.rows)
    pairs = np.flatnonzero(before >= 0)
    at_once = [at for at in pairs.tolist() if step[0][at] == step[0][before[at]] and agents[at] != agents[before[at]]]
    if len(at_once) * 3 < len(pairs) or not at_once:
        return lanes
    return [f"{lane}, {agent}" for lane, agent in zip(lanes if lanes is not None else [""] * view.rows, agents, strict=True)]


def _previous(lanes: list[Any] | None, rows: int) -> Ints:
    out = np.arange(-1, rows - 1)
    if lanes is None or not rows:
        return out
    table: dict[Any, int] = {}
    codes = np.fromiter((table.setdefault(lane, len(table)) for lane in lanes), np.int64, rows)
    order = np.argsort(codes, kind="stable")
    out[order] = np.where(np.diff(codes[order], prepend=-1) == 0, np.concatenate(([-1], order[:-1])), -1)
    return out


def list_rows(column: Column | None, counts: Ints) -> tuple[Floats | None, bool]:
    """[N, D] the observations of trajectories, and whether each holds one more at its end (which is left out)."""
    if column is None or not numeric(column):
        return None, False
    own = np.asarray(column.counts)
    lengths = np.array([*(shape[0] if shape else 0 for shape in column.shapes), 0], np.int64)[np.asarray(column.shape_of)]
    if not (counts > 0).any():
        return None, False
    flat = np.asarray(column.flat)
    for extra in (0, 1):
        if np.array_equal(lengths, counts + extra):
            width = own // np.maximum(lengths, 1)
            if (width != width[0]).any() or not width[0]:
                return None, False
            table = flat.reshape(-1, int(width[0]))
            if extra:
                keep = np.ones(len(table), np.bool_)
                keep[np.cumsum(lengths) - 1] = False
                table = table[keep]
            return table, bool(extra)
    return None, False
