"""Named arrays as rows: the first axis they share is the record. Read in blocks of constant size, so a file may be larger than memory.

Arrays of different first lengths are one trajectory (one record), as are observations with one more entry than rewards. Arrays [A, B, ...]
may be [time, batch] or [batch, time]; the axis along which `step` counts up, or `next_obs` chains to `obs`, is time. Without such
evidence no order of steps is judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gyrecheck.handoff.columns import column_of_array
from gyrecheck.model.errors import GyreError
from gyrecheck.model.fields import Column, RecordBatch
from gyrecheck.model.finding import Scalar
from gyrecheck.rulebook.contract import Contract

BLOCK = 8 << 20
"""Bytes of all arrays together in one batch."""
MAX_ROWS = 1 << 18
"""Rows in one batch: each row costs some 100 bytes of bookkeeping, however narrow it is."""
MAX_WHOLE = 512 << 20
"""Bytes that may be in memory at once where an array cannot be read in parts."""
MAX_KEYS = 4096
SIDE_BY_SIDE = ("reward", "terminated", "truncated", "done", "logprob", "value")


class Rows(Protocol):
    """An array that is read from its first axis on."""

    @property
    def shape(self) -> tuple[int, ...]:
        """All axes."""

    @property
    def dtype_name(self) -> str:
        """The file's dtype."""

    @property
    def row_bytes(self) -> int:
        """Bytes of one entry of the first axis."""

    def take(self, count: int) -> npt.NDArray[Any]:
        """The next `count` entries."""


class Whole:
    """An array in memory (or mapped), as `Rows`."""

    def __init__(self, array: npt.NDArray[Any], dtype_name: str = "") -> None:
        self._array = array
        self._at = 0
        self.dtype_name = dtype_name or str(array.dtype.newbyteorder("="))

    @property
    def shape(self) -> tuple[int, ...]:
        """All axes."""
        return tuple(int(n) for n in self._array.shape)

    @property
    def row_bytes(self) -> int:
        """Bytes of one entry of the first axis."""
        return (
            int(self._array.dtype.itemsize * np.prod(self._array.shape[1:], dtype=np.int64))
            if self._array.ndim
            else self._array.dtype.itemsize
        )

    def take(self, count: int) -> npt.NDArray[Any]:
        """The next `count` entries (a 0-d array as it is)."""
        if not self._array.ndim:
            return self._array
        part = self._array[self._at : self._at + count]
        self._at += count
        return part


def batches_of_arrays(
    path: str,
    arrays: Mapping[str, Rows],
    contract: Contract,
    notes: list[str],
    *,
    first: int = 1,
    header: Mapping[str, Scalar] | None = None,
    trajectories: bool = False,
) -> Iterator[RecordBatch]:
    """Batches of arrays that belong together; `first` is the number of their first record.

    `trajectories` says that the first axis is known to be trajectories, so that the second is time.

    Raises:
        GyreError: too many keys, or an array that cannot be read in parts is too large.
    """
    if len(arrays) > MAX_KEYS:
        raise GyreError(f"{path}: holds {len(arrays):,} arrays, expected at most {MAX_KEYS:,} fields")
    lead = {key: array.shape[0] for key, array in arrays.items() if array.shape}
    roles = contract.assign(arrays)
    if not lead:
        yield _one_record(path, arrays, first, header)
        return
    known = [lead[key] for key in roles.roles if key in lead] or list(lead.values())
    rows = max(set(known), key=lambda n: (known.count(n), n))
    odd = [key for key, n in lead.items() if n != rows]
    if any(key in roles.roles and not roles.roles[key].startswith("header") for key in odd):
        yield _one_record(path, arrays, first, header)
        return
    if odd:
        notes.append(
            f"{', '.join(f'`{key}` [{lead[key]}]' for key in odd[:5])}: another first axis than the {rows:,} rows, not a field of them"
        )
    kept = {key: array for key, array in arrays.items() if key not in odd}
    sides = [
        kept[key] for role in SIDE_BY_SIDE if (key := roles.key(role)) in kept and len(kept[key].shape) >= 2 and kept[key].shape[1] > 1
    ]
    if sides and "tokens" not in roles.keys and not trajectories:
        yield from _two_axes(path, kept, contract, first, header, notes)
        return
    yield from _in_blocks(path, kept, rows, first, header)


