"""Idioms of code bases that were no model for the rules: nothing is told, or a note; each with a near twin that is still told."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app

AGENT = """
import torch

class Agent:
    def __init__(self, net):
        self.net, self.training = net, True
        self.optimizer = torch.optim.Adam(net.parameters())

    def act(self, obs):
        with torch.no_grad():
            return self.net(obs)

    def observe(self, obs, reward):
        {guard}
            self.update(self.net(obs).mean() * reward)

    def update(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

def run_episodes(env, agent: Agent):
    obs = env.reset()
    while True:
        obs, reward, done, info = env.step(agent.act(obs))
        agent.observe(obs, reward)
        if done:
            return reward
"""
KEPT = """
import torch

class Replayed:
    def __init__(self, fn):
        self.fn = fn

class Learner:
    def __init__(self, net):
        self.net, self.optimizer = net, torch.optim.Adam(net.parameters())
        {kept}

    def gradients(self, batch):
        loss = self.net(batch).mean()
        loss.backward()

def collect(env, net):
    learner = Learner(net)
    obs = env.reset()
    for _ in range(100):
        obs, reward, done, info = env.step(env.action_space.sample())
    return learner
"""
TWO_AGENTS = """
import torch
from torch import nn

class Soft{base}:
    def __init__(self):
        self.temperature = nn.Linear(1, 1)
        self.temperature_optimizer = torch.optim.Adam(self.temperature.parameters())

class Clipped{above}:
    def setup(self, value_net: nn.Module):
        self.value_net = value_net

    def update(self, states, optimizer):
        loss = self.value_net(states).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def told(folder, code):
    """Severities of one code's findings in a folder."""
    done = CliRunner().invoke(build_app(), ["lint", "--no-cache", "--topology", "decoupled", "--output-format", "json", str(folder)])
    return [f["severity"] for f in json.loads(done.stdout)["findings"] if f["code"] == code]


@pytest.mark.parametrize(("guard", "count"), [("if self.training:", 0), ("if reward:", 1)])
def test_learning_behind_the_mode_is_no_crossing(tmp_path, guard, count):
    """`observe` that learns only `if self.training` may be called by an evaluation; behind any other condition it is a crossing."""
    (tmp_path / "agent.py").write_text(AGENT.replace("{guard}", guard))
    assert len(told(tmp_path, "GYR101")) == count


@pytest.mark.parametrize(("kept", "count"), [("self.captured = Replayed(self.gradients)", 0), ("self.gradients(None)", 1)])
def test_a_function_given_to_a_constructor_is_not_called(tmp_path, kept, count):
    """A constructor that is handed the function that learns keeps it for later; one that calls it makes a sampler learn."""
    (tmp_path / "learner.py").write_text(KEPT.replace("{kept}", kept))
    assert len(told(tmp_path, "GYR101")) == count


@pytest.mark.parametrize(("decorator", "graves"), [("@torch.no_grad()", 0), ("", 1)])
def test_every_act_of_the_program_is_decorated(tmp_path, decorator, graves):
    """An agent of unknown class acts without a graph where all classes of the program do."""
    (tmp_path / "agent.py").write_text(
        f"import torch\n\nclass Agent:\n    {decorator}\n    def act(self, obs):\n        return self.net(obs)\n"
    )
    (tmp_path / "trainer.py").write_text(
        "import torch\n\nclass Trainer:\n    def collect(self):\n        obs = self.env.reset()\n        for _ in range(8):\n"
        "            action = self.agent.act(torch.as_tensor(obs), eval_mode=True)\n"
        "            obs, reward, done, info = self.env.step(action)\n            self.rows.append((obs, action))\n"
    )
    assert len([s for s in told(tmp_path, "GYR103") if s != "note"]) == graves


@pytest.mark.parametrize(("base", "above", "count"), [("", "", 0), ("", "(Soft)", 1)])
def test_parts_of_two_agents_are_no_siblings(tmp_path, base, above, count):
    """`self.value_net` of one agent is not missing in the optimizer of another; it is in that of the agent it inherits from."""
    (tmp_path / "agents.py").write_text(TWO_AGENTS.replace("{base}", base).replace("{above}", above))
    assert len(told(tmp_path, "GYR224")) == count


@pytest.mark.parametrize(("fill", "count"), [("torch.zeros(0)", 0), ("torch.zeros(8)", 1)])
def test_an_empty_tensor_stands_for_nothing(tmp_path, fill, count):
    """No row at all is no made-up advantage; eight zeros are."""
    (tmp_path / "batch.py").write_text(
        "import torch\n\ndef update(optimizer, batch, size):\n    if 'advantages' not in batch:\n"
        f"        batch['advantages'] = {fill}\n    loss = batch['advantages'].mean()\n    optimizer.zero_grad()\n    loss.backward()\n"
        "    optimizer.step()\n"
    )
    assert len([*told(tmp_path, "GYR304"), *told(tmp_path, "GYR312")]) == count


@pytest.mark.parametrize(
    ("source", "count"), [("torch.log_softmax(scores.masked_fill(~slots, float('-inf')), -1)", 0), ("batch['logp']", 1)]
)
def test_what_a_loss_has_computed_itself_is_not_missing(tmp_path, source, count):
    """Slots that a loss has masked with minus infinity may be made numbers again; log-probs of the sampler that are missing may not."""
    (tmp_path / "loss.py").write_text(
        "import torch\n\ndef loss(net, batch, slots, adv):\n    scores = net(batch['tokens'])\n"
        f"    logp = {source}\n    logp = torch.nan_to_num(logp, nan=0.0, neginf=0.0)\n    return -(logp.exp() * adv).sum()\n"
    )
    assert len(told(tmp_path, "GYR304")) == count
