"""`gyrecheck handoff replay`: log-probs computed again by a function of the user's, with the weights of the recorded version."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from typer.testing import CliRunner

from gyrecheck.commands.handoff import app
from gyrecheck.commands.handoff_options import Asked
from gyrecheck.commands.handoff_replay import replayed
from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import Severity, State

POLICY = """
import torch
def log_prob(observations, actions, weights):
    logits = observations @ weights["w"]
    return torch.log_softmax(logits, -1).gather(-1, actions[:, None])[:, 0]
def in_train_mode(observations, actions, weights):
    logits = torch.nn.functional.dropout(observations, 0.3, training=True) @ weights["w"]
    return torch.log_softmax(logits, -1).gather(-1, actions[:, None])[:, 0]
def cold(observations, actions, weights):
    return torch.log_softmax(observations @ weights["w"] / 0.5, -1).gather(-1, actions[:, None])[:, 0]
def without_weights(observations, actions):
    return torch.zeros(len(actions))
def nowhere(observations, actions):
    return torch.full((len(actions),), float("nan"))
def wrong_shape(observations, actions, weights):
    return observations @ weights["w"]
def raises(observations, actions, weights):
    raise RuntimeError("no such layer")
def leaves(observations, actions, weights):
    raise SystemExit(0)
def words(observations, actions, weights):
    return "done"
CONSTANT = 3
def talks(observations, actions, weights):
    print("from the policy")
    return log_prob(observations, actions, weights)
def of_tokens(prompt, answer, weights):
    before = torch.cat([prompt[-1:], answer[:-1]])
    return torch.log_softmax(weights["w"][before], -1).gather(-1, answer[:, None])[:, 0]
def modal(observations, actions, weights):
    both = torch.cat([observations["camera"], observations["joints"]], dim=-1)
    return torch.log_softmax(both @ weights["w"], -1).gather(-1, actions[:, None])[:, 0]
"""
D, A = 4, 3


@pytest.fixture
def run(tmp_path, monkeypatch) -> Path:
    """A folder with versions 1 to 4 of a linear policy's weights and the policy's module on the path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "replay_policy", raising=False)
    (tmp_path / "replay_policy.py").write_text(POLICY)
    (tmp_path / "weights").mkdir()
    for version in range(1, 5):
        generator = torch.Generator().manual_seed(version)
        weights = {"w": torch.randn(D, A, generator=generator)}
        save_file(weights, str(tmp_path / f"weights/v{version:06d}.safetensors"), {"policy_version": str(version)})
    return tmp_path


def _weights(version: int) -> torch.Tensor:
    return torch.randn(D, A, generator=torch.Generator().manual_seed(version))


def _records(*, tag: int = 0, noise: float = 0.0, trajectories: bool = False, versions=(1, 2, 3), each: int = 40) -> list[dict]:
    """Steps sampled by the weights of each version, tagged `tag` versions ahead."""
    rng = np.random.default_rng(0)
    rows = []
    for version in versions:
        obs = torch.from_numpy(rng.normal(size=(each, D)).astype(np.float32))
        table = torch.log_softmax(obs @ _weights(version), -1)
        action = torch.from_numpy(rng.integers(0, A, size=each))
        logprob = table.gather(-1, action[:, None])[:, 0] + noise * torch.from_numpy(rng.normal(size=each).astype(np.float32))
        steps = {"obs": obs.tolist(), "action": action.tolist(), "logprob": logprob.tolist()}
        if trajectories:
            rows += [
                {key: value[at : at + 10] for key, value in steps.items()} | {"policy_version": version + tag} for at in range(0, each, 10)
            ]
        else:
            rows += [{key: value[at] for key, value in steps.items()} | {"policy_version": version + tag} for at in range(each)]
    return rows


