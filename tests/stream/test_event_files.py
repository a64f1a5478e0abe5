"""TensorBoard event files and offline W&B files, written by their own packages, are read like logs; without the packages one sentence says so."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

from gyrecheck.commands.ledger_run import Request, judge_paths
from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import State
from gyrecheck.rulebook.codes import load_codes
from gyrecheck.stream.event_files import event_blocks
from gyrecheck.stream.open_log import LogFile, find_logs

STEPS = 12


def _rows(lost: int) -> list[dict[str, float]]:
    """Running totals of 33 sampled, 30 taken and 3 stale a step; from step 8 on `lost` of the taken are missing."""
    return [
        {"count/sampled": 33.0 * n, "count/taken": 30.0 * n - (lost if n >= 8 else 0), "count/dropped_stale": 3.0 * n, "count/left": 0.0}
        for n in range(1, STEPS + 1)
    ]


def _tensorboard(folder: Path, lost: int) -> Path:
    pytest.importorskip("tensorboard")
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder))
    for step, row in enumerate(_rows(lost), 1):
        for tag, value in row.items():
            summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
            writer.add_event(Event(wall_time=1_700_000_000 + step, step=step, summary=summary))
    writer.close()
    return next(folder.glob("*.tfevents.*"))


def _wandb(folder: Path, lost: int) -> Path:
    """A W&B file as its writer frames it: records longer than a block of 32 KiB are cut into pieces."""
    proto = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    records = []
    for step, row in enumerate(_rows(lost), 1):
        record = proto.Record()
        record.history.step.num = step
        for name, value in [*row.items(), ("_timestamp", 1_700_000_000.0 + step), ("note", "x" * 20_000)]:
            item = record.history.item.add()
            item.nested_key.append(name)
            item.value_json = f'"{value}"' if isinstance(value, str) else str(value)
        records.append(record.SerializeToString())
    out = b":W&B" + struct.pack("<HB", 0xBEE1, 0)
    for rest in records:
        data, first = rest, True
        while data or first:
            room = (1 << 15) - len(out) % (1 << 15)
            if room < 7:
                out += b"\0" * room
                room = 1 << 15
            piece, data = data[: room - 7], data[room - 7 :]
            kind = (1 if first else 4) if not data else (2 if first else 3)
            out += struct.pack("<IHB", 0, len(piece), kind) + piece
            first = False
    path = folder / "run-abc.wandb"
    path.write_bytes(out)
    return path


@pytest.mark.parametrize("write", [_tensorboard, _wandb])
def test_balance_of_event_files(tmp_path: Path, write: object) -> None:
    """A sound run's file balances to 12 x 33; with 5 lost from step 8 on, the ledger names the record of step 8."""
    assert callable(write)
    sound, broken = tmp_path / "sound", tmp_path / "broken"
    sound.mkdir()
    broken.mkdir()
    write(sound, 0)
    path = write(broken, 5)
    judged, snapshot, _ = judge_paths(Request((str(sound),)), load_codes())
    assert [v.state for v in judged.verdicts if v.code == "GYR501"] in ([State.HOLDS], [])
    assert all(v.state is State.HOLDS for v in judged.verdicts)
    assert snapshot.of("sampled")[0].last == 12 * 33
    assert (snapshot.first_time, snapshot.last_time) == (1_700_000_001.0, 1_700_000_012.0)
    judged, _, _ = judge_paths(Request((str(path),)), load_codes())
    verdict = next(v for v in judged.verdicts if v.state is State.BROKEN)
    assert verdict.value == 5
    assert verdict.first is not None
    assert verdict.first.line == 8


def test_text_logs_win(tmp_path: Path) -> None:
    """In a folder with text logs the event files beside them are left alone, as is what W&B wrote of itself."""
    (tmp_path / "events.out.tfevents.1.host").write_bytes(b"")
    (tmp_path / "wandb").mkdir()
    (tmp_path / "wandb" / "debug.log").write_text("x\n")
    assert [Path(log.path).name for log in find_logs((str(tmp_path),))] == ["events.out.tfevents.1.host"]
    (tmp_path / "train.log").write_text("sampled=1\n")
    assert [Path(log.path).name for log in find_logs((str(tmp_path),))] == ["train.log"]


@pytest.mark.parametrize(("name", "package"), [("events.out.tfevents.1.host", "tensorboard"), ("run-a.wandb", "wandb")])
def test_missing_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, package: str) -> None:
    """Without the package one sentence names it, and the hint installs it."""
    path = tmp_path / name
    path.write_bytes(b":W&B")
    for module in ("tensorboard", "tensorboard.backend.event_processing.event_file_loader", "wandb", "wandb.proto.wandb_internal_pb2"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(GyreError, match=f"read with the package {package}, and that is not installed") as error:
        judge_paths(Request((str(path),)), load_codes())
    assert error.value.hint == f"pip install 'gyrecheck[{package}]'"


def test_cut_wandb_file(tmp_path: Path) -> None:
    """A W&B file that a killed writer left gives the records that are whole, and bytes of another kind give one sentence."""
    path = _wandb(tmp_path, 0)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 2 // 3])
    text = b"".join(event_blocks(str(path), "wandb"))
    assert text.count(b"\n") == 8
    path.write_bytes(b"\x7fELF" + b"\0" * 100)
    with pytest.raises(GyreError, match="is no W&B file"):
        list(event_blocks(str(path), "wandb"))
    assert LogFile(str(path)).size == 0


def test_damaged_event_file(tmp_path: Path) -> None:
    """Bytes that are no event file, or none at all, give one sentence."""
    pytest.importorskip("tensorboard")
    path = tmp_path / "events.out.tfevents.1.host"
    for data in (b"", bytes(range(256)) * 20):
        path.write_bytes(data)
        with pytest.raises(GyreError, match="no scalar can be read"):
            judge_paths(Request((str(path),)), load_codes())
