"""Everything that was read as event columns, one value a row: CSV while reading, Parquet in row groups of bounded size."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, Protocol

from gyrecheck.model.errors import GyreError
from gyrecheck.model.events import Reading

COLUMNS = ("path", "line", "offset", "time", "pid", "host", "side", "key", "term", "unit", "reason", "stream", "value")
_GROUP = 65536


class ColumnsWriter(Protocol):
    """Takes batches of readings, and is closed."""

    def add(self, batch: list[Reading]) -> None:
        """Write a batch."""

    def close(self) -> None:
        """Finish the file."""


def columns_writer(path: Path) -> ColumnsWriter:
    """A writer by the file's suffix: `.csv` or `.parquet`.

    Raises:
        GyreError: Parquet without pyarrow, or the file cannot be written.
    """
    try:
        return _Parquet(path) if path.suffix == ".parquet" else _Csv(path)
    except OSError as error:
        raise GyreError(f"{path}: cannot be written ({error.strerror or error})") from error


def _rows(batch: list[Reading]) -> list[tuple[Any, ...]]:
    return [
        (
            r.path,
            r.line,
            r.offset,
            r.time,
            r.pid,
            r.host,
            key.side or r.side,
            key.name,
            key.term,
            key.unit.value,
            key.reason,
            key.stream,
            value,
        )
        for r in batch
        for key, value in r.values
    ]


class _Csv:
    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8", newline="", errors="surrogateescape")
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._writer.writerow(COLUMNS)

    def add(self, batch: list[Reading]) -> None:
        """Write a batch."""
        self._writer.writerows(_rows(batch))

    def close(self) -> None:
        """Finish the file."""
        self._file.close()


class _Parquet:
    def __init__(self, path: Path) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError as error:
            raise GyreError(f"{path}: Parquet needs pyarrow", hint="pip install 'gyrecheck[arrow]', or end the name in .csv") from error
        text, whole, real = pa.string(), pa.int64(), pa.float64()
        kinds = (text, whole, whole, real, whole, text, text, text, text, text, text, text, real)
        self._pa = pa
        self._schema = pa.schema(list(zip(COLUMNS, kinds, strict=True)))
        self._writer = pq.ParquetWriter(str(path), self._schema, compression="zstd")
        self._held: list[tuple[Any, ...]] = []

    def add(self, batch: list[Reading]) -> None:
        """Hold rows until a row group is full."""
        self._held += _rows(batch)
        if len(self._held) >= _GROUP:
            self._flush()

    def _flush(self) -> None:
        columns = list(zip(*self._held, strict=True)) if self._held else [()] * len(COLUMNS)
        arrays = [self._pa.array(column, type=field.type) for column, field in zip(columns, self._schema, strict=True)]
        self._writer.write_table(self._pa.Table.from_arrays(arrays, schema=self._schema))
        self._held = []

    def close(self) -> None:
        """Finish the file."""
        self._flush()
        self._writer.close()