def _write(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("trajectories", [False, True])
def test_recorded_versions_replay_to_one(run, trajectories):
    """Steps and whole trajectories alike: with the recorded version's weights every ratio is 1, by version in the table."""
    file = _write(run / "a.jsonl", _records(trajectories=trajectories))
    report = replayed([file], policy="replay_policy:log_prob", weights=run / "weights")
    assert report.verdicts[0].state is State.HOLDS
    assert not report.findings
    assert [row[0] for row in report.tables["ratio"].rows] == ["all", "version 1", "version 2", "version 3"]
    assert report.tables["ratio"].rows[0][1] == 120


def test_a_tag_one_ahead_is_told_by_the_neighbouring_weights(run):
    """Log-probs tagged one version ahead fit the weights one version back, and that is said with both gaps."""
    file = _write(run / "a.jsonl", _records(tag=1))
    report = replayed([file], policy="replay_policy:log_prob", weights=run)
    (finding,) = report.findings
    assert (finding.code, finding.severity, finding.side) == ("GYR402", Severity.ERROR, "sampling")
    assert "the tag is 1 ahead" in finding.message
    assert "2 fit the weights of 1" in finding.message
    assert finding.records == "1-120"


def test_dropout_is_told_by_calling_twice(run):
    """A policy in train mode gives other numbers on a second call; that is the finding, not the noise it makes."""
    file = _write(run / "a.jsonl", _records())
    report = replayed([file], policy="replay_policy:in_train_mode", weights=run / "weights")
    (finding,) = report.findings
    assert "called twice" in finding.message
    assert "dropout" in finding.message


def test_a_temperature_on_replay_alone(run):
    """The same weights at another temperature are named as a temperature, which no neighbouring version explains away."""
    file = _write(run / "a.jsonl", _records(each=200))
    report = replayed([file], policy="replay_policy:cold", weights=run / "weights")
    (finding,) = report.findings
    assert "consistent with a temperature" in finding.message


def test_noise_on_the_record_is_unexplained(run):
    """Noise fits no version: the finding stays open about its cause."""
    file = _write(run / "a.jsonl", _records(noise=0.5))
    report = replayed([file], policy="replay_policy:log_prob", weights=run / "weights")
    (finding,) = report.findings
    assert "consistent with a wrong version tag" in finding.message


def test_token_records_are_replayed_one_by_one(run):
    """Prompt and answer tokens go to the function record by record; masked tokens do not count."""
    rng = np.random.default_rng(0)
    rows = []
    for index in range(12):
        prompt, answer = rng.integers(0, A, size=3).tolist(), rng.integers(0, A, size=5).tolist()
        before = torch.tensor([prompt[-1], *answer[:-1]])
        table = torch.log_softmax(_weights(2)[before], -1)
        logprobs = table.gather(-1, torch.tensor(answer)[:, None])[:, 0].tolist()
        mask = [1] * (3 + index % 3) + [0] * (2 - index % 3)
        logprobs = [value if keep else 0.0 for value, keep in zip(logprobs, mask, strict=True)]
        rows.append({"prompt_ids": prompt, "response_ids": answer, "logprobs": logprobs, "mask": mask, "policy_version": 2})
    report = replayed([_write(run / "a.jsonl", rows)], policy="replay_policy:of_tokens", weights=run / "weights")
    assert report.verdicts[0].state is State.HOLDS
    assert report.tables["ratio"].rows[0][1] == sum(sum(row["mask"]) for row in rows)


def test_several_modalities_come_as_a_dict(run):
    """Nested observations are handed over by their own names."""
    rows = [row | {"obs": {"camera": row["obs"][:1], "joints": row["obs"][1:]}} for row in _records()]
    report = replayed(
        [_write(run / "a.jsonl", rows)], Asked(fields={"obs": "obs.camera"}), policy="replay_policy:modal", weights=run / "weights"
    )
    assert report.verdicts[0].state is State.HOLDS


def test_rows_without_weights_are_not_judged_and_said(run):
    """A version that is not in the folder is left out, with what the folder holds; one ahead of it is called so."""
    report = replayed(
        [_write(run / "a.jsonl", _records(tag=2, versions=(1, 2, 3)))], policy="replay_policy:log_prob", weights=run / "weights"
    )
    assert any("40 rows of version 5" in text and "not published" in text for text in report.not_judged)
    with pytest.raises(GyreError, match="no weights for versions"):
        replayed([_write(run / "b.jsonl", _records(tag=20))], policy="replay_policy:log_prob", weights=run / "weights")


def test_both_log_probs_in_the_file_need_no_policy(run):
    """A file that carries both is judged as it is, by age where the trainer's version is there."""
    rows = [row | {"replay_logprob": row["logprob"], "trainer_version": row["policy_version"]} for row in _records()]
    report = replayed([_write(run / "a.jsonl", rows)])
    assert report.verdicts[0].state is State.HOLDS
    assert "age 0" in {row[0] for row in report.tables["ratio"].rows}
    with pytest.raises(GyreError, match="give --policy"):
        replayed([_write(run / "b.jsonl", _records())])


def test_fewer_rows_on_request(run):
    """`--records 50` replays the first fifty rows only."""
    report = replayed([_write(run / "a.jsonl", _records())], policy="replay_policy:log_prob", weights=run / "weights", records=50)
    assert report.tables["ratio"].rows[0][1] == 50


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("replay_policy", "expected MODULE:FUNCTION"),
        ("absent_module:f", "no module named"),
        ("replay_policy:log_probs", "has no function"),
        ("replay_policy:without_weights", "cannot be called as f(observations, actions, weights)"),
        ("replay_policy:wrong_shape", "returned shape"),
        ("replay_policy:raises", "raised RuntimeError: no such layer"),
        ("replay_policy:leaves", "raised SystemExit: 0"),
        ("replay_policy:words", "returned str, expected"),
        ("replay_policy:CONSTANT", "is no function"),
    ],
)
def test_a_policy_that_cannot_be_used_is_one_sentence(run, policy, words):
    """What is wrong with the function is said with its name and what was expected."""
    file = _write(run / "a.jsonl", _records())
    with pytest.raises(GyreError) as raised:
        replayed([file], policy=policy, weights=run / "weights")
    assert words in raised.value.message


