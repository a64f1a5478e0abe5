"""One episode's rows as `handoff show --episode` prints them, gathered from batches as they are read."""

from __future__ import annotations

from typing import Any

from gyrecheck.handoff.profile import example
from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import Scalar, Table
from gyrecheck.rulebook.contract import RoleMap


class Episode:
    """Gathers one episode's rows for printing, up to `LIMIT` of them."""

    LIMIT = 1000

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted
        self.complete = False
        self._rows: list[tuple[Scalar, ...]] = []
        self._keys: tuple[str, ...] = ()
        self._name: Any = None

    def feed(self, batch: Any, roles: RoleMap) -> None:  # noqa: ANN401 - a RecordBatch
        """Take the rows of one batch that belong to the episode."""
        key = roles.key("episode_id") or roles.key("trajectory_id")
        ends = [roles.key(role) for role in ("terminated", "truncated", "done") if roles.key(role)]
        names = batch.columns.get(key)
        self._keys = self._keys or tuple(name for name in batch.columns if not name.startswith("header."))
        for row in range(batch.rows):
            name = example(names, row) if names is not None else None
            if self._name is None and self.wanted not in {"first", name}:
                continue
            if self._rows and names is not None and name != self._name:
                if self.wanted == "first":
                    self.complete = True
                    return
                continue
            self._name = name if self._name is None else self._name
            self._rows.append(
                (int(batch.records[row]), *(example(batch.columns[k], row) if k in batch.columns else "" for k in self._keys))
            )
            ended = any(example(batch.columns[end], row) in {"true", "1"} for end in ends if end in batch.columns)
            if len(self._rows) >= self.LIMIT or (ended and names is None):
                self.complete = True
                return

    def table(self) -> Table:
        """The rows, one a step.

        Raises:
            GyreError: there is no such episode.
        """
        if not self._rows:
            raise GyreError(f"--episode {self.wanted}: no record has this episode", hint="--episode first prints the first one")
        note = f"only the first {self.LIMIT} steps" if len(self._rows) >= self.LIMIT else ""
        return Table(
            ("record", *self._keys), tuple(self._rows), title=f"episode {self._name if self._name is not None else 'first'}", note=note
        )
