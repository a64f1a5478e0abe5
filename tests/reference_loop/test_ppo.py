"""The arithmetic of the update."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reference_loop.faults import HEALTHY
from reference_loop.ppo import Learner, advantages, entropy


def test_advantages_by_hand() -> None:
    """Two slices: one bootstrapped from its final value, one terminated; nothing flows from one into the other."""
    found = advantages(
        np.array([1, 1, 1], np.float32), np.array([2, 4, 6], np.float32), np.array([8, 99], np.float32), np.array([2, 1]),
        np.array([False, True]), gamma=0.5, gae_lambda=0.5,
    )  # fmt: skip
    # Row 1: 1 + 0.5 * 8 - 4 = 1. Row 0: 1 + 0.5 * 4 - 2 = 1, plus 0.25 * 1. Row 2: terminated, 1 + 0 - 6 = -5.
    assert found.tolist() == [1.25, 1.0, -5.0]


def test_a_truncated_slice_is_bootstrapped() -> None:
    """Only termination cuts the value off; where the time limit cut, the final value counts."""
    cut, ended = (
        advantages(np.ones(1, np.float32), np.zeros(1, np.float32), np.full(1, 10, np.float32), np.array([1]), np.array([flag]),
                   gamma=0.9, gae_lambda=1.0)
        for flag in (False, True)
    )  # fmt: skip
    assert cut.tolist() == [10.0]
    assert ended.tolist() == [1.0]


def test_entropy_of_a_fair_coin() -> None:
    """Two equal logits have ln 2 nats."""
    assert entropy(torch.zeros(3, 2)).item() == pytest.approx(0.693147, abs=1e-6)


def test_the_first_ratio_is_one(settings, slices) -> None:
    """With log probabilities recorded by the same weights the ratio starts at 1, so at version 0 both sides hold one policy."""
    learner = Learner(settings(epochs=1, minibatches=1), HEALTHY)
    with torch.no_grad():
        logits = learner.actor(torch.from_numpy(slices.obs))
        recorded = torch.log_softmax(logits, -1).gather(-1, torch.from_numpy(slices.action)[:, None]).squeeze(-1)
    slices.logprob[:] = recorded.numpy()
    stats = learner.update(slices, 0)
    assert stats.ratio_mean == pytest.approx(1.0, abs=1e-6)
    assert stats.clip_fraction == 0.0


def test_restore_goes_on_exactly(settings, slices) -> None:
    """Two updates in one go, and one update, a restore into a fresh learner and another one, give the same bits."""
    straight = Learner(settings(), HEALTHY)
    straight.update(slices, 0)
    saved = {name: value.clone() for name, value in straight.tensors().items()}
    straight.update(slices, 1)
    resumed = Learner(settings(), HEALTHY)
    resumed.restore(saved, 1, 16)
    stats = resumed.update(slices, 1)
    for name, value in straight.tensors().items():
        assert torch.equal(value, resumed.tensors()[name]), name
    # 600 planned steps / (8 * 16) is about 5 updates; the second one has 4/5 of the first rate.
    assert stats.learning_rate == pytest.approx(0.8 * settings().learning_rate)
