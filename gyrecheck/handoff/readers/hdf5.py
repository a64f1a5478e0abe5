"""HDF5: D4RL (arrays at the root), Minari and robomimic (one group an episode, below `data` or at the root)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gyrecheck.handoff.readers.arrays import MAX_KEYS, Rows, batches_of_arrays
from gyrecheck.handoff.source import packing
from gyrecheck.model.errors import GyreError
from gyrecheck.model.fields import RecordBatch
from gyrecheck.model.finding import Scalar
from gyrecheck.rulebook.contract import Contract


class _Dataset:
    """A dataset, read by slices of its first axis."""

    def __init__(self, dataset: Any) -> None:  # noqa: ANN401 - h5py is untyped
        self._dataset = dataset
        self._at = 0
        self.shape: tuple[int, ...] = tuple(int(n) for n in dataset.shape)
        self.dtype_name = str(dataset.dtype.newbyteorder("=")) if dataset.dtype.kind != "O" else "text"
        items = 1
        for n in self.shape[1:]:
            items *= n
        self.row_bytes = int(dataset.dtype.itemsize) * items

    def take(self, count: int) -> npt.NDArray[Any]:
        """The next `count` entries."""
        part = self._dataset[()] if not self.shape else self._dataset[self._at : self._at + count]
        self._at += count
        array = np.asarray(part)
        if array.dtype.kind == "O":
            array = np.array([x.decode("utf-8", "replace") if isinstance(x, bytes) else str(x) for x in array.reshape(-1)]).reshape(
                array.shape
            )
        return array


def read(path: Path, contract: Contract, notes: list[str]) -> Iterator[RecordBatch]:
    """Batches of rows (arrays at the root), or one record an episode.

    Raises:
        GyreError: h5py is not installed, or the file is damaged.
    """
    try:
        import h5py
    except ModuleNotFoundError as error:
        raise GyreError(f"{path}: needs h5py to be read", hint="pip install 'gyrecheck[hdf5]'") from error
    if packing(path):
        raise GyreError(f"{path}: is a packed HDF5 file", hint="unpack it first")
    try:
        with h5py.File(path, "r") as file:
            yield from _read(path, file, contract, notes, h5py)
    except (OSError, RuntimeError, KeyError) as error:
        raise GyreError(f"{path}: is no whole HDF5 file: {str(error).splitlines()[0]}", hint="is it still being written?") from error


def _read(path: Path, file: Any, contract: Contract, notes: list[str], h5py: Any) -> Iterator[RecordBatch]:  # noqa: ANN401
    root = file["data"] if "data" in file and isinstance(file["data"], h5py.Group) else file
    groups = sorted((name for name in root if _local(root, name, h5py) and isinstance(root[name], h5py.Group)), key=_natural)
    episodes = [name for name in groups if re.fullmatch(r"(episode|demo|traj|trajectory|ep)[_-]?\d+", name)]
    if episodes:
        number = 1
        for name in episodes:
            arrays = _arrays(root[name], h5py)
            if arrays:
                header = {**_attributes(root[name]), "episode": name}
                episode = batches_of_arrays(str(path), _as_one(arrays), contract, notes, first=number, header=header, trajectories=True)
                for batch in episode:
                    yield batch
                    number += 1
        return
    arrays = _arrays(root, h5py)
    if not arrays:
        raise GyreError(f"{path}: holds no dataset; expected arrays at the root, or groups named episode_0 or demo_0")
    yield from batches_of_arrays(str(path), arrays, contract, notes, header=_attributes(file))


def _as_one(arrays: dict[str, Rows]) -> dict[str, Rows]:
    """The arrays with a first axis of length 1 before them: the whole episode is one record."""
    return {key: _Single(array) for key, array in arrays.items()}


class _Single:
    """An array as the one entry of an outer axis."""

    def __init__(self, array: Rows) -> None:
        self._array = array
        self.shape = (1, *array.shape)
        self.dtype_name = array.dtype_name
        self.row_bytes = array.row_bytes * (array.shape[0] if array.shape else 1)

    def take(self, count: int) -> npt.NDArray[Any]:
        """The whole array, once."""
        del count
        return self._array.take(self._array.shape[0] if self._array.shape else 1)[np.newaxis]


def _arrays(group: Any, h5py: Any) -> dict[str, Rows]:  # noqa: ANN401
    found: dict[str, Rows] = {}

    def visit(prefix: str, node: Any, depth: int) -> None:  # noqa: ANN401
        for name in node:
            if len(found) > MAX_KEYS or not _local(node, name, h5py):
                continue
            item = node[name]
            key = f"{prefix}.{name}" if prefix else name
            if isinstance(item, h5py.Dataset):
                if item.shape is not None and item.dtype.kind in "biufSUO":
                    found[key] = _Dataset(item)
            elif depth < 4:
                visit(key, item, depth + 1)

    visit("", group, 0)
    return found


def _local(group: Any, name: str, h5py: Any) -> bool:  # noqa: ANN401
    """Whether the link stays in this file: external links would open other files."""
    return isinstance(group.get(name, getlink=True), h5py.HardLink)


def _attributes(group: Any) -> dict[str, Scalar]:  # noqa: ANN401
    found: dict[str, Scalar] = {}
    for key, value in group.attrs.items():
        if isinstance(value, (bool, int, float, str, np.bool_, np.integer, np.floating)) and len(str(value)) <= 64:
            found[str(key)] = value.item() if isinstance(value, np.generic) else value
    return found


def _natural(name: str) -> tuple[tuple[int, int | str], ...]:
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", name) if part)
