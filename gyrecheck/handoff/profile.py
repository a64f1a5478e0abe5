"""What a file holds, key by key: kind, shapes, ranges, nulls, one example. One pass, constant memory, the same for every file type.

Mean and standard deviation (n in the divisor) are over finite numbers, merged batch by batch (Chan, Golub, LeVeque 1979).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from gyrecheck.model.fields import Column, FieldSeen, Kind, RecordBatch, Shape, State
from gyrecheck.rulebook.contract import RoleMap

KEPT_SHAPES = 16
PIECE = 1 << 15
EXAMPLE = 48
"""Characters of the example."""


class _Field:
    """One key's figures so far."""

    def __init__(self, key: str, rows_before: int) -> None:
        self.key = key
        self.kinds: dict[Kind, None] = {}
        self.dtypes: dict[str, None] = {}
        self.rows = rows_before
        self.absent = rows_before
        self.null = self.empty = self.values = self.holes = self.nan = self.infinite = self.zeros = 0
        self.count = 0
        self.mean = 0.0
        self.square = 0.0
        self.low: float | None = None
        self.high: float | None = None
        self.shapes: dict[Shape, list[int]] = {}
        self.first: object = None
        self.same = True
        self.example = ""

    def feed(self, batch: RecordBatch, column: Column) -> None:
        state, counts, of = np.asarray(column.state), np.asarray(column.counts), np.asarray(column.shape_of)
        self.rows += batch.rows
        present = state == int(State.PRESENT)
        there = int(np.count_nonzero(present))
        if there < batch.rows:
            self.null += int(np.count_nonzero(state == int(State.NULL)))
            self.absent += int(np.count_nonzero(state == int(State.ABSENT)))
        self.values += len(np.asarray(column.flat))
        if there:
            self.dtypes.setdefault(column.dtype)
            shown = (
                np.unique(np.asarray(column.kind_of)[present & (counts > 0)])
                if len(column.kinds) > 1
                else [0]
                if (counts > 0).any() or column.kind is Kind.OBJECT
                else []
            )
            self.kinds.update({column.kinds[int(at)]: None for at in shown})
            self._shapes(np.asarray(batch.records), column, of)
            if any(0 in shape for shape in column.shapes):
                self.empty += int((present & (counts == 0) & (of >= 0) & np.array([0 in s for s in column.shapes] + [False])[of]).sum())
            if not self.example:
                self.example = example(column, int(present.argmax()))
        if column.holes is not None:
            self.holes += len(np.asarray(column.holes))
        self._numbers(column)

    def _shapes(
        self, records: np.ndarray[tuple[int], np.dtype[np.int64]], column: Column, of: np.ndarray[tuple[int], np.dtype[np.int32]]
    ) -> None:
        if len(column.shapes) == 1:
            rows = of >= 0
            self._shape(column.shapes[0], int(rows.sum()), int(records[int(rows.argmax())]))
            return
        values, first, number = np.unique(of, return_index=True, return_counts=True)
        for at in np.argsort(first).tolist():
            if values[at] >= 0:
                self._shape(column.shapes[int(values[at])], int(number[at]), int(records[int(first[at])]))

    def _shape(self, shape: Shape, rows: int, record: int) -> None:
        if shape in self.shapes:
            self.shapes[shape][0] += rows
        elif len(self.shapes) < KEPT_SHAPES:
            self.shapes[shape] = [rows, record]

    def _numbers(self, column: Column) -> None:
        flat = np.asarray(column.flat)
        if column.texts is not None:
            known = {text for text in column.texts if text is not None}
            self._constant(next(iter(known)) if known else None, one=len(known) <= 1)
            if None not in column.texts:
                return
            flat = flat[~np.isnan(flat)]  # numbers among texts; nulls and texts stand as NaN there
        for begin in range(0, len(flat), PIECE):
            self._piece(flat[begin : begin + PIECE])
        if column.holes is not None and column.texts is None:
            self.nan -= len(np.asarray(column.holes))

    def _piece(self, part: npt.NDArray[Any]) -> None:
        """Some of the numbers, few enough that they stay in the processor's cache for all that is asked of them."""
        low, high = part.min(), part.max()
        if part.dtype.kind == "f" and not (math.isfinite(low) and math.isfinite(high)):
            finite = np.isfinite(part)
            nan = int(np.count_nonzero(np.isnan(part)))
            self.nan += nan
            self.infinite += len(part) - int(np.count_nonzero(finite)) - nan
            self.same = False
            part = part[finite]
            if not len(part):
                return
            low, high = part.min(), part.max()
        self._constant(float(low), one=bool(low == high))
        self.low = float(low) if self.low is None else min(self.low, float(low))
        self.high = float(high) if self.high is None else max(self.high, float(high))
        n = len(part)
        if low <= 0 <= high:
            self.zeros += int(np.count_nonzero(part == 0))
        with np.errstate(over="ignore", invalid="ignore"):
            values = part.astype(np.float64)
            values -= values[0]
            shift = float(values.sum()) / n  # about the first number: a mean far from 0 must not swallow the spread
            square = max(0.0, float(np.dot(values, values)) - n * shift * shift)
            mean = float(part[0]) + shift
            delta = mean - self.mean
            total = self.count + n
            self.square += square + delta * delta * self.count * n / total
            self.mean += delta * n / total
        self.count = total

    def _constant(self, value: object, *, one: bool) -> None:
        if self.first is None:
            self.first = value
        self.same = self.same and one and self.first == value

    def seen(self, rows: int, role: str) -> FieldSeen:
        kinds = list(self.kinds)
        kind = (
            Kind.NONE if not kinds else kinds[0] if len(kinds) == 1 else Kind.FLOAT if set(kinds) == {Kind.INT, Kind.FLOAT} else Kind.MIXED
        )
        return FieldSeen(
            key=self.key,
            role=role,
            kind=kind,
            dtype="/".join(self.dtypes),
            rows=rows,
            absent=self.absent + rows - self.rows,
            null=self.null,
            empty=self.empty,
            values=self.values,
            holes=self.holes,
            nan=self.nan,
            infinite=self.infinite,
            zeros=self.zeros,
            minimum=self.low,
            maximum=self.high,
            mean=self.mean if self.count else math.nan,
            std=math.sqrt(max(self.square, 0.0) / self.count) if self.count else math.nan,
            constant=kind is not Kind.MIXED and self.same and self.values >= 2 and self.first is not None and not self.holes,
            shapes=tuple((shape, number, first) for shape, (number, first) in self.shapes.items()),
            example=self.example,
        )


