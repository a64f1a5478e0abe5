"""Which of the first two axes is time and which is the batch, told by evidence: step numbers, episode ids, flags, per-trajectory fields.

An axis order is never assumed: without evidence, or with evidence for both, the order stays empty and the reasons say so. Imports numpy:
import this module inside the function that calls it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from gyrecheck.model.field_sides import Layout, SideField
from gyrecheck.model.fields import Array, Level
from gyrecheck.rulebook.contract import Contract

PER_STEP = ("reward", "logprob", "action", "done", "terminated", "truncated", "value", "step", "mask", "tokens", "obs", "advantage")
Anything = npt.NDArray[np.generic]


def tell_layout(fields: Iterable[SideField], arrays: Mapping[str, Array], contract: Contract) -> Layout:
    """The order of the first two axes of the per-step fields.

    `arrays` maps keys to whole arrays. Fields with one axis only are rows of steps: order `N`.
    """
    known = {field.role: field for field in fields if field.role and field.shape is not None}
    lead = leading_axes(known)
    if lead is None:
        return Layout()
    if lead == 1:
        size = next(f.shape[0] for role, f in known.items() if role in PER_STEP and f.shape)
        return Layout("N", reasons=(f"one row a step ({size} rows)",))
    sizes = next(f.shape[:2] for role in PER_STEP if (f := known.get(role)) is not None and f.shape is not None and len(f.shape) >= 2)
    if -1 in sizes or any(f.shape is not None and len(f.shape) > 1 and f.shape[1] == -1 for f in known.values()):
        return Layout("BT", batch=sizes[0], time=-1, reasons=("lengths differ along the second axis, as trajectories' do",))
    tokens = known.get("tokens")
    if tokens is not None and tokens.shape is not None and len(tokens.shape) == 2:
        return Layout("BT", batch=sizes[0], time=sizes[1], reasons=(f"`{tokens.key}` holds one sequence a row",))
    votes: list[tuple[int, str]] = []
    for role, field in known.items():
        array = arrays.get(field.key)
        if array is not None and len(array.shape) >= 2 and tuple(array.shape[:2]) == tuple(sizes):
            votes += _votes(role, field.key, np.asarray(array))
        if field.shape is not None and len(field.shape) == 1 and sizes[0] != sizes[1]:
            spec = contract.roles.get(role)
            if spec is not None and spec.level is Level.RECORD and field.shape[0] in sizes:
                votes.append((1 - sizes.index(field.shape[0]), f"`{field.key}` has one value a trajectory, [{field.shape[0]}]"))
    time_axes = {axis for axis, _ in votes}
    if len(time_axes) != 1:
        weak = _smoothness(known, arrays, sizes) if not votes else None
        if weak is not None:
            votes, time_axes = [weak], {weak[0]}
    if len(time_axes) != 1:
        first = tuple(text for axis, text in votes if axis == 0)
        second = tuple(text for axis, text in votes if axis == 1)
        return Layout("", reasons=first, against=second)
    axis = next(iter(time_axes))
    return Layout("TB" if axis == 0 else "BT", batch=sizes[1 - axis], time=sizes[axis], reasons=tuple(text for _, text in votes))


def leading_axes(known: Mapping[str, SideField]) -> int | None:
    """1 where per-step scalars have one axis (rows of steps), 2 where they have two; None when no per-step field is there."""
    scalars = ("reward", "logprob", "done", "terminated", "truncated", "value", "step", "mask", "tokens", "advantage")
    counts = [len(known[role].shape or ()) for role in scalars if role in known and known[role].shape]
    if counts:
        return min(2, max(counts))
    obs = known.get("obs")
    if obs is None or not obs.shape:
        return None
    return 1 if len(obs.shape) <= 2 else 2


def _votes(role: str, key: str, array: Anything) -> list[tuple[int, str]]:
    """For each thing the field says: the time axis (0 or 1) and the evidence in words."""
    flat = array.reshape(*array.shape[:2], -1)[..., 0]
    if flat.dtype.kind not in "biuf":
        return []
    number = flat.astype(np.float64)
    found: list[tuple[int, str]] = []
    if role == "step":
        along = [float((np.diff(number, axis=axis) == 1).mean()) if number.shape[axis] > 1 else 0.0 for axis in (0, 1)]
        if max(along) > 0.8 and min(along) < 0.5:
            axis = int(np.argmax(along))
            found.append((axis, f"`{key}` counts up along the {_ordinal(axis)} axis"))
    elif role in {"episode_id", "trajectory_id", "env_id", "policy_version", "group_id", "sample_id"}:
        still = [float((np.diff(number, axis=axis) == 0).mean()) if number.shape[axis] > 1 else 0.0 for axis in (0, 1)]
        if max(still) > 0.5 and min(still) < 0.5 * max(still):
            axis = int(np.argmax(still))
            found.append((axis, f"`{key}` stays the same along the {_ordinal(axis)} axis"))
    elif role == "mask":
        falls = [bool((np.diff(number, axis=axis) <= 0).all()) for axis in (0, 1)]
        if falls[0] != falls[1] and number.min() < number.max():
            axis = int(np.argmax(falls))
            found.append((axis, f"`{key}` ends in padding along the {_ordinal(axis)} axis"))
    return found


def _smoothness(known: Mapping[str, SideField], arrays: Mapping[str, Array], sizes: tuple[int, ...]) -> tuple[int, str] | None:
    """Observations change less from step to step than from trajectory to trajectory: weak evidence, used alone."""
    obs = known.get("obs")
    array = arrays.get(obs.key) if obs is not None else None
    if obs is None or array is None or tuple(array.shape[:2]) != tuple(sizes) or min(sizes) < 3 or array.dtype.kind != "f":
        return None
    number = np.nan_to_num(np.asarray(array, dtype=np.float64))
    steps = [float(np.abs(np.diff(number, axis=axis)).mean()) for axis in (0, 1)]
    if max(steps) == 0.0 or min(steps) > 0.5 * max(steps):
        return None
    axis = int(np.argmin(steps))
    return axis, f"`{obs.key}` changes {max(steps) / max(min(steps), 1e-12):.1f} times less along the {_ordinal(axis)} axis, as time does"


def _ordinal(axis: int) -> str:
    return ("first", "second")[axis]
