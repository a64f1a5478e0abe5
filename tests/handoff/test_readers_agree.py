"""The same data through every reader gives the same profile: shapes, ranges, nulls and means, whatever the file type."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pytest
import torch
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pyarrow import feather, parquet
from safetensors.numpy import save_file

from gyrecheck.commands.handoff_check import check_report
from gyrecheck.handoff.open import open_records
from gyrecheck.handoff.profile import profile
from gyrecheck.handoff.readers import arrays as readers_arrays
from gyrecheck.handoff.readers import jsonl
from gyrecheck.model.fields import FieldSeen

Arrays = dict[str, np.ndarray]


def rows_of(arrays: Arrays) -> list[dict[str, Any]]:
    size = len(next(iter(arrays.values())))
    return [{key: array[at].tolist() for key, array in arrays.items()} for at in range(size)]


def write_jsonl(path: Path, arrays: Arrays) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows_of(arrays)))


def table_of(arrays: Arrays) -> pa.Table:
    def column(array: np.ndarray) -> pa.Array:
        kind = pa.from_numpy_dtype(array.dtype)
        for _ in array.shape[1:]:
            kind = pa.list_(kind)
        return pa.array(array.tolist(), kind)

    return pa.table({key: column(array) for key, array in arrays.items()})


def write_csv(path: Path, arrays: Arrays) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(arrays)
        for row in rows_of(arrays):
            writer.writerow([json.dumps(value) for value in row.values()])


def write_hdf5(path: Path, arrays: Arrays) -> None:
    with h5py.File(path, "w") as file:
        for key, array in arrays.items():
            file[key] = array


def write_stream(path: Path, arrays: Arrays) -> None:
    table = table_of(arrays)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


WRITERS = {
    "a.jsonl": write_jsonl,
    "a.json": lambda path, arrays: path.write_text(json.dumps(rows_of(arrays))),
    "columns.json": lambda path, arrays: path.write_text(json.dumps({k: v.tolist() for k, v in arrays.items()})),
    "a.npz": lambda path, arrays: np.savez(path, **arrays),
    "packed.npz": lambda path, arrays: np.savez_compressed(path, **arrays),
    "a.safetensors": lambda path, arrays: save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, path),
    "a.pt": lambda path, arrays: torch.save({k: torch.from_numpy(np.ascontiguousarray(v)) for k, v in arrays.items()}, path),
    "a.parquet": lambda path, arrays: parquet.write_table(table_of(arrays), path),
    "a.feather": lambda path, arrays: feather.write_feather(table_of(arrays), str(path)),
    "a.arrow": write_stream,
    "a.h5": write_hdf5,
    "a.csv": write_csv,
}


def facts(field: FieldSeen) -> tuple[Any, ...]:
    return (
        field.kind,
        field.rows,
        field.absent,
        field.null,
        field.values,
        field.nan,
        field.infinite,
        field.zeros,
        field.minimum,
        field.maximum,
        field.constant,
        field.shapes,
    )


def seen(path: Path) -> dict[str, FieldSeen]:
    return {field.key: field for field in profile(open_records([path]))}


def agree(path: Path, wanted: dict[str, FieldSeen]) -> None:
    found = seen(path)
    assert found.keys() == wanted.keys(), path.name
    for key, field in found.items():
        assert facts(field) == facts(wanted[key]), (path.name, key)
        assert field.mean == pytest.approx(wanted[key].mean, rel=1e-9, abs=1e-9, nan_ok=True), path.name
        assert field.std == pytest.approx(wanted[key].std, rel=1e-6, abs=1e-6, nan_ok=True), path.name


@st.composite
def datasets(draw: st.DrawFn) -> Arrays:
    size = draw(st.integers(1, 12))
    width = draw(st.integers(1, 3))
    numbers = st.floats(-1e6, 1e6, width=32).filter(lambda x: x == 0 or abs(x) > 1e-30)
    return {
        "obs": draw(hnp.arrays(np.float32, (size, width), elements=numbers)),
        "action": draw(hnp.arrays(np.int64, size, elements=st.integers(-(2**40), 2**40))),
        "reward": draw(hnp.arrays(np.float64, size, elements=numbers)),
        "terminated": draw(hnp.arrays(np.bool_, size)),
        "grid": draw(hnp.arrays(np.float64, (size, 2, width), elements=numbers)),
    }


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(arrays=datasets())
def test_every_reader_gives_one_profile(tmp_path: Path, arrays: Arrays) -> None:
    """Whatever the file type, the profile of the same arrays is the same."""
    first = tmp_path / "first.jsonl"
    write_jsonl(first, arrays)
    wanted = seen(first)
    for name, write in WRITERS.items():
        path = tmp_path / name
        write(path, arrays)
        agree(path, wanted)
        path.unlink()


@st.composite
def faulty(draw: st.DrawFn) -> Arrays:
    """Steps of three episodes with none to three faults in them."""
    chance = np.random.default_rng(draw(st.integers(0, 1000)))
    size, length = 24, 8
    obs = chance.normal(size=(size + 1, 2)).round(3)
    last = np.arange(size) % length == length - 1
    made = {
        "episode_id": np.arange(size) // length,
        "step": np.arange(size) % length,
        "obs": obs[:-1].copy(),
        "next_obs": obs[1:].copy(),
        "action": chance.integers(0, 4, size),
        "reward": chance.normal(size=size).round(3),
        "terminated": last.copy(),
        "truncated": np.zeros(size, np.bool_),
        "logprob": -chance.uniform(0.1, 2, size).round(3),
        "policy_version": np.arange(size) // length,
    }
    made["next_obs"][last] = chance.normal(size=(3, 2)).round(3)
    at = draw(st.integers(1, size - 2))
    faults = {
        "nan": lambda: made["reward"].__setitem__(at, np.nan),
        "positive": lambda: made["logprob"].__setitem__(at, 0.5),
        "late": lambda: made.__setitem__("terminated", np.roll(last, 1)),
        "repeat": lambda: made["step"].__setitem__(at, made["step"][at - 1]),
        "chain": lambda: made["next_obs"].__setitem__(at, 9.0),
        "leak": lambda: made["next_obs"].__setitem__(slice(length - 1, size - 1, length), made["obs"][length::length]),
        "placeholder": lambda: made["action"].__setitem__(at, -1),
        "zero": lambda: made["logprob"].fill(0.0),
        "version": lambda: made["policy_version"].__setitem__(at, -1),
    }
    for name in draw(st.lists(st.sampled_from(sorted(faults)), max_size=3, unique=True)):
        faults[name]()
    return made


def found(path: Path) -> list[tuple[Any, ...]]:
    report, _ = check_report([path], {})
    return sorted((f.code, f.severity.value, f.field, f.records, f.message, f.share) for f in report.findings)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(arrays=faulty())
def test_every_reader_gives_one_judgement(tmp_path: Path, arrays: Arrays) -> None:
    """Whatever the file type, the findings in the same steps are the same, word for word."""
    first = tmp_path / "first.jsonl"
    write_jsonl(first, arrays)
    wanted = found(first)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl._Fast, "read", lambda *_: None)
        assert found(first) == wanted
    for name, write in WRITERS.items():
        path = tmp_path / name
        write(path, arrays)
        assert found(path) == wanted, name
        path.unlink()


def test_the_cut_into_batches_changes_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults on both sides of a batch's end are found as in one batch."""
    size = 60
    obs = np.arange(2.0 * (size + 1)).reshape(-1, 2)
    arrays = {
        "episode_id": np.arange(size) // 20, "step": np.arange(size) % 20, "obs": obs[:-1], "next_obs": obs[1:].copy(),
        "action": np.arange(size) % 3, "reward": np.arange(size) / 7, "terminated": np.arange(size) % 20 == 18,
        "logprob": -0.1 - np.arange(size) / 100,
    }  # fmt: skip
    arrays["step"][31] = 10
    np.savez(tmp_path / "a.npz", **arrays)
    whole = found(tmp_path / "a.npz")
    assert {"GYR310", "GYR328"} <= {code for code, *_ in whole}
    for block in (90 * 7, 90 * 10, 90 * 19):
        monkeypatch.setattr(readers_arrays, "BLOCK", block)
        assert found(tmp_path / "a.npz") == whole, block


