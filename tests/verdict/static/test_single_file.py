"""A single-file on-policy script, as CleanRL writes them, is told one note and one warning, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app

SCRIPT = """\
import gymnasium as gym
import numpy as np
import torch

envs = gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1") for _ in range(4)])
agent = make_agent(envs)
optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
obs = torch.zeros((128, 4, 4))
dones = torch.zeros((128, 4))
next_obs = torch.Tensor(envs.reset(seed=1)[0])
next_done = torch.zeros(4)
for iteration in range(1, 100):
    for step in range(0, 128):
        obs[step] = next_obs
        dones[step] = next_done
        with torch.no_grad():
            action, logprob, _, value = agent.get_action_and_value(next_obs)
        next_obs, reward, terminations, truncations, infos = envs.step(action.numpy())
        next_done = np.logical_or(terminations, truncations)
        next_obs, next_done = torch.Tensor(next_obs), torch.Tensor(next_done)
    b_inds = np.arange(512)
    for epoch in range(4):
        np.random.shuffle(b_inds)
        for start in range(0, 512, 128):
            part = b_inds[start : start + 128]
            _, newlogprob, entropy, newvalue = agent.get_action_and_value(obs.reshape(-1, 4)[part])
            loss, approx_kl = surrogate(newlogprob, entropy, newvalue)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if approx_kl > 0.02:
            break
"""


def _found(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int]]:
    (folder / "ppo.py").write_text(text)
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(build_app("lint"), ["lint", "ppo.py", "--no-cache", "--quiet", "--output-format", "json"])
    return [(f["code"], f["severity"], f["line"]) for f in json.loads(done.stdout)["findings"]]


def test_one_note_and_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GYR301 as a note for the program, GYR309 as a warning where the end flags are joined; the early stop of the passes is right."""
    assert _found(tmp_path, SCRIPT, monkeypatch) == [("GYR301", "note", 1), ("GYR309", "warning", 19)]


def test_an_early_stop_in_the_inner_loop_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same stop one loop deeper leaves the parts only, and the next pass begins all the same: GYR217 at the `break`."""
    text = SCRIPT.replace("        if approx_kl > 0.02:\n            break\n", "            if approx_kl > 0.02:\n                break\n")
    assert ("GYR217", "note", 32) in _found(tmp_path, text, monkeypatch)


PROGRAM = """\
import sys
import gymnasium as gym
import torch


def sample(policy):
    env = gym.make("CartPole-v1")
    obs, _ = env.reset()
    with torch.no_grad():
        obs, reward, terminated, truncated, _ = env.step(policy(obs).argmax())
    return obs, reward


def learn(policy, optimizer, batch):
    optimizer.zero_grad()
    loss = policy(batch[0]).mean()
    loss.backward()
    optimizer.step()


def main(policy, optimizer):
    for _ in range(9):
        learn(policy, optimizer, sample(policy))


if __name__ == "__main__":
    main(*sys.argv)
"""


def test_sides_meet_in_the_function_that_a_module_only_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GYR301 names `main`, line 21, which calls both sides, and not the first line of the file that starts it."""
    found = _found(tmp_path, PROGRAM, monkeypatch)
    assert [row for row in found if row[0] == "GYR301"] == [("GYR301", "note", 21)]
