"""Which axis is time: told by evidence and said as such, never assumed."""

from __future__ import annotations

import numpy as np
import pytest

from gyrecheck.model.field_sides import Layout, SideField
from gyrecheck.rulebook.contract import load_contract
from gyrecheck.verdict.layout import tell_layout

T, B, D = 6, 4, 3


def _tell(arrays: dict[str, np.ndarray], *, time_first: bool) -> Layout:
    """Layout of [B, T, ...] arrays, exchanged to [T, B, ...] when asked; fields of one axis stay as they are."""
    given = {key: a.swapaxes(0, 1) if time_first and a.ndim > 1 else a for key, a in arrays.items()}
    contract = load_contract()
    roles = contract.assign(given)
    fields = [SideField(key, roles.roles.get(key, ""), shape=a.shape) for key, a in given.items()]
    return tell_layout(fields, given, contract)


@pytest.mark.parametrize("time_first", [False, True])
@pytest.mark.parametrize(
    ("key", "array", "words"),
    [
        ("step", np.tile(np.arange(T), (B, 1)), "counts up"),
        ("episode_id", np.repeat(np.arange(B)[:, None], T, axis=1), "stays the same"),
        ("mask", (np.arange(T)[None] < np.array([6, 3, 5, 2])[:, None]).astype(int), "ends in padding"),
        ("policy_version", np.full(B, 7), "one value a trajectory"),
    ],
)
def test_each_kind_of_evidence_tells_both_orders(key, array, words, time_first):
    """Step numbers, episode ids, padding and per-trajectory fields each tell [B, T] from [T, B] alone."""
    layout = _tell({"reward": np.zeros((B, T)), key: array}, time_first=time_first)
    assert layout.order == ("TB" if time_first else "BT")
    assert (layout.batch, layout.time) == (B, T)
    assert any(words in reason for reason in layout.reasons)


@pytest.mark.parametrize("time_first", [False, True])
def test_smooth_observations_tell_when_nothing_else_does(time_first):
    """A random walk changes less along time than across trajectories: weak evidence, said in words."""
    rng = np.random.default_rng(0)
    walk = rng.normal(size=(B, 1, D)) * 5 + np.cumsum(rng.normal(size=(B, T, D)) * 0.1, axis=1)
    layout = _tell({"reward": np.zeros((B, T)), "obs": walk}, time_first=time_first)
    assert layout.order == ("TB" if time_first else "BT")
    assert "times less" in layout.reasons[0]


def test_no_evidence_is_no_order():
    """Noise of shape [4, 6] says nothing about its axes."""
    layout = _tell(
        {"reward": np.random.default_rng(0).normal(size=(B, T)), "obs": np.random.default_rng(1).normal(size=(B, T, D))}, time_first=False
    )
    assert layout.order == ""


def test_contradicting_evidence_is_no_order():
    """A step that counts up along one axis and an episode id that is still along the other leave the order open, both said."""
    layout = _tell(
        {"reward": np.zeros((B, T)), "step": np.tile(np.arange(T), (B, 1)), "episode_id": np.tile(np.arange(T), (B, 1))}, time_first=False
    )
    assert layout.order == ""
    assert layout.reasons
    assert layout.against


def test_rows_of_steps_and_lists_of_differing_length():
    """One axis is rows of steps; a ragged second axis is trajectories."""
    assert _tell({"reward": np.zeros(9), "obs": np.zeros((9, D))}, time_first=False).order == "N"
    contract = load_contract()
    ragged = tell_layout([SideField("reward", "reward", shape=(5, -1)), SideField("obs", "obs", shape=(5, -1, D))], {}, contract)
    assert (ragged.order, ragged.batch, ragged.time) == ("BT", 5, -1)


def test_token_rows_are_sequences():
    """A row of token ids is one sequence: [B, T], whatever its length."""
    layout = _tell({"tokens": np.arange(12).reshape(3, 4), "logprobs": np.zeros((3, 4))}, time_first=False)
    assert (layout.order, layout.batch, layout.time) == ("BT", 3, 4)
