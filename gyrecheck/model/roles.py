"""Sides and the form of a role. The closed list of roles itself is data: `rules/roles.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Side(str, Enum):
    """Whether code touches the environment or the reward (sampling), or eats numbers for a gradient (training)."""

    SAMPLING = "sampling"
    TRAINING = "training"
    HANDOFF = "handoff"
    NEUTRAL = "neutral"


@dataclass(frozen=True, slots=True)
class Role:
    """What a symbol does, e.g. `env.step`; `gradient` marks roles that need or change gradients."""

    name: str
    side: Side
    summary: str = ""
    gradient: bool = False
