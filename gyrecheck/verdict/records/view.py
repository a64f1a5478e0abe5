"""A batch seen through its roles: scalars, lists and steps as numpy arrays, with the record each element came from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from gyrecheck.model.fields import Column, Kind, RecordBatch, State
from gyrecheck.rulebook.contract import Contract, RoleMap

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Anything = npt.NDArray[Any]


class View:
    """One batch and which key plays which role. Every array is computed once."""

    def __init__(self, batch: RecordBatch, roles: RoleMap, contract: Contract) -> None:
        self.batch = batch
        self.roles = roles
        self.contract = contract
        self.path = batch.path
        self.rows = batch.rows
        self.records: Ints = np.asarray(batch.records)
        self._cache: dict[tuple[str, str], Any] = {}
        self.shared: dict[str, Any] = {}
        """What several questions make of this batch, once (the steps)."""

    def column(self, role: str) -> Column | None:
        """The column that plays `role`, or None."""
        return self.batch.columns.get(self.roles.key(role))

    def has(self, *roles: str) -> bool:
        """Whether all of these roles have a column in this batch."""
        return all(self.column(role) is not None for role in roles)

    def number(self, role: str) -> Floats | None:
        """[rows] one number a row, NaN where the row has none (absent, null, text, or a list of more than one)."""
        made: Floats | None = self._once("number", role, self._number)
        return made

    def _number(self, role: str) -> Floats | None:
        column = self.column(role)
        if column is None or column.kind in {Kind.OBJECT, Kind.NONE}:
            return None
        out = np.full(self.rows, np.nan)
        counts = np.asarray(column.counts)
        one = counts == 1
        if one.any():
            flat = np.asarray(column.flat)
            out[one] = flat if one.all() else flat[(np.cumsum(counts) - counts)[one]]
        return out

    def integer(self, role: str) -> tuple[Ints, Bools] | None:
        """([rows] integers, [rows] which of them are there) of a scalar column whose finite values are whole; None when there are none."""
        made: tuple[Ints, Bools] | None = self._once("integer", role, self._integer)
        return made

    def _integer(self, role: str) -> tuple[Ints, Bools] | None:
        column = self.column(role)
        if column is None:
            return None
        if column.texts is not None:
            return self._text_integer(column)
        number = self.number(role)
        if number is None:
            return None
        there = np.isfinite(number)
        there[there] &= np.abs(number[there]) < 2**62
        if not there.any() or not np.equal(number[there], np.round(number[there])).all():
            return None
        return np.where(there, number, 0).astype(np.int64), there

    def _text_integer(self, column: Column) -> tuple[Ints, Bools] | None:
        """Versions written as text, `7` or `v7` or `step_7`: the number at the end, when every text has one and the same stem."""
        import re

        texts = column.texts or ()
        if len(texts) != self.rows:
            return None
        found = [re.fullmatch(r"([A-Za-z_\-. ]*)(\d{1,15})", text) if text else None for text in texts]
        stems = {match.group(1) for match in found if match}
        if len(stems) != 1 or not all(match for match, text in zip(found, texts, strict=True) if text):
            return None
        there = np.array([match is not None for match in found])
        return np.array([int(match.group(2)) if match else 0 for match in found], np.int64), there

    def labels(self, role: str) -> list[Any] | None:
        """[rows] one hashable label a row (text or number; None where absent) of a scalar column."""
        made: list[Any] | None = self._once("labels", role, self._labels)
        return made

    def _labels(self, role: str) -> list[Any] | None:
        column = self.column(role)
        if column is None or column.kind in {Kind.OBJECT, Kind.NONE}:
            return None
        counts = np.asarray(column.counts)
        flat = np.asarray(column.flat)
        if column.texts is None:
            if (counts == 1).all():
                return list(flat.tolist())
            values: list[Any] = flat.tolist()
        else:
            values = [text if text is not None else value for text, value in zip(column.texts, flat.tolist(), strict=True)]
        starts = np.cumsum(counts) - counts
        return [values[start] if count == 1 else None for start, count in zip(starts.tolist(), counts.tolist(), strict=True)]

    def flag(self, role: str) -> Bools | None:
        """[rows] a scalar flag as bool, False where absent; None when the column is no flag."""
        number = self.number(role)
        if number is None:
            return None
        return np.asarray(np.nan_to_num(number) != 0)

    def counted(self, role: str) -> Bools:
        """[values] which values of a mask are not 0; an empty array where the column holds none."""
        made: Bools = self._once("counted", role, self._counted)
        return made

    def _counted(self, role: str) -> Bools:
        column = self.column(role)
        if column is None:
            return np.zeros(0, np.bool_)
        flat = np.asarray(column.flat)
        on = flat != 0
        return np.asarray(on & ~np.isnan(flat)) if flat.dtype.kind == "f" else np.asarray(on)

    def present(self, role: str) -> Bools:
        """[rows] whether the row has a value under the role."""
        column = self.column(role)
        if column is None:
            return np.zeros(self.rows, np.bool_)
        return np.asarray(np.asarray(column.state) == int(State.PRESENT))

    def words(self, role: str) -> list[str | None] | None:
        """[rows] lower-case text of a scalar text column."""
        column = self.column(role)
        if column is None or column.texts is None:
            return None
        labels = self.labels(role)
        return [label.strip().lower() if isinstance(label, str) else None for label in labels] if labels is not None else None

    def failed(self) -> Bools | None:
        """[rows] rows that say that they failed, by status, by an error text or by a flag; None when no field says so of any row."""
        if "failed" not in self.shared:
            self.shared["failed"] = self._failed()
        made: Bools | None = self.shared["failed"]
        return made

    def _failed(self) -> Bools | None:
        parts: list[Bools] = []
        bad, nothing = self.contract.words.get("failed", frozenset()), self.contract.words.get("nothing", frozenset())
        words = self.words("status")
        if words is not None:
            parts.append(np.array([bool(word) and word in bad for word in words], np.bool_))
        errors = self.words("error")
        if errors is not None:
            parts.append(np.array([word is not None and word not in nothing for word in errors], np.bool_))
        flag = self.flag("failed")
        if flag is not None:
            parts.append(flag)
        return np.asarray(np.any(parts, axis=0)) if parts else None

    def idle(self) -> Bools:
        """[rows] rows that no loss counts: refused by the trainer, a mask that is 0 throughout, or said to be filler where no mask tells."""
        if "idle" not in self.shared:
            self.shared["idle"] = self._idle()
        made: Bools = self.shared["idle"]
        return made

    def _idle(self) -> Bools:
        refused = self.flag("dropped")
        out = refused.copy() if refused is not None else np.zeros(self.rows, np.bool_)
        mask = self.column("mask")
        if mask is not None and mask.kind in {Kind.BOOL, Kind.INT, Kind.FLOAT}:
            counts = np.asarray(mask.counts)
            out |= (counts > 0) & (per_row(self.counted("mask"), counts) == 0)
        elif (filler := self.flag("filler")) is not None:
            out |= filler
        return np.asarray(out)

    def _once(self, what: str, role: str, make: Callable[[str], Any]) -> Any:  # noqa: ANN401 - the cache of several kinds
        if (what, role) not in self._cache:
            self._cache[what, role] = make(role)
        return self._cache[what, role]


def rank(column: Column) -> int:
    """The number of axes of most rows' values."""
    if len(column.shapes) == 1:
        return len(column.shapes[0])
    of = np.asarray(column.shape_of)
    of = of[of >= 0]
    if not len(of):
        return 0
    return len(column.shapes[int(np.bincount(of).argmax())])


def lead(column: Column) -> Ints:
    """[rows] length of each value's first axis; -1 where there is no value, 0 for an empty list, 1 for a scalar."""
    of = np.asarray(column.shape_of)
    table = np.array([*(shape[0] if shape else 1 for shape in column.shapes), -1], np.int64)
    return np.asarray(table[of])


def per_row(flags: Bools, counts: Ints) -> Ints:
    """[rows] how many of each row's `counts` values are True; `flags` are those of all rows."""
    if len(counts) and len(flags) == len(counts) * int(counts[0]) and (counts == counts[0]).all():
        return np.asarray(np.count_nonzero(flags.reshape(len(counts), -1), axis=1))
    totals = np.concatenate(([0], np.cumsum(flags)))
    ends = np.cumsum(counts)
    return np.asarray(totals[ends] - totals[ends - counts])


def row_of_element(column: Column) -> Ints:
    """[len(flat)] the row each scalar belongs to."""
    return np.repeat(np.arange(column.rows), np.asarray(column.counts))