def test_compressed_lines_are_the_lines(tmp_path: Path) -> None:
    """Gzip and zstandard around JSON lines change nothing."""
    arrays = {"reward": np.arange(500) / 4, "action": np.arange(500)}
    plain = tmp_path / "a.jsonl"
    write_jsonl(plain, arrays)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    (tmp_path / "c.jsonl.zst").write_bytes(zstandard.compress(plain.read_bytes()))
    for name in ("b.jsonl.gz", "c.jsonl.zst"):
        agree(tmp_path / name, seen(plain))


def test_odd_arrays_give_the_numbers_they_hold(tmp_path: Path) -> None:
    """Big-endian, non-contiguous, Fortran-ordered and 0-d arrays are read by value, not by layout."""
    base = np.arange(24, dtype=np.float64).reshape(6, 4)
    np.savez(
        tmp_path / "a.npz", obs=base.astype(">f8"), reward=np.arange(12.0)[::2], state=np.asfortranarray(base), policy_version=np.array(7)
    )
    found = seen(tmp_path / "a.npz")
    assert (found["obs"].minimum, found["obs"].maximum, found["obs"].mean) == (0.0, 23.0, 11.5)
    assert found["state"].mean == 11.5
    assert (found["reward"].minimum, found["reward"].maximum) == (0.0, 10.0)
    assert (found["policy_version"].rows, found["policy_version"].constant, found["policy_version"].minimum) == (6, True, 7.0)


