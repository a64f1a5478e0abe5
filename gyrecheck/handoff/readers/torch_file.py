"""torch files (the zip form that `torch.save` writes): tensors and plain containers, rebuilt without torch and without running anything.

The pickle inside is read by an unpickler that knows only tensors, storages and `OrderedDict`; the first other name ends the reading.
"""

from __future__ import annotations

import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gyrecheck.handoff.pickle_names import first_class
from gyrecheck.handoff.readers.arrays import MAX_WHOLE, Rows, Whole, batches_of_arrays
from gyrecheck.handoff.readers.npz import refuse_bomb
from gyrecheck.handoff.readers.safetensors_file import Bfloat16
from gyrecheck.handoff.rows import batch_of_records
from gyrecheck.handoff.source import packing
from gyrecheck.model.errors import GyreError
from gyrecheck.model.fields import RecordBatch
from gyrecheck.rulebook.contract import Contract

STORAGES = {
    "FloatStorage": ("<f4", "float32"), "DoubleStorage": ("<f8", "float64"), "HalfStorage": ("<f2", "float16"),
    "BFloat16Storage": ("<u2", "bfloat16"),
    "LongStorage": ("<i8", "int64"), "IntStorage": ("<i4", "int32"), "ShortStorage": ("<i2", "int16"), "CharStorage": ("i1", "int8"),
    "ByteStorage": ("u1", "uint8"), "BoolStorage": ("?", "bool"), "UntypedStorage": ("u1", "uint8"),
}  # fmt: skip
MAX_PICKLE = 64 << 20
MAX_DEPTH = 12
BLOCK = 2048
LARGEST = 16 << 30


class _Storage:
    """Which file of the archive holds a tensor's numbers, and as what."""

    __slots__ = ("key", "kind")

    def __init__(self, kind: str, key: str) -> None:
        self.kind, self.key = kind, key


class _Tensor:
    """A strided window on a storage."""

    __slots__ = ("offset", "shape", "storage", "stride")

    def __init__(self, storage: _Storage, offset: int, shape: tuple[int, ...], stride: tuple[int, ...]) -> None:
        self.storage, self.offset, self.shape, self.stride = storage, offset, shape, stride


class _RefusedError(Exception):
    """The pickle names something that is neither a tensor nor a plain container."""


def _rebuild(storage: object, offset: int, shape: tuple[int, ...], stride: tuple[int, ...], *_: object) -> _Tensor:
    if not isinstance(storage, _Storage):
        raise _RefusedError("a tensor without storage")
    return _Tensor(storage, int(offset), tuple(map(int, shape)), tuple(map(int, stride)))


def _parameter(tensor: object, *_: object) -> object:
    return tensor


class _Reader(pickle.Unpickler):
    """Only what tensors are made of can be named."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - what the pickle asks for
        if module == "torch._utils" and name in {"_rebuild_tensor_v2", "_rebuild_tensor"}:
            return _rebuild
        if module == "torch._utils" and name in {"_rebuild_parameter", "_rebuild_parameter_with_state"}:
            return _parameter
        if module == "collections" and name == "OrderedDict":
            return OrderedDict
        if module == "torch" and name == "Size":
            return tuple
        if module in {"torch", "torch.storage"} and name in STORAGES:
            return name
        raise _RefusedError(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> Any:  # noqa: ANN401 - torch's tuple
        if not isinstance(pid, tuple) or len(pid) < 3 or pid[0] != "storage" or pid[1] not in STORAGES:
            raise _RefusedError("an unknown storage")
        return _Storage(str(pid[1]), str(pid[2]))


def read(path: Path, contract: Contract, notes: list[str]) -> Iterator[RecordBatch]:
    """Batches of the file's records: a dict of tensors, a list of dicts, or a dict with such a list under an opened key.

    Raises:
        GyreError: damaged, an old torch format, or a pickle that names another class.
    """
    if packing(path) or not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            name = first_class(file.read(1 << 20))
        raise GyreError(
            f"{path}: refuses to open without running code (no zip archive of torch.save{f'; pickled class {name}' if name else ''})",
            hint="save again with torch >= 1.6, tensors and plain containers only",
        )
    with zipfile.ZipFile(path) as archive:
        value = _load(path, archive)
        arrays = _Arrays(path, archive)
        yield from _batches(path, value, arrays, contract, notes)


def _load(path: Path, archive: zipfile.ZipFile) -> Any:  # noqa: ANN401 - plain containers and _Tensor
    info = next((i for i in archive.infolist() if i.filename.endswith("data.pkl")), None)
    if info is None or info.file_size > MAX_PICKLE:
        raise GyreError(f"{path}: holds no data.pkl that can be read; expected a file of torch.save")
    try:
        with archive.open(info) as stream:
            return _Reader(stream, encoding="utf-8").load()
    except _RefusedError as error:
        raise GyreError(
            f"{path}: refuses to open without running code (pickled class {error})",
            hint="save tensors and plain containers only, or export with handoff-safe keys",
        ) from None
    except RecursionError:
        raise GyreError(f"{path}: is nested too deeply to be records") from None
    except Exception as error:
        raise GyreError(f"{path}: holds a damaged pickle: {type(error).__name__}: {error}") from error


class _Arrays:
    """Tensors as arrays, each storage read once."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path, self._archive = path, archive
        self._prefix = next(i.filename for i in archive.infolist() if i.filename.endswith("data.pkl")).removesuffix("data.pkl")
        self._bytes: dict[str, bytes] = {}

    def rows(self, tensor: _Tensor) -> Rows:
        """The tensor as `Rows`, any stride."""
        code, name = STORAGES[tensor.storage.kind]
        data = self._storage(tensor.storage.key)
        kind = np.dtype(code)
        if tensor.shape and 0 in tensor.shape:
            return Whole(np.zeros(tensor.shape, "<f4" if name == "bfloat16" else kind), name)
        last = tensor.offset + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride, strict=True))
        if (
            any(n < 0 for n in tensor.shape)
            or any(s < 0 for s in tensor.stride)
            or tensor.offset < 0
            or (last + 1) * kind.itemsize > len(data)
        ):
            raise GyreError(
                f"{self._path}: a tensor {list(tensor.shape)} does not fit its storage of {len(data):,} bytes: the file is damaged"
            )
        flat = np.frombuffer(data, kind)
        strides = tuple(s * kind.itemsize for s in tensor.stride)
        array = np.lib.stride_tricks.as_strided(flat[tensor.offset :], tensor.shape, strides, writeable=False)
        items = int(np.prod(tensor.shape, dtype=np.int64))
        if items * kind.itemsize > MAX_WHOLE and items > flat.size:
            raise GyreError(
                f"{self._path}: a tensor {list(tensor.shape)} repeats its storage {items // max(flat.size, 1):,} times; not read"
            )
        return Bfloat16(np.ascontiguousarray(array)) if name == "bfloat16" else Whole(array, name)

    def array(self, tensor: _Tensor) -> npt.NDArray[Any]:
        """The tensor as one array."""
        rows = self.rows(tensor)
        return rows.take(rows.shape[0] if rows.shape else 1)

    def _storage(self, key: str) -> bytes:
        if key not in self._bytes:
            try:
                info = self._archive.getinfo(f"{self._prefix}data/{key}")
                refuse_bomb(self._path, f"storage {key}", info)
                if info.file_size > LARGEST:
                    raise GyreError(f"{self._path}: storage {key} takes {info.file_size:,} bytes, more than are read at once")
                self._bytes[key] = self._archive.read(info)
            except (KeyError, zipfile.BadZipFile, OSError) as error:
                raise GyreError(f"{self._path}: the numbers of a tensor are missing or damaged: {error}") from error
        return self._bytes[key]