class Profile:
    """Feed batches in order, then take `seen`."""

    def __init__(self) -> None:
        self.rows = 0
        self._fields: dict[str, _Field] = {}

    def feed(self, batch: RecordBatch) -> None:
        """Read one batch."""
        for key, column in batch.columns.items():
            field = self._fields.get(key)
            if field is None:
                field = self._fields[key] = _Field(key, self.rows)
            elif field.rows < self.rows:
                field.absent += self.rows - field.rows
                field.rows = self.rows
            field.feed(batch, column)
        self.rows += batch.rows

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys in order of appearance."""
        return tuple(self._fields)

    def seen(self, roles: RoleMap | None = None) -> tuple[FieldSeen, ...]:
        """What was seen of each key."""
        known = roles.roles if roles is not None else {}
        return tuple(field.seen(self.rows, known.get(key, "")) for key, field in self._fields.items())


def profile(batches: Iterable[RecordBatch], roles: RoleMap | None = None) -> tuple[FieldSeen, ...]:
    """One pass over `batches`."""
    made = Profile()
    for batch in batches:
        made.feed(batch)
    return made.seen(roles)


def example(column: Column, row: int) -> str:
    """The row's value, cut to `EXAMPLE` characters."""
    counts = np.asarray(column.counts)
    start = int(counts[:row].sum())
    count = int(counts[row])
    which = int(np.asarray(column.shape_of)[row])
    shape = column.shapes[which] if which >= 0 else ()
    if column.texts is not None:
        values = [repr(text) for text in column.texts[start : start + min(count, 4)]]
    elif column.kind is Kind.BOOL:
        values = [str(bool(x)).lower() for x in np.asarray(column.flat)[start : start + min(count, 8)].tolist()]
    else:
        values = [f"{x:.6g}" for x in np.asarray(column.flat)[start : start + min(count, 8)].tolist()]
    if not shape:
        text = values[0] if values else ("{…}" if column.kind is Kind.OBJECT else "")
    else:
        text = "[" + ", ".join(values) + (", …" if count > len(values) else "") + "]"
    return text if len(text) <= EXAMPLE else text[: EXAMPLE - 1] + "…"


def shape_text(field: FieldSeen) -> str:
    """Shapes as people write them: `[24]`, `[24] to [25]`, `[6..128]` for lists of many lengths, `scalar`."""
    shapes = [shape for shape, _, _ in field.shapes]
    if not shapes:
        return "-"
    if len(shapes) == 1:
        return _brackets(shapes[0])
    if len({len(shape) for shape in shapes}) == 1:
        axes = []
        for axis in zip(*shapes, strict=True):
            low, high = min(axis), max(axis)
            axes.append(f"{low}" if low == high else f"{low}..{high}" if low >= 0 else "ragged")
        return "[" + ", ".join(axes) + "]"
    return " or ".join(_brackets(shape) for shape in shapes[:4])


def _brackets(shape: Shape) -> str:
    return "[" + ", ".join("ragged" if n < 0 else str(n) for n in shape) + "]" if shape else "scalar"
