"""Python values or arrays into columns: one row a record, every scalar in one flat array, shapes and nulls beside it.

No value is changed, rounded or filled: what numpy cannot hold as a number becomes NaN in `flat` and is told by `kind_of`, `holes` or
`texts`. Integers beyond 64 bits become float64.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from gyrecheck.model.fields import Column, Kind, Shape, State

ABSENT = object()
"""Stands for a key that the record does not have."""
_KIND_OF = {bool: Kind.BOOL, int: Kind.INT, float: Kind.FLOAT, str: Kind.TEXT, dict: Kind.OBJECT, list: Kind.OBJECT, type(None): Kind.NONE}
_RANK = (Kind.NONE, Kind.BOOL, Kind.INT, Kind.FLOAT, Kind.TEXT, Kind.OBJECT)
MAX_DEPTH = 12
"""Axes of a nested list that are opened; deeper ones count as an object."""


def column_of_values(key: str, values: list[Any]) -> Column:
    """A column from one Python value a row: scalars, nested lists, None, `ABSENT`. Dicts count as objects."""
    rows = len(values)
    types = set(map(type, values))
    if types <= {bool} or types <= {int} or types <= {float}:  # the common case: one scalar a row
        flat, kind = _numbers(values, types)
        return _plain(key, flat, kind, rows)
    present = [value for value in values if value is not ABSENT and value is not None]
    state = np.full(rows, int(State.PRESENT), np.int8)
    if len(present) != rows:
        state[[at for at, value in enumerate(values) if value is None]] = int(State.NULL)
        state[[at for at, value in enumerate(values) if value is ABSENT]] = int(State.ABSENT)
    shapes, shape_of, counts, scalars = _nested(present, 0)
    full_counts = np.zeros(rows, np.int64)
    full_shape = np.full(rows, -1, np.int32)
    where = state == int(State.PRESENT)
    full_counts[where] = counts
    full_shape[where] = shape_of
    return _assemble(key, rows, state, full_shape, shapes, full_counts, scalars)


def column_of_array(key: str, array: npt.NDArray[Any], dtype: str = "") -> Column:
    """A column from an array whose first axis is the row. Any numeric or bool dtype and byte order; text arrays become text.

    A structured, object or date array counts as objects: its rows are present and nothing of them is read.
    """
    rows = int(array.shape[0])
    shape: Shape = tuple(int(n) for n in array.shape[1:])
    name = "text" if array.dtype.kind in "US" else dtype or str(array.dtype.newbyteorder("="))
    size = int(np.prod(shape, dtype=np.int64))
    state = np.full(rows, int(State.PRESENT), np.int8)
    if array.dtype.kind in "US":
        texts = tuple(str(x) if array.dtype.kind == "U" else bytes(x).decode("utf-8", "replace") for x in array.reshape(-1))
        flat: npt.NDArray[Any] = np.full(len(texts), np.nan)
        return Column(
            key,
            Kind.TEXT,
            name,
            rows,
            state,
            np.zeros(rows, np.int32),
            (shape,),
            np.full(rows, size),
            flat,
            np.zeros(rows, np.int8),
            (Kind.TEXT,),
            texts,
        )
    if array.dtype.kind not in "biuf":
        zeros = np.zeros(rows, np.int64)
        return Column(
            key,
            Kind.OBJECT,
            name,
            rows,
            state,
            np.zeros(rows, np.int32),
            ((),),
            zeros,
            np.zeros(0),
            np.zeros(rows, np.int8),
            (Kind.OBJECT,),
        )
    kind = {"b": Kind.BOOL, "i": Kind.INT, "u": Kind.INT, "f": Kind.FLOAT}[array.dtype.kind]
    flat = native(array).reshape(-1)
    return Column(
        key,
        kind,
        name,
        rows,
        state,
        np.zeros(rows, np.int32),
        (shape,),
        np.full(rows, size, np.int64),
        flat,
        np.zeros(rows, np.int8),
        (kind,),
    )


def native(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same numbers contiguous, in this machine's byte order, at most 64 bits wide (half precision becomes float32)."""
    if array.dtype.kind == "f" and array.dtype.itemsize == 2:
        return np.ascontiguousarray(array, np.float32)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        return np.ascontiguousarray(array, np.float64)
    return np.ascontiguousarray(array, array.dtype.newbyteorder("="))


