"""Whole programs under the hook, in both directions; one process loads the library, each program is a fork of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomllib

pytest.importorskip("torch")

from gyrecheck.commands.hook_samples import judge_script
from gyrecheck.model.finding import Report, Severity, State

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
FAULTY = sorted((FIXTURES / "runtime").iterdir())
LEGITIMATE = sorted((FIXTURES / "runtime_legitimate").glob("*.py"))


def broken(report: Report, least: Severity = Severity.WARNING) -> dict[str, str]:
    """Codes at or above `least`, each with its first message."""
    return {v.code: v.message for v in reversed(report.verdicts) if v.state is State.BROKEN and v.severity.rank >= least.rank}


@pytest.mark.parametrize("case", FAULTY, ids=lambda case: case.name)
def test_the_fault_is_found(case, tmp_path):
    """Every faulty program shows its codes, and ends as it would without the hook."""
    expected = tomllib.loads((case / "expect.toml").read_text())
    code, report = judge_script(case / "input.py", tmp_path)
    assert code == expected["exit"], (tmp_path / "stderr.log").read_text()
    assert set(expected["found"]) <= set(broken(report)), broken(report)


@pytest.mark.parametrize("case", FAULTY, ids=lambda case: case.name)
def test_the_twin_is_silent(case, tmp_path):
    """The legitimate twin shows none of the case's codes and no error at all."""
    expected = tomllib.loads((case / "expect.toml").read_text())
    code, report = judge_script(case / "clean.py", tmp_path)
    assert code == 0, (tmp_path / "stderr.log").read_text()
    assert not set(expected["found"]) & set(broken(report))
    assert not broken(report, Severity.ERROR)


@pytest.mark.parametrize("script", LEGITIMATE, ids=lambda script: script.stem)
def test_ordinary_training_is_silent(script, tmp_path):
    """Q-learning, actor-critic, self-play, distillation, a frozen reference and the like raise nothing at warning level."""
    code, report = judge_script(script, tmp_path)
    assert code == 0, (tmp_path / "stderr.log").read_text()
    assert not broken(report)


def test_steps_without_data_are_named(tmp_path):
    """The second and the fourth of four updates have all-zero gradients, and the message says so with their numbers."""
    _, report = judge_script(FIXTURES / "runtime/empty-batch-still-steps/input.py", tmp_path)
    found = next(v for v in report.verdicts if v.code == "GYR208")
    assert found.value == 2
    assert found.first is not None
    assert found.first.line == 17
    assert "2 of 4 optimizer steps" in found.message
    assert "steps 2, 4" in found.message


def test_counts_of_a_whole_program(tmp_path):
    """Three rounds of 60 env steps and three passes give 180 sample calls and 9 updates, at the lines that make them."""
    _, report = judge_script(FIXTURES / "runtime/behaviour-net-starts-different/clean.py", tmp_path)
    assert report.statistics["sample_calls"] == 180
    assert report.statistics["optimizer_steps"] == 9
    assert report.statistics["weight_loads"] == 4
    rows = report.tables["call_sites"].rows
    assert ("sampling", "env.step", "entry", "__main__.RingEnv.step", 180) in rows
    assert any(row[0] == "training" and row[2] == "called from" and "learn" in str(row[3]) and row[4] == 9 for row in rows)


def test_an_env_in_its_wrappers_counts_once(tmp_path):
    """An env step through a library's wrappers is one sample call: 4 episodes of 10 steps, cut at 10, are at most 40."""
    _, report = judge_script(FIXTURES / "runtime_legitimate/gym_like_wrappers.py", tmp_path)
    assert report.statistics["sample_calls"] == 40


LATE = """
import torch
network = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
for step in range(400):
    loss = network(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    (loss * (step < 200)).backward()
    optimizer.step()
"""


def test_a_fault_that_begins_late_is_found(tmp_path):
    """Of 400 steps all are counted though most are not looked at; those without gradients from step 201 on are found within 63 steps."""
    script = tmp_path / "late.py"
    script.write_text(LATE)
    code, report = judge_script(script, tmp_path)
    found = next(v for v in report.verdicts if v.code == "GYR208")
    assert code == 0
    assert report.statistics["update_calls"] == 400
    assert 200 - 63 <= found.value <= 200
    assert "of 400 optimizer steps (" in found.message
    assert " looked at)" in found.message


TURNS = """
import torch
critic, actor = torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)
slow = torch.optim.Adam(actor.parameters(), lr=0.001)
fast = torch.optim.Adam(critic.parameters(), lr=0.001)
for step in range(600):
    rows = torch.randn(8, 4)
    fast.zero_grad()
    critic(rows).square().mean().backward()
    fast.step()
    if step % 2 == 0:
        loss = (actor(rows) - critic(rows)).square().mean()
        slow.zero_grad()
        loss.backward()
        slow.step()
"""


