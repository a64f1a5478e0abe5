"""How a batch's rows become calls of a policy: rows of one version together, one step a row or several; token records one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gyrecheck.model.errors import GyreError
from gyrecheck.model.fields import Column, Kind, RecordBatch, State
from gyrecheck.rulebook.contract import RoleMap

Floats = npt.NDArray[np.float64]
Anything = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One call of the policy: what it gets, and where its answers belong."""

    observations: object
    """An array [N, ...], or a dict of them; for tokens the prompt [P]."""
    actions: Anything
    recorded: Floats
    """[N]"""
    version: int | None


class RowPlan:
    """How one batch's rows become calls: which elements go together, in which shapes."""

    def __init__(self, batch: RecordBatch, roles: RoleMap) -> None:
        self.batch = batch
        self.roles = roles
        logprob = self._column("logprob", "so there is nothing to compare with")
        self.counts = np.asarray(logprob.counts)
        self.starts = np.cumsum(self.counts) - self.counts
        self.recorded = np.asarray(logprob.flat, dtype=np.float64)
        self.scalar = all(shape == () for shape in logprob.shapes)
        self.tokens = bool(roles.key("tokens"))
        self.action = self._column("tokens" if self.tokens else "action", "so no log-prob can be computed again")
        self.observations = self._observations()

    def by_version(self, *, needed: bool) -> Iterator[tuple[int | None, list[int]]]:
        """Rows that carry log-probs, by their version; all together where no weights are asked for.

        Raises:
            GyreError: weights are asked for and a row has no version.
        """
        rows = np.flatnonzero((self.counts > 0) & (np.asarray(self.action.state) == int(State.PRESENT)))
        column = self.batch.columns.get(self.roles.key("policy_version"))
        if not needed:
            yield None, rows.tolist()
            return
        if column is None:
            message = f"{self.batch.path}: no record says its policy version, so its weights cannot be chosen"
            raise GyreError(message, hint="--field version=KEY names it")
        own = np.asarray(column.counts)
        version = np.full(self.batch.rows, -1.0)
        flat = np.asarray(column.flat, dtype=np.float64)
        version[own > 0] = np.nan_to_num(flat[(np.cumsum(own) - own)[own > 0]], nan=-1.0)
        if column.texts is not None or (version[rows] < 0).any():
            first = int(np.asarray(self.batch.records)[rows[version[rows] < 0][0]]) if column.texts is None else 1
            raise GyreError(f"{self.batch.path}: record {first} has no policy version that is a number, so its weights cannot be chosen")
        for value in np.unique(version[rows]):
            yield int(value), rows[version[rows] == value].tolist()

    def calls(self, version: int | None, rows: list[int]) -> Iterator[tuple[Call, npt.NDArray[np.int64], list[int]]]:
        """Calls for these rows, with the places of their answers in the batch's elements and the rows they cover."""
        if self.tokens:
            own, start = np.asarray(self.action.counts), _starts(self.action)
            prompt = self.observations.get("")
            prompt_start = _starts(prompt) if prompt is not None and prompt.texts is None else None
            for row in rows:
                places = np.arange(self.starts[row], self.starts[row] + self.counts[row])
                tokens = np.asarray(self.action.flat)[start[row] : start[row] + own[row]].astype(np.int64)
                if tokens.size != places.size:
                    continue
                before = np.zeros(0, np.int64)
                if prompt is not None and prompt_start is not None:
                    before = np.asarray(prompt.flat)[prompt_start[row] : prompt_start[row] + np.asarray(prompt.counts)[row]].astype(
                        np.int64
                    )
                yield Call(before, tokens, self.recorded[places], version), places, [row]
            return
        places = np.flatnonzero(np.repeat(_marked(rows, self.batch.rows), self.counts))
        arrays = {name: self._stack(column, rows, name) for name, column in self.observations.items()}
        observations: object = arrays[""] if set(arrays) == {""} else arrays
        actions = self._stack(self.action, rows, "action", floats=self.action.kind not in {Kind.INT, Kind.BOOL})
        yield Call(observations, actions, self.recorded[places], version), places, rows

    def _stack(self, column: Column, rows: list[int], name: str, *, floats: bool = True) -> Anything:
        """[N, ...] over the elements of these rows: one step a row, or steps along each row's first axis."""
        shapes = {column.shapes[at] for at in np.asarray(column.shape_of)[rows].tolist() if at >= 0}
        tails = {shape if self.scalar else shape[1:] for shape in shapes}
        total = int(self.counts[rows].sum())
        if len(tails) != 1 or -1 in next(iter(tails)) or column.texts is not None:
            shown = ", ".join(str(list(shape)) for shape in sorted(shapes))
            message = f"{self.batch.path}: `{column.key}` has no regular shape ({shown or 'not numbers'}), so it cannot be replayed"
            raise GyreError(message, hint=f"read as {name or 'observation'}; --field ROLE=KEY names another key")
        flat = np.asarray(column.flat)[np.repeat(_marked(rows, self.batch.rows), np.asarray(column.counts))]
        shape = (total, *next(iter(tails)))
        if flat.size != int(np.prod(shape)):
            raise GyreError(f"{self.batch.path}: `{column.key}` has {flat.size} numbers for {total} log-probs of shape {list(shape)[1:]}")
        return flat.reshape(shape).astype(np.float32 if floats else np.int64)

    def _observations(self) -> dict[str, Column]:
        """The observation under "", or several modalities by their own names."""
        columns = self.batch.columns
        if self.tokens:
            prompt = columns.get(self.roles.key("prompt_tokens"))
            return {"": prompt} if prompt is not None else {}
        whole = columns.get(self.roles.key("obs"))
        key = self.roles.key("obs")
        prefix = key.rpartition(".")[0] if "." in key else ""
        parts = {name.removeprefix(f"{prefix}."): column for name, column in columns.items() if prefix and name.startswith(f"{prefix}.")}
        if len(parts) > 1 and all(column.kind in {Kind.INT, Kind.FLOAT, Kind.BOOL} for column in parts.values()):
            return parts
        if whole is None:
            raise GyreError(f"{self.batch.path}: no record has an observation, so no log-prob can be computed again", hint=self._known())
        return {"": whole}

    def _column(self, role: str, why: str) -> Column:
        column = self.batch.columns.get(self.roles.key(role))
        if column is None:
            raise GyreError(f"{self.batch.path}: no record has a `{role}`, {why}", hint=self._known())
        return column

    def _known(self) -> str:
        return f"--field ROLE=KEY names it; keys: {', '.join(list(self.batch.columns)[:20])}"


def _marked(rows: list[int], size: int) -> npt.NDArray[np.bool_]:
    marked = np.zeros(size, dtype=np.bool_)
    marked[rows] = True
    return marked


def _starts(column: Column) -> npt.NDArray[np.int64]:
    counts = np.asarray(column.counts)
    return np.asarray(np.cumsum(counts) - counts, dtype=np.int64)
