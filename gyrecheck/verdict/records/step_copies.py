"""Steps of several environments side by side that no episode id tells apart: by an environment's id, or by how their observations chain.

A vectorised environment written time first puts the successor of row i at row i + k, k environments on. Where most rows chain so, and not to
their neighbour, row i belongs to copy i mod k.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gyrecheck.verdict.records.step_columns import lanes_of, rows_of
from gyrecheck.verdict.records.view import Bools, Floats, Ints, View

MOST_COPIES = 64
LEAST_PAIRS = 8
CHAINED = 0.9
"""Share of steps (ends left out) whose successor stands k rows on, from which the rows are k copies side by side."""


class Copies:
    """Codes of episodes, each copy's counted on from batch to batch."""

    def __init__(self) -> None:
        self._stride: int | None = None
        self._rows = 0
        self._open: dict[Any, tuple[int, bool, int]] = {}
        """Of each copy the number of its open episode, whether its last row ended it, and its last step."""

    def read(self, view: View, ends: Bools, step: Ints | None, code: Callable[[list[Any]], Ints]) -> Ints | None:
        """[rows] the code of each row's episode; None where the rows are one environment's, or nothing tells."""
        names = lanes_of(view)
        if names is not None and None not in names and len(set(names)) > 1:
            held = np.asarray(names)
            plain = held if held.dtype.kind in "biuf" else np.array([str(name) for name in names])
            _, first, copy = np.unique(plain, return_index=True, return_inverse=True)
            keys: list[Any] = [names[at] for at in first.tolist()]
        else:
            stride = self._copies(view, ends)
            if stride < 2:
                return None
            copy, keys = (self._rows + np.arange(view.rows)) % stride, list(range(stride))
        self._rows += view.rows
        return self._coded(np.asarray(copy, np.int64), keys, ends, step, code)

    def _copies(self, view: View, ends: Bools) -> int:
        if self._stride is None:
            obs, after = rows_of(view, "obs"), rows_of(view, "next_obs")
            if obs is None or after is None or obs.shape != after.shape:
                return 1
            self._stride = stride_of(obs, after, ~ends)
        return self._stride

    def _coded(self, copy: Ints, keys: list[Any], ends: Bools, step: Ints | None, code: Callable[[list[Any]], Ints]) -> Ints:
        out = np.empty(len(copy), np.int64)
        order = np.argsort(copy, kind="stable")
        if step is not None and goes_on(step, ends, copy):
            step = None
        heads = np.flatnonzero(np.diff(copy[order], prepend=-1))
        for rows in np.split(order, heads[1:]):
            name = keys[int(copy[rows[0]])]
            number, ended, last = self._open.get(name, (0, False, -1))
            before = np.concatenate(([ended], ends[rows][:-1]))
            begins = before if step is None else fallen(np.diff(step[rows], prepend=last), before)
            numbers = number + np.cumsum(begins)
            fresh = np.unique(numbers)
            out[rows] = code([(name, ("copy", int(n))) for n in fresh])[np.searchsorted(fresh, numbers)]
            self._open[name] = (int(numbers[-1]), bool(ends[rows[-1]]), int(step[rows[-1]]) if step is not None else -1)
        return out


def fallen(change: Ints, ended: Bools) -> Bools:
    """[N] where a step counter shows a new episode: it falls, or stands still behind an end (an episode of one step)."""
    return np.asarray((change < 0) | ((change == 0) & ended))


def goes_on(step: Ints, ends: Bools, copy: Ints | None = None) -> bool:
    """Whether a counter is the run's: it runs on through several ends and never falls, so only the ends tell episodes apart."""
    order = np.argsort(copy, kind="stable") if copy is not None else np.arange(len(step))
    change, same = np.diff(step[order]), np.diff(copy[order]) == 0 if copy is not None else np.ones(max(0, len(step) - 1), np.bool_)
    return int((ends[order][:-1] & same & (change > 0)).sum()) >= 2 and not bool((same & (change <= 0)).any())


def stride_of(obs: Floats, after: Floats, going: Bools) -> int:
    """How many rows on the successor of a row stands: the smallest number that fits `CHAINED` of the rows in `going`; 1 where none does."""
    rows = len(obs)
    for stride in range(1, min(MOST_COPIES, rows - LEAST_PAIRS) + 1):
        pairs = np.flatnonzero(going[: rows - stride])
        if len(pairs) < LEAST_PAIRS:
            return 1
        probe = pairs[:: max(1, len(pairs) // LEAST_PAIRS)]
        if (after[probe] == obs[probe + stride]).all(axis=1).mean() < CHAINED / 2:
            continue
        if (after[pairs] == obs[pairs + stride]).all(axis=1).mean() >= CHAINED:
            return stride
    return 1
