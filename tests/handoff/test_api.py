"""`gyrecheck.handoff.check` and `assert_contract`: the contract on batches in memory, of any container, at bounded cost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
import torch

from gyrecheck.handoff import ContractError, assert_contract, check
from gyrecheck.handoff.arrays import batch_of
from gyrecheck.model.errors import GyreError

B, T = 16, 10


def _batch() -> dict[str, np.ndarray]:
    """A PPO batch [B, T, ...] that keeps the contract."""
    rng = np.random.default_rng(0)
    truncated = np.zeros((B, T), dtype=bool)
    truncated[:, -1] = True
    return {
        "obs": rng.normal(size=(B, T, 4)).astype(np.float32),
        "action": rng.integers(0, 3, size=(B, T)),
        "logprob": -rng.random((B, T)).astype(np.float32) - 0.05,
        "reward": rng.normal(size=(B, T)).astype(np.float32),
        "terminated": np.zeros((B, T), dtype=bool),
        "truncated": truncated,
        "mask": np.ones((B, T), dtype=np.int64),
        "policy_version": np.full(B, 7),
    }


class Mapped:
    """Keys and items without being a Mapping, nested and with a batch size, as a TensorDict has."""

    def __init__(self, values: dict) -> None:
        self._values = values
        self.batch_size = torch.Size([B])

    def keys(self) -> Iterator[str]:
        return iter(self._values)

    def __getitem__(self, key: str):
        return self._values[key]


class Proto:
    """A batch object with tensors in one mapping and the rest in another."""

    def __init__(self, values: dict) -> None:
        self.batch = Mapped({key: torch.from_numpy(value) for key, value in values.items() if key != "policy_version"})
        self.non_tensor_batch = {"policy_version": values["policy_version"]}


class Fields(NamedTuple):
    obs: np.ndarray
    logprob: np.ndarray
    reward: np.ndarray


@dataclass
class Experience:
    obs: np.ndarray
    logprob: np.ndarray
    reward: np.ndarray
    info: dict


CONTAINERS = {
    "arrays": lambda batch: batch,
    "tensors": lambda batch: {key: torch.from_numpy(value) for key, value in batch.items()},
    "tensors that need gradients": lambda batch: {
        key: torch.from_numpy(value).requires_grad_() if value.dtype == np.float32 else torch.from_numpy(value)
        for key, value in batch.items()
    },
    "half precision": lambda batch: {
        key: torch.from_numpy(value).to(torch.bfloat16) if value.dtype == np.float32 else torch.from_numpy(value)
        for key, value in batch.items()
    },
    "big-endian and not contiguous": lambda batch: {
        key: value.astype(value.dtype.newbyteorder(">"))[:, ...].copy(order="F") for key, value in batch.items()
    },
    "a mapping by its methods": lambda batch: Mapped(dict(batch)),
    "nested": lambda batch: Mapped({"inner": Mapped(dict(batch))}),
    "a batch object": Proto,
    "records": lambda batch: [{key: value[row] for key, value in batch.items()} for row in range(B)],
    "lists": lambda batch: {key: value.tolist() for key, value in batch.items()},
}


@pytest.mark.parametrize("container", CONTAINERS, ids=str)
def test_a_good_batch_passes_in_every_container(container):
    """Arrays, tensors, mappings, batch objects and records: nothing at or above warning, and nothing raised."""
    batch = CONTAINERS[container](_batch())
    assert not [f for f in check(batch).findings if f.severity.rank >= 2]
    assert_contract(batch)


@pytest.mark.parametrize("container", CONTAINERS, ids=str)
def test_one_nan_is_found_in_every_container(container):
    """A NaN in row 4 is named with its field and row, whatever holds it."""
    values = _batch()
    values["reward"][3, 2] = np.nan
    with pytest.raises(ContractError, match="GYR320") as raised:
        assert_contract(CONTAINERS[container](values))
    (finding,) = [f for f in raised.value.report.findings if f.code == "GYR320"]
    assert finding.records == "4"
    assert finding.field.endswith("reward")


def test_dataclasses_and_named_tuples_are_batches():
    """Fields are their attributes."""
    values = _batch()
    assert "reward" in batch_of(Fields(values["obs"], values["logprob"], values["reward"]))[0].columns
    columns = batch_of(Experience(values["obs"], values["logprob"], values["reward"], {"score": np.zeros(B)}))[0].columns
    assert set(columns) == {"obs", "logprob", "reward", "info.score"}


def test_zero_filled_log_probs_break_the_contract():
    """The classic default in place of a missing field."""
    values = _batch()
    values["logprob"] = np.zeros_like(values["logprob"])
    with pytest.raises(ContractError, match="GYR304"):
        assert_contract(values)


def test_a_field_of_another_length_is_named():
    """One row less than the others is a length mismatch; one more is a bootstrapped value."""
    values = _batch()
    values["reward"] = values["reward"][:-1]
    with pytest.raises(ContractError, match=r"GYR324.*`reward` has 15 rows, the other fields have 16"):
        assert_contract(values)
    values = _batch() | {"value": np.random.default_rng(1).normal(size=(B + 1, T))}
    assert_contract(values)


def test_own_names_by_role():
    """`fields` says which key plays which role."""
    values = _batch()
    values["lp_mine"] = np.zeros_like(values.pop("logprob"))
    assert "GYR304" in {f.code for f in check(values, fields={"logprob": "lp_mine"}).findings}


def test_time_major_batches():
    """[T, B, ...] is read as trajectories when told so, and finds the same NaN at trajectory 4."""
    values = _batch()
    values["reward"][3, 2] = np.nan
    turned = {key: value.swapaxes(0, 1) if value.ndim > 1 else value for key, value in values.items()}
    (finding,) = [f for f in check(turned, time_major=True).findings if f.code == "GYR320"]
    assert finding.records == "4"


def test_order_is_judged_only_when_promised():
    """Rows drawn from a buffer are in no order: successors that do not chain are found with `ordered` alone."""
    rng = np.random.default_rng(0)
    drawn = {
        "obs": rng.normal(size=(200, 4)),
        "next_obs": rng.normal(size=(200, 4)),
        "action": rng.integers(0, 3, 200),
        "reward": rng.normal(size=200),
        "terminated": rng.random(200) < 0.1,
        "truncated": np.zeros(200, dtype=bool),
    }
    assert_contract(drawn)
    assert "GYR326" in {f.code for f in check(drawn, ordered=True).findings}


def test_the_cost_is_bounded_by_a_window_that_moves():
    """A million rows are read as 4,096; a NaN beyond the window is found when the window is moved there."""
    reward = np.zeros(1_000_000, dtype=np.float32)
    reward[:] = np.random.default_rng(0).normal(size=reward.size)
    reward[900_000] = np.nan
    batch = {"reward": reward, "action": np.random.default_rng(1).integers(0, 4, reward.size)}
    report = check(batch)
    assert report.statistics["rows"] == 4096
    assert not [f for f in report.findings if f.code == "GYR320"]
    (finding,) = [f for f in check(batch, start=899_000).findings if f.code == "GYR320"]
    assert finding.records == "900001"


def test_wide_rows_are_cut_by_their_numbers():
    """Images of 84 x 84 x 4 leave room for few rows: about a million numbers in all."""
    records, _ = batch_of({"obs": np.zeros((512, 84, 84, 4), dtype=np.uint8), "reward": np.zeros(512)})
    assert records.rows == 64


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (3, "is no batch"),
        ({}, "is no batch"),
        ("text", "is no batch"),
        ({"lr": 1.0}, "no field with rows"),
        ({"obs": np.zeros((0, 4))}, "0 rows"),
    ],
)
def test_what_is_no_batch_is_an_error(value, words):
    """A scalar, an empty dict and an empty batch are refused: nothing checked is no pass."""
    with pytest.raises(GyreError, match=words):
        check(value)


def test_the_message_names_field_rows_side_and_remedy():
    """What pytest shows is enough to mend it."""
    values = _batch()
    values["reward"][3, 2] = np.nan
    with pytest.raises(ContractError) as raised:
        assert_contract(values)
    text = str(raised.value)
    assert text.startswith("the batch breaks the handoff contract (1 finding):")
    assert "`reward` holds NaN" in text
    assert "at rows 4" in text
    assert "[sampling side]" in text
    assert "hint:" in text


def test_fail_level_and_selection():
    """`fail_on` and `ignore` mean what they mean on the command line."""
    values = _batch()
    values["reward"][3, 2] = np.nan
    assert_contract(values, ignore=("GYR320",))
    with pytest.raises(ContractError):
        assert_contract(values, fail_on="error")
    with pytest.raises(GyreError, match="unknown rule code"):
        assert_contract(values, select=("GYR99X",))


def test_the_batch_is_left_as_it_was():
    """Checking changes no number and detaches nothing."""
    tensor = torch.randn(B, T, requires_grad=True)
    before = tensor.detach().clone()
    check({"reward": tensor, "logprob": -torch.rand(B, T)})
    assert tensor.requires_grad
    assert torch.equal(tensor.detach(), before)


@pytest.mark.parametrize("statement", ["import gyrecheck.handoff", "import gyrecheck.pytest_plugin"])
def test_the_door_loads_nothing_heavy(statement):
    """Importing the package or the plugin brings neither numpy nor torch nor a reader."""
    code = (
        f"import sys; {statement}; print(sorted(m for m in sys.modules if m.split('.')[0] in ('numpy','torch','msgspec','typer','rich')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.strip()
    assert loaded == "[]" or ("numpy" not in loaded and "torch" not in loaded and "typer" not in loaded)


def test_a_tensor_without_readable_values_is_one_sentence():
    """Sparse and meta tensors hold no dense values: the field is named, nothing of torch's own message is shown."""
    for held in (torch.eye(8).to_sparse(), torch.zeros(8, 4, device="meta")):
        with pytest.raises(GyreError, match="`obs`: its values cannot be read") as caught:
            check({"obs": held, "reward": torch.ones(8)})
        assert "\n" not in caught.value.message
