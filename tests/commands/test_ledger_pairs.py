"""Two logs side by side: what sets them apart is named with its quantity, a pair that differs as declared is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from gyrecheck.commands.ledger_run import Request, compared
from gyrecheck.model.finding import Severity, State, Verdict
from gyrecheck.rulebook.codes import load_codes

PAIRS = Path(__file__).parents[2] / "fixtures" / "logs" / "unseen_pairs"

FOUND = (
    # Four times the updates of the same samples: by samples, the reward turns (at 262) and the critic's loss is the better one.
    ("sixteen-gradient-steps", "GYR418", "ep_return", 138.125),
    ("age-limit-inert", "GYR524", "dropped_stale", 0),
    ("age-limit-inert", "GYR404", "age_max", 9),
    # (9,900 - 733) updates for (60,000 - 4,998) steps.
    ("six-copies-one-step", "GYR525", "updates_per_sample", 0.167),
    ("ten-epochs", "GYR418", "approx_kl", 0.1171),
    ("utd-twenty", "GYR418", "entropy", 0.371),
    # Four minis an iteration bring the rate to 0 in a quarter of the run; they are declared, so the runs are alike but for that.
    ("minis-cool-early", "GYR517", "learning_rate", 0),
    # A gap that climbs to 0.1174 with a sync at every step as with one at every sixth.
    ("sync-interval-inert", "GYR420", "old_logp_diff", 0.1174),
    # 39 x 250 updates for 39 x 2,000 frames.
    ("eight-environments", "GYR525", "updates_per_sample", 0.125),
)


def _broken(name: str, which: str) -> list[Verdict]:
    paths = tuple(str(PAIRS / name / f"{which}_{side}.log") for side in "ab")
    return [v for v in compared(Request(paths), load_codes()).verdicts if v.state is State.BROKEN]


@pytest.mark.parametrize(("name", "code", "quantity", "value"), FOUND, ids=str)
def test_difference_is_named(name: str, code: str, quantity: str, value: float) -> None:
    """The verdict has the code, the quantity and the value."""
    assert (code, quantity, value) in {(v.code, v.quantity, v.value) for v in _broken(name, "input")}


@pytest.mark.parametrize("name", ["kernels-any-interval", *sorted({row[0] for row in FOUND})])
def test_declared_difference_is_left_alone(name: str) -> None:
    """More reuse that the run bears, a limit that works, environments that are trained for, kernels that differ alike: none is a finding."""
    assert [v.message for v in _broken(name, "clean") if v.severity is not Severity.NOTE] == []


def test_more_reuse_is_named_as_the_cause() -> None:
    """Updates per sampled step, 1 against 0.25, are what sets the runs apart, and the axis is what both sampled."""
    entropy = next(v for v in _broken("sixteen-gradient-steps", "input") if v.quantity == "entropy")
    assert "updates per sampled 0.25 and 1" in entropy.message
    assert "env_steps" in entropy.message