def _plain(key: str, flat: npt.NDArray[Any], kind: Kind, rows: int) -> Column:
    state = np.full(rows, int(State.PRESENT), np.int8)
    ones = np.ones(rows, np.int64)
    return Column(key, kind, kind.value, rows, state, np.zeros(rows, np.int32), ((),), ones, flat, np.zeros(rows, np.int8), (kind,))


def _numbers(values: list[Any], types: set[type]) -> tuple[npt.NDArray[Any], Kind]:
    if types == {bool}:
        return np.array(values, np.bool_), Kind.BOOL
    if types == {int}:
        try:
            return np.array(values, np.int64), Kind.INT
        except OverflowError:
            return np.array([_as_float(v) for v in values]), Kind.INT
    return np.array(values, np.float64), Kind.FLOAT


def _as_float(value: Any) -> float:  # noqa: ANN401 - a Python number of any size
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _nested(values: list[Any], depth: int) -> tuple[tuple[Shape, ...], npt.NDArray[np.int32], npt.NDArray[np.int64], list[Any]]:
    """Shapes, the shape of each value, its number of scalars, and all scalars, of values that may be nested lists."""
    types = set(map(type, values))
    if list not in types or depth >= MAX_DEPTH:
        return ((),), np.zeros(len(values), np.int32), np.ones(len(values), np.int64), values
    if types != {list}:
        return _mixed(values, depth)
    lengths = np.fromiter(map(len, values), np.int64, len(values))
    inner = list(chain.from_iterable(values))
    shapes, shape_of, counts, scalars = _nested(inner, depth + 1)
    return (*fold(lengths, shapes, shape_of, counts), scalars)