def test_bfloat16_is_widened_exactly(tmp_path: Path) -> None:
    """bfloat16 in torch and safetensors files gives the numbers torch gives."""
    tensor = torch.tensor([1.0, -2.5, 3.140625], dtype=torch.bfloat16)
    torch.save({"reward": tensor}, tmp_path / "a.pt")
    from safetensors.torch import save_file as save_torch

    save_torch({"reward": tensor}, tmp_path / "a.safetensors")
    for name in ("a.pt", "a.safetensors"):
        field = seen(tmp_path / name)["reward"]
        assert (field.dtype, field.minimum, field.maximum) == ("bfloat16", -2.5, 3.140625)


def test_strided_tensors_share_storage(tmp_path: Path) -> None:
    """A transposed view in a torch file is read through its strides."""
    tensor = torch.arange(6, dtype=torch.float32).reshape(2, 3).T
    torch.save({"obs": tensor}, tmp_path / "a.pt")
    field = seen(tmp_path / "a.pt")["obs"]
    assert (field.rows, field.shapes[0][0], field.mean) == (3, (2,), 2.5)


def test_ragged_lists_are_counted_by_length(tmp_path: Path) -> None:
    """Lists of different lengths give each length with its number of rows and first record; empty ones are counted apart."""
    (tmp_path / "a.jsonl").write_text('{"tokens": [1, 2]}\n{"tokens": []}\n{"tokens": [3, 4]}\n{"tokens": [5]}\n')
    field = seen(tmp_path / "a.jsonl")["tokens"]
    assert field.shapes == (((2,), 2, 1), ((0,), 1, 2), ((1,), 1, 4))
    assert (field.empty, field.values, field.maximum) == (1, 5, 5.0)


def test_a_million_steps_in_constant_memory(tmp_path: Path) -> None:
    """1e6 rows come in several batches, none of which holds the whole file."""
    np.savez(tmp_path / "a.npz", obs=np.zeros((1_000_000, 4), np.float32), reward=np.ones(1_000_000))
    sizes = [batch.rows for batch in open_records([tmp_path / "a.npz"])]
    assert sum(sizes) == 1_000_000
    assert max(sizes) * 24 <= 9 << 20


def test_episode_groups_of_hdf5_are_records(tmp_path: Path) -> None:
    """Minari's and robomimic's groups give one record an episode, in the order of their numbers."""
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        for at, length in ((10, 3), (2, 2)):
            group = file.create_group(f"episode_{at}")
            group["observations"] = np.zeros((length + 1, 2))
            group["rewards"] = np.full(length, float(at))
    batches = list(open_records([tmp_path / "a.hdf5"]))
    assert [int(np.asarray(b.records)[0]) for b in batches] == [1, 2]
    assert [np.asarray(b.columns["rewards"].flat).tolist() for b in batches] == [[2.0, 2.0], [10.0, 10.0, 10.0]]


def test_d4rl_roles_are_told_apart(tmp_path: Path) -> None:
    """D4RL's terminals and timeouts are terminated and truncated."""
    from gyrecheck.rulebook.contract import load_contract

    roles = load_contract().assign(["observations", "actions", "rewards", "terminals", "timeouts"])
    assert roles.keys["terminated"] == "terminals"
    assert roles.keys["truncated"] == "timeouts"
