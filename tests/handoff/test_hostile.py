"""Files that are broken, lying or meant to harm end in one sentence, in bounded memory, and nothing of them is run."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from gyrecheck.handoff.open import open_records
from gyrecheck.model.errors import ExitCode, GyreError


class Trap:
    """Unpickling it makes a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (self.folder,)


def complaint(path: Path) -> str:
    with pytest.raises(GyreError) as caught:
        for _ in open_records([path]):
            pass
    assert caught.value.exit_code is ExitCode.COULD_NOT_CHECK
    assert "\n" not in caught.value.message
    assert str(path) in caught.value.message
    return caught.value.message


@pytest.mark.parametrize("name", ["a.pkl", "a.npy", "a.npz", "a.pt", "old.pt", "list.pt"])
def test_no_pickle_is_ever_run(tmp_path: Path, name: str) -> None:
    """A booby-trapped pickle in any wrapping is refused with the class it names, and its trap does not spring."""
    sprung = tmp_path / "sprung"
    trap, path = Trap(sprung), tmp_path / name
    if name == "a.pkl":
        path.write_bytes(pickle.dumps({"x": trap}))
    elif name.startswith("a.np"):
        save = np.save if name == "a.npy" else np.savez
        save(path, np.array([trap, 1], dtype=object))
    else:
        torch.save([trap] if name == "list.pt" else {"x": trap}, path, _use_new_zipfile_serialization=name != "old.pt")
    assert "posix.mkdir" in complaint(path)
    assert not sprung.exists()


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    """A member that says it unpacks to gigabytes from kilobytes is refused by its directory entry alone."""
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("reward.npy", b"\x00" * 4096)
    data = bytearray(path.read_bytes())
    at = data.rindex(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<I", 0xFFFFFFFE)  # uncompressed size: 4 GiB; a 64-bit one would be larger still
    data[at + 20 : at + 24] = struct.pack("<I", 1024)
    path.write_bytes(data)
    assert f"{0xFFFFFFFE:,} bytes; not read" in complaint(path)


@pytest.mark.parametrize("megabytes", [300, pytest.param(1024, marks=pytest.mark.soak)])
def test_a_true_zip_bomb_is_refused_by_its_directory(tmp_path: Path, megabytes: int) -> None:
    """Zeros packed a thousandfold are refused with both sizes before a byte of them is unpacked."""
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive, archive.open("reward.npy", "w") as member:
        np.lib.format.write_array_header_1_0(member, {"descr": "<f4", "fortran_order": False, "shape": (megabytes << 18,)})
        for _ in range(megabytes):
            member.write(bytes(1 << 20))
    assert f"{(megabytes << 20) + 128:,} bytes; not read" in complaint(path)


def test_a_lying_header_reserves_nothing(tmp_path: Path) -> None:
    """An npy header of 8 TiB in a file of a few bytes is found out before memory is asked for."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)})
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("reward.npy", head.getvalue() + bytes(80))
    assert "is damaged" in complaint(tmp_path / "a.npz")


def test_an_endless_line_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    """A line beyond the limit ends the reading at the limit, not at the line's end."""
    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        file.truncate(300 << 20)
        file.seek(0)
        file.write(b'{"obs": [')
    tracemalloc.start()
    message = complaint(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "longer than 64 MiB" in message
    assert peak < 200 << 20


TEXTS = {
    "keys.jsonl": (json.dumps({f"k{at}": at for at in range(10_000)}) + "\n", "distinct keys"),
    "deep.jsonl": ('{"a":' * 5000 + "1" + "}" * 5000 + "\n", "nested too deeply"),
    "deep.json": ("[" * 100_000, "nested too deeply"),
    "nan.jsonl": ('{NaN: 1, "reward": 2}\n', ":1: is no JSON"),
    "twice.jsonl": ('{"reward": 1}\n{"reward": 1, "reward": 2}\n', ":2: the key `reward` stands twice"),
    "inner.jsonl": ('{"obs": {"a": 1, "a": 2}}\n', "stands twice"),
    "mixed.jsonl": ('{"reward": 1}\n7\n', ":2: holds a number"),
    "list.jsonl": ('{"reward": 1}\n[1, 2]\n', ":2: holds a list"),
    "bad.jsonl": ('{"reward": 1}\n{"reward": 1,}\n{"reward": 1}\n', ":2: is no JSON"),
    "zero.jsonl": ('{"reward": 1}\n' + "\0" * 300 + "\n", ":2: is no JSON"),
    "width.csv": ("a,b\n1,2\n1\n", "row 2 has 1 cells"),
    "headless.csv": ("1,2\n3,4\n", "no header line"),
    "notes.txt": ("hello", "no trajectory file"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_out_of_order_ends_in_its_place(tmp_path: Path, name: str) -> None:
    """Each kind of broken text file is refused with the line, or what is wrong with the whole."""
    text, wanted = TEXTS[name]
    (tmp_path / name).write_text(text)
    assert wanted in complaint(tmp_path / name)


BYTES = {
    "magic.npz": b"hello world, no zip",
    "empty.npz": b"",
    "magic.parquet": b"PAR1 and nothing else",
    "magic.arrow": b"ARROW1\0\0 and nothing else",
    "long.safetensors": struct.pack("<Q", 1 << 30) + b'{"a": 1}',
    "magic.h5": b"\x89HDF\r\n\x1a\n" + b"x" * 60,
    "magic.pt": b"PK\x03\x04 and nothing else",
    "torn.jsonl.gz": b"\x1f\x8b and nothing else",
    "torn.jsonl.zst": b"\x28\xb5\x2f\xfd and nothing else",
}


@pytest.mark.parametrize("name", BYTES)
def test_wrong_bytes_are_named(tmp_path: Path, name: str) -> None:
    """Files that are not what their first bytes or name say are refused, each in a sentence."""
    (tmp_path / name).write_bytes(BYTES[name])
    complaint(tmp_path / name)


@pytest.mark.parametrize("name", ["a.npz", "a.safetensors", "a.pt", "a.parquet"])
def test_half_a_file_is_no_file(tmp_path: Path, name: str) -> None:
    """A file cut in the middle is refused, not read as far as it goes."""
    import pyarrow as pa
    from pyarrow import parquet
    from safetensors.numpy import save_file

    path = tmp_path / name
    arrays = {"reward": np.arange(1000.0), "obs": np.arange(3000.0).reshape(1000, 3)}
    {
        "a.npz": lambda: np.savez(path, **arrays),
        "a.safetensors": lambda: save_file(arrays, path),
        "a.pt": lambda: torch.save({k: torch.from_numpy(v) for k, v in arrays.items()}, path),
        "a.parquet": lambda: parquet.write_table(pa.table({"reward": arrays["reward"]}), path),
    }[name]()
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    complaint(path)


def test_a_torn_gzip_gives_its_whole_records(tmp_path: Path) -> None:
    """A gzip file that is still being written is read to its last whole record."""
    path = tmp_path / "a.jsonl.gz"
    rows = "".join(json.dumps({"reward": at, "obs": [at * 0.37, at]}) + "\n" for at in range(5000))
    data = gzip.compress(rows.encode())
    path.write_bytes(data[: len(data) * 3 // 4])
    assert 0 < sum(batch.rows for batch in open_records([path])) < 5000


def test_a_number_beyond_every_type_is_an_infinity(tmp_path: Path) -> None:
    """An integer of 400 digits neither crashes nor passes as a number."""
    (tmp_path / "a.jsonl").write_text('{"reward": ' + "9" * 400 + "}\n")
    (batch,) = open_records([tmp_path / "a.jsonl"])
    assert np.isinf(np.asarray(batch.columns["reward"].flat)).all()


def test_a_flipped_bit_in_a_stored_array_is_said(tmp_path: Path) -> None:
    """An uncompressed array whose bytes do not fit its checksum is damaged, though its shape and size are right."""
    path = tmp_path / "a.npz"
    np.savez(path, reward=np.arange(50.0))
    data = bytearray(path.read_bytes())
    data[300] ^= 1
    path.write_bytes(data)
    assert "checksum" in complaint(path)
