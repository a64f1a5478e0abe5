"""A graph that is trained on is no oversight, and a guard is put on without asking only where nothing but sampling can follow."""

from pathlib import Path

import pytest

HEAD = "import torch\n\n\n"
GROUP = """class GroupTrainer:
    def compute_loss(self, prompts):
        full = self.actor.generate(prompts, max_new_tokens=64)
        with torch.no_grad():
            rew = self.reward_model(full).logits[:, 0]
        logp = self.actor(full).logits.log_softmax(-1).gather(-1, full[..., None]).sum((1, 2))
        return -((rew - rew.mean()) * logp).mean()

    def step(self, prompts):
        loss = self.compute_loss(prompts)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
"""
LIBRARY = """from transformers import Trainer


class PreferenceTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False):
        full = model.generate(inputs["prompt_ids"], max_new_tokens=32)
        logp = model(full).logits.log_softmax(-1).amax(-1).sum(1)
        return -(inputs["advantage"] * logp).mean()
"""
EPISODE = """def {name}(env, policy):
    obs, _ = env.reset()
    logps, rews, done = [], [], False
    while not done:
        dist = policy(obs)
        action = dist.sample()
        obs, reward, term, trunc, _ = env.step(action)
        logps.append(dist.log_prob(action))
        rews.append(reward)
        done = term or trunc
    return -(torch.stack(logps) * torch.tensor(rews)).sum()


def train(env, policy, critic, opt, batch):
    for _ in range(100):
        result = {name}(env, policy)
        opt.zero_grad()
        result.backward()
        critic(batch).sum().backward()
        opt.step()
"""
APART = """class Agent:
    def run(self, env, opt):
        for _ in range(10):
            self.learn(self.rollout(env), opt)

    def rollout(self, env):
        obs, _ = env.reset()
        logps, rews = [], []
        for _ in range(5):
            dist = self.net(obs)
            action = dist.sample()
            obs, reward, term, trunc, _ = env.step(action)
            logps.append(dist.log_prob(action))
            rews.append(reward)
        return logps, rews

    def learn(self, kept, opt):
        logps, rews = kept
        loss = -(torch.stack(logps) * torch.tensor(rews)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
OTHER = HEAD + "def fit(policy, batch, opt):\n    loss = policy(batch).mean()\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
SAMPLER = """import gymnasium as gym
from torch import nn


def rollout(policy: nn.Module, rows):
    env = gym.make("CartPole-v1")
    obs, _ = env.reset()
    for _ in range(64):
        value = policy(obs)
        obs, reward, terminated, truncated, _ = env.step(0)
        rows.append({"obs": obs, "value": value})
"""
MAIN = '\n\nif __name__ == "__main__":\n    rollout(nn.Linear(4, 2), [])\n'
LEARN = """

def main(policy: nn.Module, opt):
    rows = []
    rollout(policy, rows)
    loss = policy(rows[0]["obs"]).mean() - rows[0]["value"].mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    "body",
    [GROUP, LIBRARY, EPISODE.format(name="episode_loss"), EPISODE.format(name="play_one"), APART],
    ids=["loss", "library", "episode", "named", "apart"],
)
def test_a_graph_that_is_trained_on_is_no_oversight(run, body):
    """A forward in a loss, in what backward runs on, or in what a learner without a forward uses: silent, whatever other files do."""
    Path("a.py").write_text(HEAD + body)
    Path("other.py").write_text(OTHER)
    assert "GYR103" not in run("lint", "--output-format", "concise").out
    run("lint", "--fix")
    assert Path("a.py").read_text() == HEAD + body


@pytest.mark.parametrize(("tail", "fixed"), [(MAIN, True), ("", False), (LEARN, False)], ids=["sampler", "uncalled", "learner"])
def test_the_guard_is_put_on_only_where_all_callers_only_sample(run, tail, fixed):
    """The finding stands each time; without a known caller, or with one that learns, the guard waits for --unsafe-fixes."""
    Path("a.py").write_text(SAMPLER + tail)
    assert "a.py:9:17: warning GYR103" in run("lint", "--output-format", "concise").out
    run("lint", "--fix")
    assert ("@torch.no_grad()" in Path("a.py").read_text()) is fixed