def fold(
    lengths: npt.NDArray[np.int64], shapes: tuple[Shape, ...], shape_of: npt.NDArray[np.int32], counts: npt.NDArray[np.int64]
) -> tuple[tuple[Shape, ...], npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Lists over items: from each list's length and its items' shapes and scalar counts, the same three for the lists."""
    if (
        len(lengths) and len(shapes) == 1 and -1 not in shapes[0] and lengths[0] and (lengths == lengths[0]).all()
    ):  # the common case: all alike
        shape = (int(lengths[0]), *shapes[0])
        return (shape,), np.zeros(len(lengths), np.int32), np.full(len(lengths), int(np.prod(shape)), np.int64)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    totals = np.concatenate(([0], np.cumsum(counts)))
    row_counts = totals[ends] - totals[starts]
    low = np.zeros(len(lengths), np.int64)
    ragged = np.zeros(len(lengths), np.bool_)
    filled = lengths > 0
    if filled.any():
        low[filled] = np.minimum.reduceat(shape_of, starts[filled])
        ragged[filled] = low[filled] != np.maximum.reduceat(shape_of, starts[filled])
    code = np.where(filled, np.where(ragged, len(shapes), low), len(shapes) + 1)
    kinds = len(shapes) + 2
    both = lengths * kinds + code
    if len(both) and (both == both[0]).all():
        pairs, inverse = both[:1], np.zeros(len(both), np.int64)
    else:
        pairs, inverse = np.unique(both, return_inverse=True)
    rank = max(map(len, shapes), default=0)
    made: list[Shape] = []
    for length, which in (divmod(int(pair), kinds) for pair in pairs):
        tail = shapes[which] if which < len(shapes) else (-1,) * max(rank, 1) if which == len(shapes) else ()
        made.append((int(length), *tail))
    return tuple(made), inverse.reshape(-1).astype(np.int32), row_counts


def _mixed(values: list[Any], depth: int) -> tuple[tuple[Shape, ...], npt.NDArray[np.int32], npt.NDArray[np.int64], list[Any]]:
    """As `_nested` for values of which some are lists and some are not: each side on its own, woven together again."""
    lists = [at for at, value in enumerate(values) if type(value) is list]
    shapes, shape_of, counts, _ = _nested([values[at] for at in lists], depth)
    all_shapes = (*shapes, ())
    full_of = np.full(len(values), len(shapes), np.int32)
    full_counts = np.ones(len(values), np.int64)
    full_of[lists] = shape_of
    full_counts[lists] = counts
    scalars: list[Any] = []
    for value in values:
        if type(value) is list:
            scalars.extend(_nested([value], depth)[3])
        else:
            scalars.append(value)
    return all_shapes, full_of, full_counts, scalars


def _assemble(
    key: str,
    rows: int,
    state: npt.NDArray[np.int8],
    shape_of: npt.NDArray[np.int32],
    shapes: tuple[Shape, ...],
    counts: npt.NDArray[np.int64],
    scalars: list[Any],
) -> Column:
    types = set(map(type, scalars))
    if len(types) == 1 and types <= {bool, int, float}:
        flat, kind = _numbers(scalars, types)
        return Column(key, kind, kind.value, rows, state, shape_of, shapes, counts, flat, np.zeros(rows, np.int8), (kind,))
    if not types:
        kind = Kind.NONE if not (state == int(State.PRESENT)).any() else Kind.FLOAT
        return Column(key, kind, kind.value, rows, state, shape_of, shapes, counts, np.zeros(0), np.zeros(rows, np.int8), (kind,))
    kinds_seen = [_KIND_OF.get(t, Kind.OBJECT) for t in types]
    holes = np.array([at for at, value in enumerate(scalars) if value is None], np.int64) if type(None) in types else None
    numeric = types & {bool, int, float}
    if numeric and types <= {bool, int, float, type(None)}:
        number = bool if numeric == {bool} and holes is None else float
        flat = np.array([np.nan if v is None else _as_float(v) for v in scalars], np.float64 if number is float else np.bool_)
        if numeric == {int} and holes is None:
            flat, _ = _numbers(scalars, {int})
    else:
        flat = np.array([_as_float(v) if isinstance(v, (bool, int, float)) else np.nan for v in scalars], np.float64)
    texts = tuple(v if isinstance(v, str) else None for v in scalars) if str in types else None
    ranked = sorted({k for k in kinds_seen if k is not Kind.NONE} | ({Kind.NONE} if types == {type(None)} else set()), key=_RANK.index)
    kind_of = _row_kinds(scalars, counts, ranked) if len(ranked) > 1 else np.zeros(rows, np.int8)
    merged = set(ranked)
    kind = ranked[0] if len(ranked) == 1 else Kind.FLOAT if merged == {Kind.INT, Kind.FLOAT} else Kind.MIXED
    return Column(key, kind, kind.value, rows, state, shape_of, shapes, counts, flat, kind_of, tuple(ranked), texts, holes)


def _row_kinds(scalars: list[Any], counts: npt.NDArray[np.int64], ranked: list[Kind]) -> npt.NDArray[np.int8]:
    """The highest-ranked kind of each row's scalars as an index into `ranked`; 0 for rows without scalars."""
    index = {kind: at for at, kind in enumerate(ranked)}
    codes = np.fromiter((index.get(_KIND_OF.get(type(v), Kind.OBJECT), 0) for v in scalars), np.int8, len(scalars))
    out = np.zeros(len(counts), np.int8)
    filled = counts > 0
    if filled.any():
        out[filled] = np.maximum.reduceat(codes, (np.cumsum(counts) - counts)[filled])
    return out