def test_what_a_policy_prints_stays_out_of_the_report(run, capsys):
    """Standard output is the report's: a function that prints does so on standard error."""
    file = _write(run / "a.jsonl", _records())
    report = replayed([file], policy="replay_policy:talks", weights=run / "weights")
    assert report.verdicts[0].state is State.HOLDS
    said = capsys.readouterr()
    assert said.out == ""
    assert "from the policy" in said.err


def test_weights_folders_that_cannot_be_used(run, tmp_path):
    """No folder, no version in any name, a name that its metadata contradicts, and weights without a policy are refused."""
    file = _write(run / "a.jsonl", _records())
    with pytest.raises(GyreError, match="weights needs --policy"):
        replayed([file], weights=run)
    with pytest.raises(GyreError, match="is no folder of weights"):
        replayed([file], policy="replay_policy:log_prob", weights=run / "absent")
    (tmp_path / "empty").mkdir()
    with pytest.raises(GyreError, match="no weights file with a version"):
        replayed([file], policy="replay_policy:log_prob", weights=tmp_path / "empty")
    (run / "weights/v000001.safetensors").replace(run / "weights/v000009.safetensors")
    (run / "weights/v000002.safetensors").replace(run / "weights/v000001.safetensors")
    with pytest.raises(GyreError, match="its metadata says version 2, its name 1"):
        replayed([file], policy="replay_policy:log_prob", weights=run / "weights")


def test_the_command_line_ends_with_the_verdict(run):
    """Exit 0 where the ratio is 1, 1 where a tag is wrong, with effective sample size and clip fraction shown."""
    good, bad = _write(run / "a.jsonl", _records()), _write(run / "b.jsonl", _records(tag=1))
    options = ["--policy", "replay_policy:log_prob", "--weights", str(run / "weights"), "-q"]
    held = CliRunner().invoke(app, ["replay", str(good), *options])
    assert held.exit_code == 0, held.output
    assert "effective sample size 100%, clipped 0%" in held.stdout
    assert CliRunner().invoke(app, ["replay", str(bad), *options]).exit_code == 1


def test_a_replay_that_compares_nothing_is_undecided(run):
    """Where the policy gives NaN for every row the ratio that was asked for stays open: exit 3, also in the report's own words."""
    file = _write(run / "a.jsonl", _records())
    options = ["--policy", "replay_policy:nowhere", "--output-format", "json"]
    done = CliRunner().invoke(app, ["replay", str(file), *options])
    assert (done.exit_code, json.loads(done.stdout)["exit"]) == (3, 3)
    assert CliRunner().invoke(app, ["replay", str(file), *options, "--undecided", "ok"]).exit_code == 0