def test_an_actor_that_steps_every_second_time_is_no_fault(tmp_path):
    """A delayed actor clears its gradients between two of the critic's steps that are only counted: 600 + 300 steps, no finding."""
    script = tmp_path / "turns.py"
    script.write_text(TURNS)
    code, report = judge_script(script, tmp_path)
    assert (code, [v.code for v in report.verdicts]) == (0, [])
    assert report.statistics["optimizer_steps"] == report.statistics["update_calls"] == 900


LEFT = TURNS.replace("        slow.zero_grad()\n", "        if step < 300: slow.zero_grad()\n")


def test_gradients_that_are_left_later_are_found_beside_another_optimizer(tmp_path):
    """From step 300 on nothing clears the actor's gradients: found, though most steps of the critic are only counted."""
    script = tmp_path / "left.py"
    script.write_text(LEFT)
    _, report = judge_script(script, tmp_path)
    assert [v.code for v in report.verdicts] == ["GYR206"]


WRAPPED = """
import torch
class Around(torch.optim.Optimizer):
    def __init__(self, inner):
        self.inner = inner
        super().__init__(inner.param_groups, dict(lr=0.001))
    def step(self, closure=None):
        self.inner.step()
network = torch.nn.Linear(4, 1)
inner = torch.optim.Adam(network.parameters(), lr=0.001)
for _ in range(37):
    inner.zero_grad()
    network(torch.randn(8, 4)).square().mean().backward()
    inner.step()
outer = Around(inner)
for _ in range(400):
    inner.zero_grad()
    network(torch.randn(8, 4)).square().mean().backward()
    outer.step()
"""


def test_an_optimizer_within_another_counts_each_step_once(tmp_path):
    """37 steps of one optimizer, then 400 of one that steps it: 837 steps, whichever of the two is only counted."""
    script = tmp_path / "wrapped.py"
    script.write_text(WRAPPED)
    code, report = judge_script(script, tmp_path)
    assert (code, [v.code for v in report.verdicts]) == (0, [])
    assert report.statistics["optimizer_steps"] == report.statistics["update_calls"] == 837


POOLED = """
import threading
from concurrent.futures import ThreadPoolExecutor
import torch
class Env:
    def reset(self):
        return torch.rand(4)
    def step(self, act):
        return torch.rand(4), float(act), False
network = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
def collect(env):
    seen, rows = env.reset(), []
    for _ in range(8):
        with torch.no_grad():
            act = int(network(seen).argmax())
        rows.append(seen)
        seen, _, _ = env.step(act)
    return torch.stack(rows)
def learn(rows):
    optimizer.zero_grad()
    network(rows).square().mean().backward()
    optimizer.step()
envs = [Env() for _ in range(2)]
with ThreadPoolExecutor(2) as pool:
    for _ in range(20):
        for rows in list(pool.map(collect, envs)):
            learn(rows)
"""


def test_a_pool_that_is_joined_before_the_update_is_no_fault(tmp_path):
    """Two pool threads act with the very network that is trained, and stand idle at every one of the 40 steps."""
    script = tmp_path / "pooled.py"
    script.write_text(POOLED)
    code, report = judge_script(script, tmp_path)
    assert (code, [v.code for v in report.verdicts]) == (0, [])
    assert report.statistics["optimizer_steps"] == 40


BY_HAND = """
import torch
network, other = torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
second = torch.optim.SGD(other.parameters(), lr=0.01)
for step in range(90):
    rows = torch.randn(8, 4)
    first = torch.autograd.grad(network(rows).square().mean(), list(network.parameters()))
    for parameter, gradient in zip(network.parameters(), first):
        parameter.grad = gradient + 0.01 * parameter.detach()
    optimizer.step()
    if step % 3 == 0:
        second.zero_grad()
        other(rows).square().mean().backward()
        second.step()
"""


def test_gradients_given_by_hand_are_new_ones(tmp_path):
    """90 steps on gradients that `torch.autograd.grad` made, beside another network's 30 backward passes: none is used twice."""
    script = tmp_path / "by_hand.py"
    script.write_text(BY_HAND)
    code, report = judge_script(script, tmp_path)
    assert (code, [v.code for v in report.verdicts]) == (0, [])
    assert report.statistics["backward_calls"] == 30


ENDS = """
import torch
network = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=300)
for step in range(600):
    optimizer.zero_grad()
    network(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
    schedule.step()
"""


def test_a_schedule_that_ends_at_zero_is_counted_to_the_step(tmp_path):
    """A schedule of 300 steps under 600: the last 300 are at rate 0, though most of those before are only counted."""
    script = tmp_path / "ends.py"
    script.write_text(ENDS)
    _, report = judge_script(script, tmp_path)
    assert next(v.value for v in report.verdicts if v.code == "GYR209") == 300
