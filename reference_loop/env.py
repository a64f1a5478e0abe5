"""The only module that touches the environment: gymnasium's own CartPole vector environment.

It resets in the step *after* an episode's end (next-step autoreset), which inserts one transition per episode whose action
was ignored and whose reward is 0. `Tick.valid` is False for those; nothing that reads a tick may train on them.
"""

from __future__ import annotations

from dataclasses import dataclass

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

ENV_ID = "CartPole-v1"


@dataclass(frozen=True, slots=True)
class Tick:
    """What one step of N environments gave."""

    obs: npt.NDArray[np.float32]
    """[N, D], observed after the action; at an episode's end its final observation, since the reset comes a tick later."""
    reward: npt.NDArray[np.float32]
    """[N]"""
    terminated: npt.NDArray[np.bool_]
    """[N], the pole fell: nothing follows, the value of what follows is 0."""
    truncated: npt.NDArray[np.bool_]
    """[N], the time limit cut the episode: the value of what would follow is bootstrapped."""
    valid: npt.NDArray[np.bool_]
    """[N], False where the tick was the inserted reset."""


class CartPoles:
    """N CartPoles in lock step."""

    def __init__(self, num_envs: int, seed: int) -> None:
        self._envs = gymnasium.make_vec(ENV_ID, num_envs=num_envs, vectorization_mode="vector_entry_point")
        mode = self._envs.metadata.get("autoreset_mode")
        if mode is not AutoresetMode.NEXT_STEP:
            raise RuntimeError(f"{ENV_ID} resets in mode {mode}, and only next-step autoreset is understood here")
        self._ended = np.zeros(num_envs, dtype=np.bool_)
        self.obs: npt.NDArray[np.float32] = self._envs.reset(seed=seed)[0]

    def step(self, action: npt.NDArray[np.int64]) -> Tick:
        """Apply one action [N] to each environment; `self.obs` is then what the policy sees next."""
        valid = ~self._ended
        self.obs, reward, terminated, truncated, _ = self._envs.step(action)
        self._ended = terminated | truncated
        return Tick(self.obs, reward, terminated, truncated, valid)

    def close(self) -> None:
        """Release the environments."""
        self._envs.close()
