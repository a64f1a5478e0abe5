"""Invented logs in many phrasings: each broken one is named with quantity, value and line; each legitimate one stays silent.

The faults are built in by hand: e.g. `perstep` loses 5 a step from line 7 to 14 (8 x 5 = 40), `inflight_lost` drops the 32 that were
sent and neither finished nor in flight after the restart, `over` counts each token once a rank of 8.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gyrecheck.commands.ledger_run import judge_text
from gyrecheck.model.finding import Severity, State
from gyrecheck.rulebook.codes import load_codes

KINDS = Path(__file__).parents[3] / "fixtures" / "logs" / "kinds"
BROKEN = (
    ("allstale", "GYR503", "learned", 0, 1),
    ("batch_never_comes", "GYR515", "have", 256, 1),
    ("broadcast_not_loaded", "GYR406", "steps with weights", 0, 2),
    ("capacity_below_batch", "GYR514", "replay buffer capacity", 1000, 1),
    ("cfg", "GYR514", "max_age", 1, 1),
    ("csv", "GYR507", "unaccounted", 40, 7),
    ("dup", "GYR510", "unaccounted", -180, 5),
    ("dupresume", "GYR510", "repeats", 32, 7),
    ("filt", "GYR511", "dropped_filter_share", 0.9219, 1),
    ("flat", "GYR516", "zero_std_groups", 1, 1),
    ("flat_from_step_11", "GYR516", "frac_reward_zero_std", 1, 11),
    ("frozen_engine", "GYR406", "engine weights", 2, 2),
    ("grow", "GYR416", "policy lag", 7.6, 6),
    ("inflight_lost", "GYR507", "unaccounted", 32, 9),
    ("label_ahead", "GYR408", "sample_version", 9, 7),
    ("lag_resume", "GYR404", "staleness_max", 9, 12),
    ("level_over_limit", "GYR404", "Off-policy level", 7, 10),
    ("lr", "GYR517", "lr", 0, 21),
    ("mini", "GYR514", "train_batch_size", 128, 1),
    ("over", "GYR518", "tokens_trained", 640000, 1),
    ("perstep", "GYR507", "unaccounted", 40, 7),
    ("pv", "GYR403", "policy_version", 0, 1),
    ("ratio", "GYR402", "ratio_mean", 1.4309, 1),
    ("ratio_exactly_one", "GYR407", "ratio", 1, 1),
    ("requeued_twice", "GYR510", "unaccounted", -90, 6),
    ("saw", "GYR417", "logprob diff mean", 0.0485, 2),
    ("schedule_in_samples", "GYR517", "lr", 0, 8),
    ("stale_takes_over", "GYR520", "rollouts_trained", 384, 3),
    ("stop", "GYR520", "optim_steps", 50, 5),
    ("stuck", "GYR515", "have", 96, 1),
    ("vback", "GYR408", "lag", -81, 4),
    ("warm", "GYR514", "total_timesteps", 50000, 1),
    ("warmup_beyond_end", "GYR514", "max_steps", 500, 1),
)


@pytest.mark.parametrize(("name", "code", "quantity", "value", "line"), BROKEN, ids=[row[0] for row in BROKEN])
def test_fault_is_named(name: str, code: str, quantity: str, value: object, line: int) -> None:
    """The verdict has the code, the quantity in the log's own words, the value, and the first line."""
    judged = judge_text((KINDS / f"{name}.bad.log").read_text(encoding="utf-8"), load_codes())
    found = {v.code: v for v in judged.verdicts if v.state is State.BROKEN}
    assert code in found, list(found)
    verdict = found[code]
    assert (verdict.quantity, verdict.value) == (quantity, value)
    assert line in {verdict.first.line if verdict.first else 0, *(e.line for e in verdict.evidence)}


@pytest.mark.parametrize("path", sorted(KINDS.glob("*.ok.log")), ids=lambda p: p.name)
def test_legitimate_log_is_silent(path: Path) -> None:
    """No verdict above a note is broken."""
    judged = judge_text(path.read_text(encoding="utf-8"), load_codes())
    assert [(v.code, v.message) for v in judged.verdicts if v.state is State.BROKEN and v.severity is not Severity.NOTE] == []