def _batches(path: Path, value: Any, arrays: _Arrays, contract: Contract, notes: list[str]) -> Iterator[RecordBatch]:  # noqa: ANN401
    if isinstance(value, _Tensor):
        yield from batches_of_arrays(str(path), {path.name.split(".")[0]: arrays.rows(value)}, contract, notes)
        return
    if isinstance(value, (list, tuple)) and value and all(isinstance(item, dict) for item in value):
        yield from _records(path, list(value), arrays, contract)
        return
    if not isinstance(value, dict) or not value:
        raise GyreError(f"{path}: holds {type(value).__name__}, expected a dict of tensors or a list of records")
    inner = [
        item
        for key, item in value.items()
        if key in contract.opened and isinstance(item, (list, tuple)) and item and all(isinstance(x, dict) for x in item)
    ]
    if len(inner) == 1:
        outer = {str(k): v for k, v in value.items() if v is not inner[0] and isinstance(v, (int, float, str, bool))}
        yield from _records(path, [outer | item for item in inner[0]], arrays, contract)
        return
    flat: dict[str, Any] = {}
    _flatten("", value, flat, 0)
    tensors = {key: arrays.rows(item) for key, item in flat.items() if isinstance(item, _Tensor)}
    if not tensors:
        raise GyreError(f"{path}: holds no tensor; keys: {', '.join(list(flat)[:8])}")
    header = {key: item for key, item in flat.items() if isinstance(item, (int, float, str, bool))}
    lists = {key: item for key, item in flat.items() if isinstance(item, (list, tuple))}
    for key, item in lists.items():
        if (item and all(isinstance(x, (int, float, bool)) for x in item)) or (item and all(isinstance(x, str) for x in item)):
            tensors[key] = Whole(np.array(item))
        else:
            notes.append(f"`{key}`: a list that is no column, not read")
    yield from batches_of_arrays(str(path), tensors, contract, notes, header=header)


def _flatten(prefix: str, value: dict[Any, Any], out: dict[str, Any], depth: int) -> None:
    for key, item in value.items():
        name = f"{prefix}.{key}" if prefix else str(key)
        if isinstance(item, dict) and depth < MAX_DEPTH:
            _flatten(name, item, out, depth + 1)
        else:
            out[name] = item


def _records(path: Path, items: list[dict[str, Any]], arrays: _Arrays, contract: Contract) -> Iterator[RecordBatch]:
    for at in range(0, len(items), BLOCK):
        part = [{str(k): _plain(v, arrays, 0) for k, v in item.items()} for item in items[at : at + BLOCK]]
        yield batch_of_records(str(path), part, np.arange(at + 1, at + 1 + len(part)), contract.opened, parts=contract.words["parts"])


def _plain(value: Any, arrays: _Arrays, depth: int) -> Any:  # noqa: ANN401
    if isinstance(value, _Tensor):
        return arrays.array(value).tolist()
    if depth < MAX_DEPTH and isinstance(value, (list, tuple)):
        return [_plain(item, arrays, depth + 1) for item in value]
    if depth < MAX_DEPTH and isinstance(value, dict):
        return {str(k): _plain(v, arrays, depth + 1) for k, v in value.items()}
    return value if isinstance(value, (int, float, str, bool, type(None))) else {}
