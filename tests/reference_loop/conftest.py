"""Shared pieces for the loop's tests: small settings, and slices whose every number tells where it belongs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from reference_loop.config import Settings
from reference_loop.trajectory import Slices, trajectory_id

torch.set_num_threads(1)


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., Settings]:
    """Make settings of a run that takes a fraction of a second; keywords replace any of them."""
    base = Settings(run_dir=tmp_path / "run", total_steps=600, num_envs=8, rollout_steps=16, quiet=True, patience=0.0, disk_patience=0.0)
    return lambda **changes: dataclasses.replace(base, **changes)


@pytest.fixture
def slices() -> Slices:
    """Three slices of 2, 1 and 3 rows; the second terminated, the third truncated."""
    length = np.array([2, 1, 3])
    row = np.arange(6, dtype=np.float32)
    return Slices(
        trajectory_id=tuple(trajectory_id("s0", 7, index) for index in range(3)),
        policy_version=np.array([4, 4, 4]),
        episode_id=np.array([10, 11, 12]),
        step=np.array([5, 0, 497]),
        sample_step=np.array([100, 101, 103]),
        wall_clock=np.array([1000.25, 1000.5, 1000.75]),
        length=length,
        terminated=np.array([False, True, False]),
        truncated=np.array([False, False, True]),
        final_obs=np.array([[9, 9, 9, 0.1], [8, 8, 8, 0.2], [7, 7, 7, 0.3]], dtype=np.float32),
        obs=np.stack([row, row + 0.1, -row, row / 3], axis=1).astype(np.float32),
        action=np.array([0, 1, 1, 0, 0, 1]),
        logprob=-(row + 1) / 7,
        reward=np.ones(6, dtype=np.float32),
    )
