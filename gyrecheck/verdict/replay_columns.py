"""Gather the columns of a ratio judgement from record batches, whatever their level: steps, trajectories or token lists.

Rows whose two log-probs differ in length are left out and counted (their lengths are another check's finding). At most `LIMIT` elements
are kept; the rest is counted as not read. Imports numpy: import this module inside the function that calls it.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from gyrecheck.model.fields import Column, Kind, RecordBatch, State
from gyrecheck.rulebook.contract import RoleMap
from gyrecheck.rulebook.ratio_limits import RatioLimits
from gyrecheck.verdict.replay_rows import Bools, Floats, Ints, ReplayRows, WeightsUsed

LIMIT = 2_000_000
"""Elements kept, about 200 MB with all optional columns."""
OPTIONAL = ("mask", "version", "trainer_version", "action", "first", "last", "temperature")


class ReplayColumns:
    """Feed it batches in order, then take `rows()`. Element numbers stand for (file, record) pairs, which `places` gives back."""

    def __init__(
        self, roles: RoleMap, limits: RatioLimits, *, replay: str = "replay_logprob", keep: int = LIMIT, weights: WeightsUsed | None = None
    ) -> None:
        self.roles = roles
        self.replay = replay
        self.keep = keep
        self._weights = weights
        self.unequal = 0
        """Rows left out because their log-probs differ in length."""
        self.left = 0
        """Elements beyond `keep`."""
        self._limits = limits
        self._parts: list[dict[str, Floats | None]] = []
        self._origin: list[tuple[str, Ints]] = []
        self._size = 0
        self._rows = 0
        self._discrete = True

    @property
    def unit(self) -> str:
        """What one element is."""
        return "token" if self.roles.key("tokens") else "step"

    @property
    def weights(self) -> WeightsUsed:
        """Whose weights replayed: the key's own name may say the recorded version's, a trainer's version says the trainer's."""
        if self._weights is not None:
            return self._weights
        if self.roles.key("trainer_version"):
            return "trainer"
        name = self.roles.key(self.replay).lower()
        return "recorded" if any(word in name for word in self._limits.same_weights) else "unknown"

    def feed(self, batch: RecordBatch, replayed: Floats | None = None, done: Bools | None = None) -> None:
        """Take one batch. `replayed` [elements of `logprob`] replaces the file's own column; `done` [rows] says which rows it covers."""
        recorded = self._column(batch, "logprob")
        other = self._column(batch, self.replay)
        if recorded is None or (other is None and replayed is None):
            return
        counts = np.asarray(recorded.counts)
        take = counts > 0 if done is None else (counts > 0) & done
        if replayed is None and other is not None:
            same = counts == np.asarray(other.counts)
            self.unequal += int((take & ~same & (np.asarray(other.counts) > 0)).sum())
            take &= same
        room = self.keep - self._size
        total = np.cumsum(np.where(take, counts, 0))
        over = take & (total > room)
        self.left += int(counts[over].sum())
        take &= ~over
        if not take.any():
            return
        chosen = np.repeat(take, counts)
        of = np.repeat(np.arange(batch.rows), counts)[chosen]
        part: dict[str, Floats | None] = {
            "recorded": _flat(recorded)[chosen],
            "replayed": replayed[chosen]
            if replayed is not None
            else _flat(other)[np.repeat(take, np.asarray(other.counts))]
            if other
            else None,
            "record": (self._rows + of).astype(np.float64),
        }
        for name, role in (
            ("mask", "mask"),
            ("version", "policy_version"),
            ("trainer_version", "trainer_version"),
            ("temperature", "temperature"),
        ):
            part[name] = self._spread(batch, role, counts, chosen, of)
        part["action"] = self._action(batch, counts, chosen, of)
        part["first"], part["last"] = self._ends(batch, counts, of)
        self._parts.append(part)
        self._origin.append((batch.path, np.asarray(batch.records, dtype=np.int64)))
        self._rows += batch.rows
        self._size += int(chosen.sum())

    def rows(self) -> ReplayRows | None:
        """All elements gathered; None when no row carries both log-probs."""
        if not self._parts:
            return None
        joined: dict[str, Floats | None] = {}
        for name in ("recorded", "replayed", "record", *OPTIONAL):
            pieces = [part[name] for part in self._parts]
            whole = [piece for piece in pieces if piece is not None]
            alike = len(whole) == len(pieces) and len({piece.shape[1:] for piece in whole}) == 1
            joined[name] = np.concatenate(whole) if alike else None
        recorded, replayed, record = joined["recorded"], joined["replayed"], joined["record"]
        if recorded is None or replayed is None or record is None:
            return None
        version = joined["version"]
        mask = joined["mask"]
        known = np.ones(recorded.size, dtype=np.bool_) if version is None else np.isfinite(version)
        rows = ReplayRows(
            recorded=recorded,
            replayed=replayed,
            record=record.astype(np.int64),
            mask=None if mask is None else np.asarray(mask > 0, dtype=np.bool_),
            version=_ints(version),
            trainer_version=_ints(joined["trainer_version"]),
            action=joined["action"],
            discrete=self._discrete,
            first=_flags(joined["first"]),
            last=_flags(joined["last"]),
            temperature=joined["temperature"],
            unit=self.unit,
            weights=self.weights,
        )
        return rows if known.all() else rows.only(known)

    def places(self, numbers: tuple[int, ...]) -> tuple[str, tuple[int, ...], int]:
        """The first file of these element numbers, its 1-based records, and how many more files are concerned."""
        files: dict[str, list[int]] = {}
        wanted = np.asarray(sorted(numbers), dtype=np.int64)
        start = 0
        for path, records in self._origin:
            here = wanted[(wanted >= start) & (wanted < start + records.size)] - start
            if here.size:
                files.setdefault(path, []).extend(int(n) for n in np.unique(records[here]))
            start += records.size
        if not files:
            return (self._origin[0][0] if self._origin else ""), (), 0
        path = next(iter(files))
        return path, tuple(sorted(set(files[path]))), len(files) - 1

    def _column(self, batch: RecordBatch, role: str) -> Column | None:
        column = batch.columns.get(self.roles.key(role))
        return None if column is None or column.texts is not None or column.kind in {Kind.OBJECT, Kind.NONE} else column

    def _spread(self, batch: RecordBatch, role: str, counts: Ints, chosen: Bools, of: Ints) -> Floats | None:
        """The role's value for each element: its own, or its row's one."""
        column = self._column(batch, role)
        if column is None:
            return None
        own = np.asarray(column.counts)
        if np.array_equal(own[np.unique(of)], counts[np.unique(of)]):
            start = np.cumsum(own) - own
            inside = _within(counts)[chosen]
            return np.asarray(_flat(column)[start[of] + inside], dtype=np.float64)
        if bool((own[np.unique(of)] <= 1).all()):
            row = np.full(batch.rows, np.nan)
            row[own == 1] = _flat(column)[(np.cumsum(own) - own)[own == 1]]
            return np.asarray(row[of], dtype=np.float64)
        return None

    def _action(self, batch: RecordBatch, counts: Ints, chosen: Bools, of: Ints) -> Floats | None:
        """[elements, A] when every log-prob has A action numbers."""
        column = self._column(batch, "action")
        if column is None or self.unit == "token":
            return None
        own = np.asarray(column.counts)
        present = np.unique(of)
        each = Counter((own[present] // np.maximum(counts[present], 1)).tolist())
        if len(each) != 1 or bool((own[present] % np.maximum(counts[present], 1)).any()):
            return None
        width = next(iter(each))
        if not 0 < width <= 256:
            return None
        self._discrete = self._discrete and column.kind in {Kind.INT, Kind.BOOL}
        keep = np.repeat(np.isin(np.arange(batch.rows), present), own)
        return np.asarray(_flat(column)[keep].reshape(int(chosen.sum()), width), dtype=np.float64)

    def _ends(self, batch: RecordBatch, counts: Ints, of: Ints) -> tuple[Floats | None, Floats | None]:
        """First and last steps, for files with one step a row."""
        if self.unit == "token" or bool((counts[np.unique(of)] != 1).any()):
            return None, None
        first = self._spread(batch, "step", np.ones(batch.rows, dtype=np.int64), np.ones(batch.rows, dtype=np.bool_), np.arange(batch.rows))
        flags = [self._flag(batch, role) for role in ("terminated", "truncated", "done")]
        known = [flag for flag in flags if flag is not None]
        last = np.logical_or.reduce(known) if known else None
        if last is None and first is not None and len(first) > 1 and float((np.diff(first) == 1).mean()) >= 0.5:
            last = np.append(np.diff(first) <= 0, True)
        return (None if first is None else (first == 0)[of].astype(np.float64)), (None if last is None else last[of].astype(np.float64))

    def _flag(self, batch: RecordBatch, role: str) -> Bools | None:
        column = self._column(batch, role)
        if (
            column is None
            or not bool((np.asarray(column.counts) == 1).all())
            or not bool((np.asarray(column.state) == int(State.PRESENT)).all())
        ):
            return None
        return np.asarray(_flat(column) != 0, dtype=np.bool_)


def _flat(column: Column | None) -> Floats:
    return np.zeros(0) if column is None else np.asarray(column.flat, dtype=np.float64)


def _within(counts: Ints) -> Ints:
    """Position of each element inside its row."""
    start = np.repeat(np.cumsum(counts) - counts, counts)
    return np.arange(start.size) - start


def _ints(column: Floats | None) -> Ints | None:
    return None if column is None else np.where(np.isfinite(column), column, -1).astype(np.int64)


def _flags(column: Floats | None) -> Bools | None:
    return None if column is None else np.asarray(column > 0, dtype=np.bool_)
