"""A batch in memory as one record batch: dicts of arrays, tensors, TensorDicts, dataclasses, or a list of records.

Nothing is moved before it is cut: at most a bounded number of rows is taken from each array, then brought to the CPU. torch, jax and
tensordict are told by their methods and never imported.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gyrecheck.handoff.columns import column_of_array, column_of_values
from gyrecheck.handoff.rows import batch_of_records
from gyrecheck.model.errors import GyreError
from gyrecheck.model.fields import Column, RecordBatch

NUMBERS = 1_000_000
"""Scalars taken of all fields together; bounds the cost of one check."""
NAME = "batch"
DEPTH = 6
"""Mappings inside mappings that are opened."""


def batch_of(
    value: object, *, rows: int = 4096, start: int = 0, time_major: bool = False
) -> tuple[RecordBatch, tuple[tuple[str, int, int], ...]]:
    """At most `rows` consecutive rows from row `start` on (wrapping to the first when beyond the end), and the fields of another length.

    The first axis of most fields is the row. A field with one row more (a bootstrapped value or observation) is cut to it; one value for
    the whole batch stands in every row; any other length is returned as (key, its length, the batch's length). With `time_major` the first
    two axes of every field that has two are exchanged first, so that a row is a trajectory.

    Raises:
        GyreError: the value holds no fields, or none with rows.
    """
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and value and all(isinstance(item, Mapping) for item in value):
        return _of_records([dict(item) for item in value], rows, start), ()
    leaves = dict(_leaves(value, "", 0))
    if not leaves:
        raise GyreError(
            f"a {type(value).__name__} is no batch: expected a mapping of arrays or tensors",
            hint="pass a dict, a TensorDict, or a list of dicts",
        )
    if time_major:
        leaves = {key: leaf.swapaxes(0, 1) if len(_shape(leaf)) > 1 else leaf for key, leaf in leaves.items()}
    lengths = {key: length for key, leaf in leaves.items() if (length := _length(leaf)) is not None}
    if not lengths:
        raise GyreError("the batch has no field with rows: every value is a scalar", hint="the first axis of each array is the row")
    total = Counter(lengths.values()).most_common(1)[0][0]
    if total == 0:
        raise GyreError("the batch is empty: its fields have 0 rows", hint="nothing checked is no pass")
    width = sum(_width(leaves[key]) for key, length in lengths.items() if length >= total)
    take = max(1, min(total, rows, max(64, NUMBERS // max(1, width))))
    first = start if 0 <= start < total else 0
    first = min(first, total - take)
    columns: dict[str, Column] = {}
    unlike: list[tuple[str, int, int]] = []
    for key, leaf in leaves.items():
        length = lengths.get(key)
        if length is None:
            columns[key] = column_of_values(key, [_plain(leaf)] * take)
        elif length in {total, total + 1}:
            columns[key] = _column(key, leaf, first, take)
        else:
            unlike.append((key, length, total))
    return RecordBatch(NAME, take, np.arange(first + 1, first + take + 1, dtype=np.int64), columns), tuple(unlike)


def _of_records(records: list[dict[str, Any]], rows: int, start: int) -> RecordBatch:
    first = start if 0 <= start < len(records) else 0
    chosen = [{key: _plain(item) for key, item in record.items()} for record in records[first : first + rows]]
    return batch_of_records(NAME, chosen, np.arange(first + 1, first + len(chosen) + 1, dtype=np.int64), frozenset())


def _leaves(value: object, prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    """All fields with dotted names; `batch` and `non_tensor_batch` of a batch object are opened without a name of their own."""
    inside: Any = value
    if not _is_array(value) and not _is_mapping(value):
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            inside = {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
        elif hasattr(value, "_asdict"):
            inside = value._asdict()
        elif hasattr(value, "non_tensor_batch") or _is_mapping(getattr(value, "batch", None)):
            for name in ("batch", "non_tensor_batch"):
                part = getattr(value, name, None)
                if part is not None:
                    yield from _leaves(part, prefix, depth + 1)
            return
    if _is_mapping(inside) and depth < DEPTH:
        for key in list(inside.keys()):
            name = ".".join(map(str, key)) if isinstance(key, tuple) else str(key)
            yield from _leaves(inside[key], f"{prefix}.{name}" if prefix else name, depth + 1)
    elif prefix:
        yield prefix, inside


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping) or (not _is_array(value) and callable(getattr(value, "keys", None)) and hasattr(value, "__getitem__"))


def _is_array(value: object) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype") and hasattr(value, "__getitem__")


def _shape(value: object) -> tuple[int, ...]:
    return tuple(int(n) for n in getattr(value, "shape", ())) if _is_array(value) else ()


def _length(value: object) -> int | None:
    """Rows of a field; None for one value that stands for the whole batch."""
    if _is_array(value):
        shape = _shape(value)
        return shape[0] if shape else None
    return len(value) if isinstance(value, (list, tuple)) else None


def _width(value: object) -> int:
    """Scalars a row."""
    return int(np.prod(_shape(value)[1:], dtype=np.int64)) if _is_array(value) else 16


def _column(key: str, value: Any, first: int, take: int) -> Column:  # noqa: ANN401 - arrays of any library
    if _is_array(value):
        try:
            held = _numpy(value[first : first + take])
        except (NotImplementedError, RuntimeError, TypeError) as error:
            kind = f"{getattr(value, 'layout', '')} on {getattr(value, 'device', 'its device')}".removeprefix("torch.").strip()
            raise GyreError(
                f"`{key}`: its values cannot be read ({kind})", hint="give a dense array on a device that holds values"
            ) from error
        return column_of_array(key, held, dtype=str(value.dtype).removeprefix("torch."))
    return column_of_values(key, [_plain(item) for item in value[first : first + take]])


def _plain(value: Any) -> Any:  # noqa: ANN401 - values of any library
    """Lists and scalars in place of arrays."""
    if _is_array(value):
        return _numpy(value).tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return {str(key): _plain(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def _numpy(value: Any) -> npt.NDArray[Any]:  # noqa: ANN401 - arrays of any library
    """The array on the CPU; bfloat16 and other dtypes that numpy lacks become float32."""
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        held = value.detach().cpu()
        try:
            return np.asarray(held.numpy())
        except TypeError:
            return np.asarray(held.float().numpy())
    array = np.asarray(value)
    return array if array.dtype.kind in "biufUSO" else array.astype(np.float32)
