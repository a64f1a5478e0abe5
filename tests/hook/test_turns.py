"""Functions that take turns on one environment: who goes on from an observation that is no longer the environment's."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from gyrecheck.commands.hook_samples import judge_script
from gyrecheck.model.finding import State

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
CASE = FIXTURES / "runtime/evaluation-on-the-collectors-env"


def broken(report):
    """Verdicts by code."""
    return {v.code: v for v in report.verdicts if v.state is State.BROKEN}


def test_an_evaluation_inside_the_update_is_counted_to_the_step(tmp_path):
    """Six evaluations of 30 steps and one reset each lie in six updates, at the line that calls them."""
    _, report = judge_script(CASE / "input.py", tmp_path)
    found = broken(report)
    inside = found["GYR204"]
    assert (inside.quantity, inside.value) == ("env_steps_inside_update", 180)
    assert inside.first is not None
    assert inside.first.line == 70
    taken = found["GYR121"]
    assert (taken.quantity, taken.value) == ("env_resets_inside_update", 6)
    assert "5 times" in taken.message  # nobody collects after the last one


def test_an_evaluation_from_the_outer_loop_is_no_rollout_inside_an_update(tmp_path):
    """The same environment, played between two updates by the outer loop: its collector is disturbed, no update is named."""
    script = tmp_path / "outer.py"
    text = (CASE / "input.py").read_text()
    text = text.replace("        return peek(env, self.net)\n", "").replace(
        "        seen.append(who.improve(rows, env))\n", "        who.improve(rows, env)\n        seen.append(peek(env, net))\n"
    )
    script.write_text(text)
    _, report = judge_script(script, tmp_path)
    assert broken(report)["GYR121"].quantity == "env_resets_between_two_collections"
    assert "GYR204" not in broken(report)


def test_a_reset_before_collecting_goes_on_is_no_fault(tmp_path):
    """With a new episode after each evaluation nothing is said."""
    script = tmp_path / "again.py"
    text = (CASE / "input.py").read_text()
    script.write_text(
        text.replace(
            "        rows = []\n        for _ in range(amount)",
            "        rows, self.obs = [], self.env.reset()[0]\n        for _ in range(amount)",
        )
    )
    code, report = judge_script(script, tmp_path)
    assert code == 0
    assert broken(report) == {}