def _in_blocks(
    path: str, arrays: Mapping[str, Rows], rows: int, first: int, header: Mapping[str, Scalar] | None, axes: str = ""
) -> Iterator[RecordBatch]:
    width = max(sum(array.row_bytes for array in arrays.values() if array.shape), 1)
    if width > MAX_WHOLE:
        raise GyreError(f"{path}: one record takes {width >> 20:,} MiB, more than the {MAX_WHOLE >> 20} MiB that are read at once")
    step = max(1, min(MAX_ROWS, BLOCK // width))
    fixed = {key: array.take(1) for key, array in arrays.items() if not array.shape}
    at = 0
    while at < rows or (rows == 0 and at == 0):
        count = min(step, rows - at)
        columns: dict[str, Column] = {}
        for key, array in arrays.items():
            if key in fixed:
                columns[key] = column_of_array(key, np.broadcast_to(fixed[key], (count,)), array.dtype_name)
                continue
            part = array.take(count)
            if part.shape[0] != count:
                raise GyreError(f"{path}: array `{key}` ends at row {at + part.shape[0]} of {rows}: the file is cut off")
            columns[key] = column_of_array(key, part, array.dtype_name)
        _add_header(columns, header, count)
        yield RecordBatch(path, count, np.arange(first + at, first + at + count), columns, dict(header or {}), axes)
        at += max(count, 1)


def _one_record(path: str, arrays: Mapping[str, Rows], first: int, header: Mapping[str, Scalar] | None) -> RecordBatch:
    whole = {key: _load(path, key, array) for key, array in arrays.items()}
    columns = {key: column_of_array(key, array[np.newaxis], arrays[key].dtype_name) for key, array in whole.items()}
    _add_header(columns, header, 1)
    return RecordBatch(path, 1, np.array([first]), columns, dict(header or {}))


def _load(path: str, key: str, array: Rows) -> npt.NDArray[Any]:
    size = array.row_bytes * (array.shape[0] if array.shape else 1)
    if size > MAX_WHOLE:
        raise GyreError(
            f"{path}: array `{key}` takes {size >> 20:,} MiB as one record, more than the {MAX_WHOLE >> 20} MiB that are read at once"
        )
    return array.take(array.shape[0] if array.shape else 1)


def _two_axes(
    path: str, arrays: Mapping[str, Rows], contract: Contract, first: int, header: Mapping[str, Scalar] | None, notes: list[str]
) -> Iterator[RecordBatch]:
    """Arrays [A, B, ...] of steps: rows are made the batch axis where the time axis can be told."""
    rows = next(array.shape[0] for array in arrays.values() if array.shape)
    total = sum(array.row_bytes * rows for array in arrays.values() if array.shape)
    if total > MAX_WHOLE:
        yield from _in_blocks(path, arrays, rows, first, header, "undecided")
        return
    whole = {key: (array.take(rows) if array.shape else array.take(1)) for key, array in arrays.items()}
    names = {key: arrays[key].dtype_name for key in arrays}
    time = time_axis(whole, contract)
    if time is None:
        notes.append("which axis is time, since no field tells time from batch; order of steps and ends of episodes were not judged")
    if time == 0:
        sides = next(a.shape[1] for key, a in whole.items() if a.ndim >= 2 and contract.assign(whole).roles.get(key) in SIDE_BY_SIDE)
        whole = {
            key: np.swapaxes(a, 0, 1) if a.ndim >= 2 and a.shape[1] == sides else np.broadcast_to(a, (sides, *a.shape)) if a.ndim else a
            for key, a in whole.items()
        }
        notes.append(f"arrays are [time, batch, ...] = [{rows}, {sides}]: each of the {sides} columns was read as one record")
        rows = sides
    again = {key: Whole(array, names[key]) for key, array in whole.items()}
    yield from _in_blocks(path, again, rows, first, header, {None: "undecided", 0: "swapped"}.get(time, ""))


def time_axis(arrays: Mapping[str, npt.NDArray[Any]], contract: Contract) -> int | None:
    """0 or 1 where the step counts up or the next observation chains along that axis, and not along the other; None when nothing tells."""
    roles = contract.assign(arrays)
    step = arrays.get(roles.key("step"))
    if step is not None and step.ndim >= 2 and step.dtype.kind in "iu" and min(step.shape[:2]) > 1:
        one, other = (np.diff(step.astype(np.int64), axis=axis) for axis in (0, 1))
        up = [float((change == 1).mean()) for change in (one, other)]
        if max(up) > 0.5 and min(up) < max(up) / 2:
            return int(np.argmax(up))
    obs, after = arrays.get(roles.key("obs")), arrays.get(roles.key("next_obs"))
    if (
        obs is not None
        and after is not None
        and obs.shape == after.shape
        and obs.ndim >= 2
        and min(obs.shape[:2]) > 1
        and obs.dtype.kind in "iuf"
    ):
        hits = [float((after[:-1] == obs[1:]).mean()), float((after[:, :-1] == obs[:, 1:]).mean())]
        if max(hits) > 0.5 and min(hits) < max(hits) / 2:
            return int(np.argmax(hits))
    return None


def _add_header(columns: dict[str, Column], header: Mapping[str, Scalar] | None, rows: int) -> None:
    for key, value in (header or {}).items():
        columns.setdefault(f"header.{key}", column_of_array(f"header.{key}", np.broadcast_to(np.asarray(value), (rows,))))
