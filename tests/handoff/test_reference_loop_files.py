"""The reference loop's trajectory files keep the contract; with each of its data faults on, the fault is named."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gyrecheck.commands.handoff_check import check_report
from gyrecheck.commands.handoff_diff import compare
from gyrecheck.commands.handoff_replay import replayed
from gyrecheck.handoff import assert_contract
from gyrecheck.model.finding import Severity, State

TRAINER = Path(__file__).parents[2] / "reference_loop"
POLICY = """
import torch
from reference_loop.policy import initial_actor
ACTOR = initial_actor(1)
def log_prob(observations, actions, weights):
    ACTOR.load_state_dict(weights)
    return torch.log_softmax(ACTOR(observations), -1).gather(-1, actions[:, None])[:, 0]
"""
Run = Callable[..., Path]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Iterator[Run]:
    """Run the loop in this process, three rollouts, once for each fault or layout asked for."""
    from reference_loop.loop import main

    made: dict[tuple[str, str], Path] = {}
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def loop(fault: str = "", layout: str = "slice") -> Path:
        if (fault, layout) not in made:
            folder = tmp_path_factory.mktemp(f"{fault or 'healthy'}-{layout}")
            words = ["--run-dir", str(folder), "--total-steps", "5200", "--seed", "1", "--serial", "--keep-segments", "64", "--quiet"]
            main([*words, "--layout", layout, *(["--fault", fault] if fault else [])])
            for number, handler in handlers.items():
                signal.signal(number, handler)
            made[fault, layout] = folder
        return made[fault, layout]

    yield loop
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def policy(tmp_path, monkeypatch) -> str:
    """The loop's actor as a replay function on the path."""
    (tmp_path / "loop_policy.py").write_text(POLICY)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "loop_policy", raising=False)
    return "loop_policy:log_prob"


def _grave(folder: Path, **options) -> dict[str, Severity]:
    report, _ = check_report([folder], {}, **options)
    return {f.code: f.severity for f in report.findings if f.severity.rank >= Severity.WARNING.rank}


@pytest.mark.parametrize("layout", ["slice", "step", "arrow"])
def test_healthy_files_pass(run, layout):
    """In every layout of the loop nothing at or above warning is found, in the run folder as it lies."""
    if layout == "arrow":
        pytest.importorskip("pyarrow")
    assert _grave(run(layout=layout)) == {}


def test_healthy_files_are_what_the_trainers_source_reads(run):
    """The loop's own decoder demands exactly the fields that are there."""
    report, pairs, _ = compare(run(), TRAINER)
    assert not report.findings
    assert not [pair for pair in pairs if pair.tier.value == "missing"]


def test_healthy_files_replay_to_one(run, policy):
    """Each slice's weights give its log-probs again: the ratio is 1 for every version."""
    report = replayed([run()], policy=policy, weights=run())
    assert report.verdicts[0].state is State.HOLDS
    assert len(report.tables["ratio"].rows) >= 3
    assert all(row[-1] for row in report.tables["ratio"].rows)


def test_a_missing_field_is_named(run, tmp_path):
    """Without `logprob` the run's own settings, the trainer's source and a contract written from good files each name it."""
    assert _grave(run("missing-field")) == {"GYR303": Severity.WARNING}
    report, _, _ = compare(run("missing-field"), TRAINER)
    (finding,) = [f for f in report.findings if f.severity is Severity.ERROR]
    assert finding.code == "GYR303"
    assert "`logprob`" in finding.message
    _, schema = check_report([run()], {})
    (tmp_path / "contract.toml").write_text(schema)
    assert _grave(run("missing-field"), schema=tmp_path / "contract.toml").get("GYR303") is Severity.ERROR
    assert "GYR303" not in _grave(run(), schema=tmp_path / "contract.toml")


def test_zero_filled_log_probs_are_named(run, policy):
    """Zeros are told by the check, and by replay as a constant that was filled in."""
    assert "GYR304" in _grave(run("zero-filled-field"))
    report = replayed([run("zero-filled-field")], policy=policy, weights=run("zero-filled-field"))
    assert "every recorded log-prob is 0" in report.findings[0].message


def test_a_shape_jump_is_named(run):
    """Observations of width 5 among those of width 4, at their records."""
    report, _ = check_report([run("shape-jump")], {})
    (finding,) = [f for f in report.findings if f.severity.rank >= Severity.WARNING.rank]
    assert (finding.code, finding.field) == ("GYR307", "obs")
    assert finding.records.startswith("11")


def test_merged_flags_are_named(run):
    """One `done` in place of two flags: by the check, as the run's settings bootstrap, and by the comparison with the trainer's source."""
    assert _grave(run("done-merged")) == {"GYR309": Severity.WARNING}
    report, _, _ = compare(run("done-merged"), TRAINER)
    assert {"GYR303", "GYR309"} <= {f.code for f in report.findings}


def test_a_version_label_ahead_is_named(run, policy):
    """Labels two versions ahead: replay says which weights fit, and by how much the tag is off."""
    folder = run("version-label-ahead")
    report = replayed([folder], policy=policy, weights=folder)
    (finding,) = report.findings
    assert (finding.code, finding.severity) == ("GYR402", Severity.ERROR)
    assert "the tag is 2 ahead" in finding.message


def test_decoded_slices_keep_the_contract_in_memory(run):
    """What the trainer holds after decoding passes as a batch too."""
    from reference_loop.decode import decode

    (segment, *_) = sorted((run() / "settled").rglob("*.jsonl"))
    _, slices = decode(segment.read_bytes(), "jsonl", lambda line: line)
    assert_contract({"obs": slices.obs, "action": slices.action, "logprob": slices.logprob, "reward": slices.reward})
