"""Pickles are refused: loading one runs whatever it names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gyrecheck.handoff.pickle_names import first_class
from gyrecheck.handoff.source import open_bytes
from gyrecheck.model.errors import GyreError
from gyrecheck.model.fields import RecordBatch
from gyrecheck.rulebook.contract import Contract


def read(path: Path, contract: Contract, notes: list[str]) -> Iterator[RecordBatch]:
    """Never gives a batch.

    Raises:
        GyreError: always, with the first class the pickle names.
    """
    del contract, notes
    with open_bytes(path) as stream:
        name = first_class(stream.read(4 << 20))
    named = f" (pickled class {name})" if name else " (a pickle)"
    raise GyreError(
        f"{path}: refuses to open without running code{named}",
        hint="save tensors and plain containers only: npz, safetensors, Parquet or JSON lines",
    )
