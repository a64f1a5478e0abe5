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
    """Of 400 steps all are counted though most are not looked at; those without gradients from step 201 on are found within 31 steps."""
    script = tmp_path / "late.py"
    script.write_text(LATE)
    code, report = judge_script(script, tmp_path)
    found = next(v for v in report.verdicts if v.code == "GYR208")
    assert code == 0
    assert report.statistics["update_calls"] == 400
    assert 200 - 31 <= found.value <= 200
    assert "of 400 optimizer steps (" in found.message
    assert " looked at)" in found.message
