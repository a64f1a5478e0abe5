"""How a rollout becomes trajectory slices."""

from __future__ import annotations

import numpy as np

from reference_loop.env import CartPoles, Tick
from reference_loop.rollout import Episodes, Rollout

F, T = False, True


def tick(obs: list[float], terminated: list[bool], truncated: list[bool], valid: list[bool]) -> Tick:
    """One tick of two environments; the observation's first number tells environment and time."""
    wide = np.array([[value, 0, 0, 0] for value in obs], dtype=np.float32)
    reward = np.array(valid, dtype=np.float32)
    return Tick(wide, reward, np.array(terminated), np.array(truncated), np.array(valid))


def two_environments() -> Rollout:
    """Environment 0 terminates in its second tick and is reset in the third; environment 1 is cut by time in the last one."""
    rollout = Rollout(np.array([[0, 0, 0, 0], [100, 0, 0, 0]], dtype=np.float32))
    rollout.add(np.array([0, 1]), tick([1, 101], [F, F], [F, F], [T, T]), 10.0)
    rollout.add(np.array([1, 1]), tick([2, 102], [T, F], [F, F], [T, T]), 11.0)
    rollout.add(np.array([1, 0]), tick([50, 103], [F, F], [F, F], [F, T]), 12.0)
    rollout.add(np.array([0, 0]), tick([51, 104], [F, F], [F, T], [T, T]), 13.0)
    return rollout


def cut(rollout: Rollout, episodes: Episodes) -> object:
    """Cut with log probabilities -1 .. -8 that tell tick and environment."""
    logprob = -np.arange(1, 9, dtype=np.float32).reshape(4, 2)
    return rollout.cut(logprob, episodes, producer="s0", seq=3, version=6, sample_step=1000)


def test_slices_leave_the_inserted_reset_out() -> None:
    """Slices hold exactly the valid ticks, environment by environment, and the reset row is in none of them."""
    slices = cut(two_environments(), Episodes(2, 0))
    assert slices.length.tolist() == [2, 1, 4]
    assert slices.obs[:, 0].tolist() == [0, 1, 50, 100, 101, 102, 103]
    assert slices.action.tolist() == [0, 1, 0, 1, 1, 0, 0]
    assert slices.logprob.tolist() == [-1, -3, -7, -2, -4, -6, -8]
    assert slices.reward.tolist() == [1.0] * 7


def test_flags_and_final_observations_belong_to_the_last_row() -> None:
    """Terminated and truncated stay apart, and the final observation is the one before the reset, not after it."""
    slices = cut(two_environments(), Episodes(2, 0))
    assert slices.terminated.tolist() == [True, False, False]
    assert slices.truncated.tolist() == [False, False, True]
    assert slices.final_obs[:, 0].tolist() == [2, 51, 104]


def test_tags() -> None:
    """Each slice says its id, version, and when its last row was sampled, resets not counted as steps."""
    slices = cut(two_environments(), Episodes(2, 0))
    assert slices.trajectory_id == ("s0-000003-0000", "s0-000003-0001", "s0-000003-0002")
    assert slices.policy_version.tolist() == [6, 6, 6]
    # Valid ticks are 2, 2, 1, 2: after ticks 2 and 4 the producer has made 4 and 7 steps.
    assert slices.sample_step.tolist() == [1004, 1007, 1007]
    assert slices.wall_clock.tolist() == [11.0, 13.0, 13.0]


def test_episodes_go_on_in_the_next_rollout() -> None:
    """An unfinished episode keeps its id and counts its steps on; an ended one is followed by a new id at step 0."""
    episodes = Episodes(2, 20)
    first = cut(two_environments(), episodes)
    assert first.episode_id.tolist() == [20, 21, 22]
    assert first.step.tolist() == [0, 0, 0]
    assert list(episodes.returns) == [2.0, 4.0]
    rollout = Rollout(np.array([[51, 0, 0, 0], [104, 0, 0, 0]], dtype=np.float32))
    rollout.add(np.array([0, 0]), tick([52, 200], [T, F], [F, F], [T, F]), 14.0)
    rollout.add(np.array([0, 0]), tick([60, 201], [F, F], [F, F], [F, T]), 15.0)
    second = rollout.cut(np.zeros((2, 2), np.float32), episodes, producer="s0", seq=4, version=6, sample_step=1007)
    assert second.episode_id.tolist() == [21, 23]
    assert second.step.tolist() == [1, 0]
    assert list(episodes.returns) == [2.0, 4.0, 2.0]


def test_the_real_environment_resets_a_step_late() -> None:
    """After an episode's end the next tick of gymnasium's environment is marked as no step and rewards nothing."""
    envs = CartPoles(4, seed=0)
    ended = np.zeros(4, dtype=bool)
    resets = 0
    for _ in range(60):
        found = envs.step(np.ones(4, dtype=np.int64))
        assert (found.valid == ~ended).all()
        assert (found.reward[~found.valid] == 0).all()
        assert (found.reward[found.valid] == 1).all()
        resets += int((~found.valid).sum())
        ended = found.terminated | found.truncated
    envs.close()
    assert resets >= 16  # pushing one way ends an episode in about ten steps
