"""One rollout of N environments over T ticks, and how it is cut into trajectory slices.

Inserted reset transitions separate an environment's episodes, so a slice is a maximal run of valid ticks of one
environment; the resets themselves stay out.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from reference_loop.env import Tick
from reference_loop.trajectory import Flags, Floats, Integers, Slices, trajectory_id

RETURN_WINDOW = 100


class Rollout:
    """Collects ticks; arrays are kept as they come and copied once, at the cut."""

    def __init__(self, first_obs: Floats) -> None:
        self._obs: list[Floats] = [first_obs]
        self._action: list[Integers] = []
        self._ticks: list[Tick] = []
        self._clock: list[float] = []

    def __len__(self) -> int:
        return len(self._ticks)

    def add(self, action: Integers, tick: Tick, clock: float) -> None:
        """Append one tick: the actions [N], what they led to, and when (Unix seconds)."""
        self._action.append(action)
        self._ticks.append(tick)
        self._obs.append(tick.obs)
        self._clock.append(clock)

    def cut(self, logprob: Floats, episodes: Episodes, *, producer: str, seq: int, version: int, sample_step: int) -> Slices:
        """Cut into slices ordered by environment, then time.

        `logprob` is [T, N]; `version` is the one the whole rollout was sampled with; `sample_step` counts the producer's
        environment steps before this rollout.
        """
        valid = np.stack([tick.valid for tick in self._ticks], axis=1)
        gap = np.zeros((len(valid), 1), dtype=np.bool_)
        env, start = np.nonzero(valid & ~np.hstack([gap, valid[:, :-1]]))
        _, end = np.nonzero(valid & ~np.hstack([valid[:, 1:], gap]))
        obs = np.stack(self._obs, axis=1)
        reward = np.stack([tick.reward for tick in self._ticks], axis=1)
        terminated = np.stack([tick.terminated for tick in self._ticks], axis=1)[env, end]
        truncated = np.stack([tick.truncated for tick in self._ticks], axis=1)[env, end]
        length = end - start + 1
        count = len(env)
        first_row = np.cumsum(length) - length
        gained = np.add.reduceat(reward[valid], first_row)
        episode_id, step = episodes.assign(env, length, terminated | truncated, gained)
        return Slices(
            trajectory_id=tuple(trajectory_id(producer, seq, index) for index in range(count)),
            policy_version=np.full(count, version, dtype=np.int64),
            episode_id=episode_id,
            step=step,
            sample_step=sample_step + np.cumsum(valid.sum(axis=0))[end],
            wall_clock=np.array(self._clock)[end],
            length=length,
            terminated=terminated,
            truncated=truncated,
            final_obs=obs[env, end + 1],
            obs=obs[:, :-1][valid],
            action=np.stack(self._action, axis=1)[valid],
            logprob=logprob.T[valid],
            reward=reward[valid],
        )


class Episodes:
    """Which episode each environment is in, how far, and what the last 100 finished ones returned."""

    def __init__(self, num_envs: int, first_id: int) -> None:
        self.next_id = first_id
        self.finished = 0
        self.returns: deque[float] = deque(maxlen=RETURN_WINDOW)
        self._id = np.full(num_envs, -1, dtype=np.int64)
        self._step = np.zeros(num_envs, dtype=np.int64)
        self._return = np.zeros(num_envs)

    def assign(self, env: Integers, length: Integers, ended: Flags, gained: Floats) -> tuple[Integers, Integers]:
        """Give each slice [B], in order, its episode id and its first row's step, and book what it adds to the episode."""
        ids = np.empty_like(env)
        steps = np.empty_like(env)
        for index, place in enumerate(env):
            if self._id[place] < 0:
                self._id[place] = self.next_id
                self._step[place] = 0
                self._return[place] = 0.0
                self.next_id += 1
            ids[index] = self._id[place]
            steps[index] = self._step[place]
            self._step[place] += length[index]
            self._return[place] += gained[index]
            if ended[index]:
                self.finished += 1
                self.returns.append(float(self._return[place]))
                self._id[place] = -1
        return ids, steps

    @property
    def return_mean(self) -> float:
        """Mean return of the last 100 finished episodes; 0 before the first."""
        return sum(self.returns) / len(self.returns) if self.returns else 0.0
