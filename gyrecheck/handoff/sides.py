"""Both sides of a handoff in one form: trajectory files with whole arrays (bounded), or the trainer's source.

Nothing is converted: a file's shapes are those of its records put behind one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gyrecheck.handoff.open import open_records
from gyrecheck.handoff.source_keys import read_source_keys
from gyrecheck.model.field_sides import DataSide, Layout, SideField
from gyrecheck.model.fields import Column, Kind, RecordBatch, State
from gyrecheck.rulebook.contract import Contract, RoleMap
from gyrecheck.rulebook.source_words import load_source_words

KEPT = 4_000_000
"""Numbers kept of one field."""
Anything = npt.NDArray[np.generic]


def side_of_files(paths: Iterable[Path], contract: Contract, fields: Mapping[str, str] | None = None) -> DataSide:
    """One side from its trajectory files; the layout is left to be told by evidence.

    Raises:
        GyreError: see `open_records`; or the files hold no record.
    """
    records = open_records(list(paths), contract)
    return side_of_batches(records, str(next(iter(records.files))), contract, fields, notes=records.notes)


def side_of_batches(
    batches: Iterable[RecordBatch],
    path: str,
    contract: Contract,
    fields: Mapping[str, str] | None = None,
    *,
    notes: list[str] | None = None,
) -> DataSide:
    """One side from record batches; those without rows say nothing, and a side of only such has no field."""
    gathered: dict[str, _Gathered] = {}
    rows = 0
    swapped = False
    for batch in batches:
        if not batch.rows:
            continue
        rows += batch.rows
        swapped = swapped or batch.axes == "swapped"
        for key, column in batch.columns.items():
            gathered.setdefault(key, _Gathered(key)).feed(column)
    roles = contract.assign(gathered, fields) if gathered else RoleMap({}, {})
    found = tuple(
        item.field(roles.roles.get(key, ""), rows)
        for key, item in gathered.items()
        if not (key.startswith("header.") and key not in roles.roles)
    )
    arrays = {key: array for key, item in gathered.items() if (array := item.array(rows)) is not None}
    if swapped:  # as the file has them
        found = tuple(replace(f, shape=(f.shape[1], f.shape[0], *f.shape[2:])) if f.shape and len(f.shape) > 1 else f for f in found)
        arrays = {key: array.swapaxes(0, 1) if array.ndim > 1 else array for key, array in arrays.items()}
        notes = []
    return DataSide(path, found, records=rows, arrays=arrays, notes=tuple(notes or ()))


def side_of_source(path: Path, contract: Contract) -> DataSide:
    """The trainer's side from its source: the keys that its loader and first train step read.

    Raises:
        GyreError: see `read_source_keys`.
    """
    words = load_source_words()
    keys = read_source_keys(path, words)
    wanted = keys.wanted
    owners: dict[str, list[str]] = {}
    for read in keys.reads:
        if read.how == "struct" and read.function not in owners.setdefault(read.key, []):
            owners[read.key].append(read.function)
    roles = contract.assign([read.key for read in wanted])
    fields = []
    for read in wanted:
        shown = replace(read, function="|".join(owners[read.key])) if read.how == "struct" else read
        known = [other for other in keys.reads if other.key == read.key]
        dtype = read.dtype or next((other.dtype for other in known if other.dtype), "")
        axes = read.axes if words.order_of(read.axes) else next((other.axes for other in known if words.order_of(other.axes)), read.axes)
        fields.append(SideField(read.key, roles.roles.get(read.key, ""), dtype=dtype, axes=axes, read=shown))
    told = [(field, words.order_of(field.axes)) for field in fields if words.order_of(field.axes)]
    orders = {order for _, order in told}
    layout = Layout()
    if len(orders) == 1:
        field, order = told[0]
        place = f"{field.read.path}:{field.read.line}" if field.read else ""
        layout = Layout(order, reasons=(f"`{field.key}` is unpacked as {', '.join(field.axes)} at {place}",))
    elif keys.layout:
        layout = Layout(keys.layout, reasons=(keys.layout_reason,))
    return DataSide(str(path), tuple(fields), layout=layout, source=True, notes=keys.unread)


class _Gathered:
    """One key over all batches."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.kinds: set[Kind] = set()
        self.dtypes: dict[str, None] = {}
        self.shapes: set[tuple[int, ...]] = set()
        self.present = 0
        self.fractional = False
        self.largest = 0.0
        self._parts: list[Anything] = []
        self._size = 0

    def feed(self, column: Column) -> None:
        here = np.asarray(column.state) == int(State.PRESENT)
        self.present += int(here.sum())
        if not here.any():
            return
        self.kinds |= set(column.kinds) - {Kind.NONE}
        self.dtypes[column.dtype] = None
        self.shapes |= {column.shapes[at] for at in np.unique(np.asarray(column.shape_of)[here]).tolist()}
        flat = np.asarray(column.flat)
        if column.texts is None and flat.dtype.kind in "biuf":
            finite = flat[np.isfinite(flat)] if flat.dtype.kind == "f" else flat
            if finite.size:
                self.largest = max(self.largest, float(np.abs(finite.astype(np.float64)).max()))
                self.fractional = self.fractional or (flat.dtype.kind == "f" and bool((finite != np.round(finite)).any()))
            if self._size + flat.size <= KEPT:
                self._parts.append(flat)
                self._size += flat.size

    def shape(self, rows: int) -> tuple[int, ...] | None:
        """Records first, then each record's own axes; one record alone is shown as it is."""
        ranks = {len(shape) for shape in self.shapes}
        if len(ranks) != 1:
            return None
        each = tuple(axis[0] if len(set(axis)) == 1 else -1 for axis in zip(*self.shapes, strict=True))
        return each if rows == 1 and each else (rows, *each)

    def field(self, role: str, rows: int) -> SideField:
        """The field as the other side will be compared with it."""
        kind = next(iter(self.kinds)) if len(self.kinds) == 1 else Kind.FLOAT if self.kinds == {Kind.INT, Kind.FLOAT} else None
        dtype = next(iter(self.dtypes), "") if len(self.dtypes) == 1 else "float" if kind is Kind.FLOAT else "mixed"
        return SideField(self.key, role, kind, dtype, self.shape(rows), fractional=self.fractional, largest=self.largest)

    def array(self, rows: int) -> Anything | None:
        """All numbers in one array when every record has one shape and all were kept, else None."""
        shape = self.shape(rows)
        if shape is None or -1 in shape or self.present != rows or not self._parts or self._size != int(np.prod(shape)):
            return None
        return np.concatenate(self._parts).reshape(shape)
