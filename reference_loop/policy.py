"""The networks: an actor that the sampler also holds, and a critic that only the trainer has. Both start from the seed."""

from __future__ import annotations

import math

import torch
from torch import nn

from reference_loop.config import NUM_ACTIONS, OBS_DIM

HIDDEN = 64


def tower(outputs: int, last_gain: float) -> nn.Sequential:
    """Build observation [.., D] -> 64 -> 64 -> outputs [.., outputs], tanh between, orthogonal weights, zero biases."""
    layers = nn.Sequential(nn.Linear(OBS_DIM, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, outputs))
    for index, gain in ((0, math.sqrt(2)), (2, math.sqrt(2)), (4, last_gain)):
        layer = layers[index]
        assert isinstance(layer, nn.Linear)  # noqa: S101 - narrows the type
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
    return layers


def initial_actor(seed: int) -> nn.Sequential:
    """Build the actor of policy version 0: observations [.., D] to action logits [.., A], equal for equal seeds."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return tower(NUM_ACTIONS, 0.01)


def initial_critic(seed: int) -> nn.Sequential:
    """Build the critic: observations [.., D] to values [.., 1]."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed + 1_000_003)
        return tower(1, 1.0)
