"""Logs of training frameworks in their true shape: sound ones are believed, the place where one was broken is found."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from gyrecheck.commands.ledger_run import judge_text
from gyrecheck.model.finding import State, Verdict
from gyrecheck.rulebook.codes import load_codes
from gyrecheck.rulebook.log_formats import load_formats
from gyrecheck.verdict.judge import Judgement

sys.path.insert(0, str(Path(__file__).parents[2] / "fixtures" / "logs" / "frameworks"))

from generate import LOGS, log_of


@dataclass(frozen=True)
class Balance:
    """What the ledger says of a sound log: its state, and the quantity and number of the verdict on conservation."""

    state: State | None
    quantity: str = ""
    value: float | None = None
    total: float = 0.0
    """What the log counts as sampled, added up by hand; 0 where it counts nothing."""


@dataclass(frozen=True)
class Fault:
    """What the broken log shows. The verdict's line is the first one that holds `at`, or one of the `span` lines after it."""

    code: str
    quantity: str
    value: float
    at: str
    span: int = 0


HOLDS, OPEN = State.HOLDS, State.UNDECIDED
SOUND = {
    "counter_lines": Balance(HOLDS, "unaccounted", 0, 40 + 60 * 33),
    "verl_fully_async": Balance(HOLDS, "unaccounted", 0, 24 + 30 * 16 + 6),  # put into the queue, and 6 that overflowed
    "nemo_rl_async": Balance(HOLDS, "unaccounted", 0, 12 + 30 * 8 + 6),
    "roll": Balance(HOLDS, "unaccounted", 0, 39 * 64 + 84),
    "torchforge": Balance(HOLDS, "unaccounted", 0, 25 * 16),
    "rllib": Balance(HOLDS, "unaccounted", 0, 220 * 1000),
    "rllib_console": Balance(HOLDS, "unaccounted", 0, 16 * 4000),
    "di_engine": Balance(HOLDS, "unaccounted", 0, 40 * 640),
    "trl_async_grpo": Balance(OPEN, "taken", 40 * 32 - 10 - 11, 40 * 32),  # 10 stale, 11 queued
    "verl_file": Balance(OPEN, "taken", 220 * 16, 24 + 220 * 16 + 44),  # 24 queued, 44 overflowed
    "prime_rl_metrics": Balance(OPEN, "taken", 120 * 141 - 24 * 6, 120 * 141),
    "areal": Balance(OPEN, "taken", 40 * 17 - 40 - 64, 40 * 17),  # 40 rejected, 64 running
    "prime_rl": Balance(OPEN, "sampled"),
    "slime": Balance(OPEN, "sampled"),
    "open_instruct": Balance(OPEN, "sampled", 40 * (16 + 4 + 1)),
    "verl_v1_async": Balance(OPEN),
    "miles": Balance(OPEN),
    "skyrl": Balance(OPEN),
    "verl": Balance(None),
    "verl_one_step_off": Balance(None),
    "trl_grpo": Balance(None),
    "openrlhf": Balance(None),
    "nemo_rl_single_controller": Balance(None),
    "sample_factory": Balance(None, total=80 * 2048 + 512),
    "sb3": Balance(OPEN, total=24 * 2048),
    "cleanrl": Balance(OPEN, total=160 * 211),
    "rsl_rl": Balance(OPEN, total=18 * 98304),
    "tianshou": Balance(OPEN, total=19 * 10000 + 12 * 800),
    "skrl": Balance(OPEN, total=220 * 70),
    "spinningup": Balance(OPEN, total=80000),
}
BROKEN = {
    "counter_lines": Fault("GYR510", "unaccounted", -160, "sampler: sampled_total=1385", 3),  # 20 x 8; 40 + 40 x 33 + 25
    "verl_fully_async": Fault("GYR507", "unaccounted", 40, f"'count/total_generated_samples': {24 + 20 * 16 + 40},"),
    "nemo_rl_async": Fault("GYR510", "unaccounted", -3, "versions=[18, 18]", 26),
    "roll": Fault("GYR507", "unaccounted", 5, "start sampling, global_step=20 "),
    "torchforge": Fault("GYR507", "unaccounted", 7, "METRICS STEP 15 ", 10),
    "rllib": Fault("GYR510", "unaccounted", -1000, '"training_iteration": 150,'),
    "rllib_console": Fault("GYR507", "unaccounted", 4000, "num_env_steps_sampled: 36000", 1),
    "di_engine": Fault("GYR507", "unaccounted", 100, f" {25 * 576 - 100}.000000 |"),
    "trl_async_grpo": Fault("GYR511", "dropped_stale_share", 0.6578, "dropping stale sample"),  # (2 + 30 x 28) / 1280
    "verl_file": Fault("GYR416", "data/fully_async/trajectory_staleness/mean", 55.5, 'trajectory_staleness/mean": 2.0'),
    "prime_rl": Fault("GYR404", "off_policy", 11, "Step 30 |"),
    "prime_rl_metrics": Fault("GYR416", "off_policy/mean", 30.5, '"off_policy/mean": 2.5'),  # above 1.125 + 1 first there
    "areal": Fault("GYR416", "ppo_actor/update/version_stats/sample_staleness_theta_avg", 21, "theta_avg \u2502 3.0000e+00"),
    "slime": Fault("GYR417", "train/train_rollout_logprob_abs_diff", 0.108, ": {'train/loss'"),
    "miles": Fault("GYR416", "rollout/fully_async/avg_staleness", 16, "avg_staleness': 3.0,"),
    "skyrl": Fault("GYR404", "async/staleness_violation_count", 10, "'async/staleness_violation_count': "),
    "open_instruct": Fault("GYR404", "num_steps_off_policy", 9.5, "num_steps_off_policy: 9.50"),
    "verl": Fault("GYR517", "actor_lr", 0, " - training/global_step:60 "),
    "verl_one_step_off": Fault("GYR417", "training/rollout_probs_diff_mean", 0.083, "training/rollout_probs_diff_mean:"),
    "verl_v1_async": Fault("GYR416", "training/off_policy/trajectory_staleness/mean", 41, "trajectory_staleness/mean:np.float64(3)"),
    "trl_grpo": Fault("GYR516", "frac_reward_zero_std", 1, "'epoch': '1.41'"),
    "openrlhf": Fault("GYR517", "actor_lr", 0, "Global step 60: "),
    "nemo_rl_single_controller": Fault("GYR416", "lag", 31, "lag=3 "),
    "sample_factory": Fault("GYR416", "lag_avg", 41, "avg: 3.0,"),
    "sb3": Fault("GYR517", "learning_rate", 0, "|    learning_rate        | 0.0 "),
}


