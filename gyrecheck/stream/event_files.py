"""TensorBoard event files and offline W&B files as JSON lines, one a step, read with the packages that wrote them.

A line is `{"step": …, "timestamp": …, name: value, …}` with the scalars that were logged for one step; its number is that of the step's
record among all, so that a place is the same each time the file is read.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from gyrecheck.model.errors import GyreError

Kind = Literal["", "tensorboard", "wandb"]
_WANDB = b":W&B"
_FRAME = 1 << 15
_HEADER = 7
_FULL, _FIRST, _LAST = 1, 2, 4
BLOCK = 1 << 16


def kind_of(name: str) -> Kind:
    """What a file of this name is."""
    base = name.replace("\\", "/").rpartition("/")[2]
    return "tensorboard" if ".tfevents." in base else "wandb" if base.endswith(".wandb") else ""


def event_blocks(path: str, kind: Kind) -> Iterator[bytes]:
    """The file as blocks of JSON lines.

    Raises:
        GyreError: the package is missing, or the file is none of this kind or holds no scalar.
        OSError: the file cannot be read.
    """
    held, found = b"", False
    for step in _tensorboard(path) if kind == "tensorboard" else _wandb(path):
        found = True
        held += json.dumps(step).encode() + b"\n"
        if len(held) > BLOCK:
            yield held
            held = b""
    if held:
        yield held
    if not found:
        raise GyreError(f"{path}: no scalar can be read from it (empty, damaged, or none was logged)", hint="give the run's text log")


def _tensorboard(path: str) -> Iterator[dict[str, Any]]:
    try:
        from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
        from tensorboard.util.tensor_util import make_ndarray
    except ImportError as error:
        raise _missing(path, "a TensorBoard event file", "tensorboard") from error
    Path(path).open("rb").close()  # the loader answers a file that cannot be opened with errors of its own
    row: dict[str, Any] = {}
    try:
        for event in EventFileLoader(path).Load():
            for value in event.summary.value:
                if value.metadata.plugin_data.plugin_name not in {"", "scalars"}:
                    continue
                array = make_ndarray(value.tensor)
                if array.size != 1:
                    continue
                if row and (row["step"] != event.step or value.tag in row):
                    yield row
                    row = {}
                row = row or {"step": event.step, "timestamp": event.wall_time}
                row[value.tag] = float(array.reshape(-1)[0])
    except (ValueError, RuntimeError) as error:
        raise GyreError(
            f"{path}: is no TensorBoard event file, or a damaged one ({str(error)[:120]})", hint="give the run's text log"
        ) from error
    if row:
        yield row


def _wandb(path: str) -> Iterator[dict[str, Any]]:
    try:
        proto = import_module("wandb.proto.wandb_internal_pb2")  # made by protobuf: its names are known at run time only
        cut: type[Exception] = import_module("google.protobuf.message").DecodeError
    except ImportError as error:
        raise _missing(path, "an offline W&B file", "wandb") from error
    for data in _frames(path):
        record = proto.Record()
        try:
            record.ParseFromString(data)
        except cut:
            continue  # a record that was cut
        if not record.HasField("history"):
            continue
        row: dict[str, Any] = {}
        for item in record.history.item:
            name = "/".join(item.nested_key) or item.key
            value = json.loads(item.value_json or "null")
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                row[name] = value
        step, stamp = row.pop("_step", record.history.step.num), row.pop("_timestamp", None)
        row.pop("_runtime", None)
        if row:
            yield {"step": step, **({} if stamp is None else {"timestamp": stamp}), **row}


def _frames(path: str) -> Iterator[bytes]:
    """Records of a W&B file: LevelDB's log framing (blocks of 32 KiB; checksum, length and type before each piece) after 7 bytes of its own."""
    with Path(path).open("rb") as file:
        block = file.read(_FRAME)
        if not block.startswith(_WANDB):
            raise GyreError(f"{path}: is no W&B file (expected it to begin with :W&B)", hint="give the run's .wandb file or its text log")
        at, held = _HEADER, b""
        while block:
            while at + _HEADER <= len(block):
                size, kind = struct.unpack_from("<HB", block, at + 4)
                piece = block[at + _HEADER : at + _HEADER + size]
                at += _HEADER + size
                if kind not in {_FULL, _FIRST, 3, _LAST} or len(piece) < size:
                    break  # padding, or what a killed writer left
                held = piece if kind in {_FULL, _FIRST} else held + piece
                if kind in {_FULL, _LAST}:
                    yield held
            block, at = file.read(_FRAME), 0


def _missing(path: str, what: str, package: str) -> GyreError:
    return GyreError(
        f"{path}: is {what}, which is read with the package {package}, and that is not installed",
        hint=f"pip install 'gyrecheck[{package}]'",
    )