@cache
def _judged(name: str, *, broken: bool) -> Judgement:
    return judge_text("\n".join(log_of(name, broken=broken)) + "\n", load_codes())


def _verdicts(judged: Judgement, state: State) -> dict[str, Verdict]:
    return {verdict.code: verdict for verdict in judged.verdicts if verdict.state is state}


def test_every_framework_has_a_log() -> None:
    """Every format but the bundled loop's, which has runs of its own, has a log of 200 lines or more, and an expectation."""
    assert set(LOGS) == set(SOUND) == set(load_formats()) - {"reference_loop"}
    assert all(len(log_of(name, broken=broken)) >= 200 for name in LOGS for broken in (False, True))


@pytest.mark.parametrize("name", sorted(LOGS))
def test_log_is_read_by_its_own_format(name: str) -> None:
    """A framework's log, noise and all, is claimed by its own format and by no other's."""
    assert [file.format for file in _judged(name, broken=False).run.snapshot.files] == [name]


@pytest.mark.parametrize("name", sorted(SOUND))
def test_sound_log(name: str) -> None:
    """A sound log breaks nothing; its balance holds, or lacks the term that the framework does not log, with its right value."""
    judged, expected = _judged(name, broken=False), SOUND[name]
    assert _verdicts(judged, State.BROKEN) == {}
    found = [verdict for verdict in judged.verdicts if verdict.code == "GYR507"]
    assert [verdict.state for verdict in found] == ([expected.state] if expected.state else [])
    if expected.quantity:
        assert found[0].quantity == expected.quantity
    if expected.value is not None:
        assert found[0].value == expected.value


@pytest.mark.parametrize("name", sorted(LOGS))
def test_no_restart_is_seen(name: str) -> None:
    """A producer that pauses and resumes, as frameworks print it, is no restart of the run."""
    assert _judged(name, broken=False).run.snapshot.marked("restart") == ()


@pytest.mark.parametrize("name", sorted(name for name, expected in SOUND.items() if expected.total))
def test_sampled_total(name: str) -> None:
    """What was sampled, read from a sound log, is what was put into it."""
    judged = _judged(name, broken=False)
    account = next((a.sampled for a in judged.accounts if a.sampled is not None), None)
    total = account.last if account else max(s.last for s in judged.run.snapshot.of("sampled"))
    assert total == SOUND[name].total


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_broken_log(name: str) -> None:
    """The log that was broken in one place gives the right code, quantity and value, and names the line."""
    found, expected = _verdicts(_judged(name, broken=True), State.BROKEN), BROKEN[name]
    assert expected.code in found, list(found)
    verdict = found[expected.code]
    assert (verdict.quantity, verdict.value) == (expected.quantity, expected.value)
    start = next(number for number, line in enumerate(log_of(name, broken=True), 1) if expected.at in line)
    assert verdict.first is not None
    assert start <= verdict.first.line <= start + expected.span


@pytest.mark.parametrize(
    ("line", "steps"),
    [
        (
            "(TaskRunner pid=87031) step:{} - actor/entropy_loss:0.317 - actor/pg_loss:0.000 - actor/grad_norm:0.000 - actor/lr:0.000 - timing_s/update_actor:29.641",
            40,
        ),
        ("(skyrl_entrypoint pid=9) {{'async/staleness_mean': '0.8125', 'policy/policy_lr': '0.0000', 'trainer/global_step': {}}}", 40),
    ],
    ids=["verl", "skyrl"],
)
def test_small_rates_that_were_rounded_to_zero(line: str, steps: int) -> None:
    """A framework that prints three or four decimals shows a small learning rate as 0, which is no learning rate of 0."""
    judged = judge_text("".join(line.format(step) + "\n" for step in range(steps)), load_codes())
    assert _verdicts(judged, State.BROKEN) == {}


def test_logs_in_which_no_fault_can_show() -> None:
    """The logs in which no fault can show are known: they count steps and returns only."""
    assert set(LOGS) - set(BROKEN) == {"cleanrl", "rsl_rl", "tianshou", "skrl", "spinningup"}
