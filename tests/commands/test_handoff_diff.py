"""`gyrecheck handoff diff`: files against a batch, files against source, and the map that raises."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gyrecheck.commands.handoff import app
from gyrecheck.commands.handoff_diff import compare
from gyrecheck.commands.handoff_options import Asked
from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import Severity

T, B, D = 12, 8, 3
RUNNER = CliRunner()


def _arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "obs": np.cumsum(rng.normal(size=(T, B, D)), axis=0).astype(np.float32),
        "action": rng.integers(0, 4, size=(T, B)),
        "logprob": -rng.random((T, B)).astype(np.float32),
        "entropy": rng.random((T, B)).astype(np.float32),
        "reward": rng.normal(size=(T, B)),
        "step": np.tile(np.arange(T)[:, None], (1, B)),
        "terminated": np.zeros((T, B), dtype=bool),
        "truncated": np.zeros((T, B), dtype=bool),
        "policy_version": np.full(B, 7),
    }


def _batch(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    names = {"obs": "obs", "action": "actions", "logprob": "old_logp", "reward": "reward", "step": "step", "terminated": "done"}
    out = {new: arrays[old].swapaxes(0, 1)[:4] for old, new in names.items()}
    return out | {"reward": out["reward"].astype(np.float32)}


@pytest.fixture
def files(tmp_path) -> tuple[Path, Path]:
    arrays = _arrays()
    sampler, trainer = tmp_path / "sampler.npz", tmp_path / "batch.npz"
    np.savez(sampler, **arrays)
    np.savez(trainer, **_batch(arrays))
    return sampler, trainer


def test_the_two_sided_table_of_a_time_major_sampler(files):
    """The table, the layout with its evidence, the summary and the two findings of the documented example."""
    report, pairs, (mine, theirs) = compare(*files)
    assert (mine.layout.order, theirs.layout.order) == ("TB", "BT")
    assert report.summary == "same 0 · renamed 0 · needs conversion 5 (2 of them renamed) · merged 2 · missing 1 · extra 1"
    assert {(f.code, f.severity) for f in report.findings} == {
        ("GYR303", Severity.ERROR),
        ("GYR309", Severity.WARNING),
        ("GYR305", Severity.NOTE),
    }
    reasons = {p.sampler.key: p.reason for p in pairs if p.sampler}
    assert reasons["obs"] == "[T,B,D] -> [B,T,D]"
    assert reasons["reward"] == "[T,B] -> [B,T], float64 -> float32"
    assert any("`step` counts up along the first axis" in sentence for sentence in report.sentences)
    assert len(pairs) == 9


def test_exit_codes_and_formats(files):
    """A missing field gives 1; JSON carries the table; an unreadable side gives one sentence and 2."""
    result = RUNNER.invoke(app, ["diff", *map(str, files), "--output-format", "json", "-q"])
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["command"] == "handoff diff"
    assert document["tables"]["fields"]
    with pytest.raises(GyreError, match="no such file"):
        compare(files[0], files[0].parent / "absent.npz")


def test_files_against_themselves_are_the_same(files):
    """A file compared with itself has no finding and exit 0."""
    result = RUNNER.invoke(app, ["diff", str(files[0]), str(files[0]), "-q"])
    assert result.exit_code == 0, result.output
    assert "same 9 · renamed 0 · needs conversion 0" in result.stdout


def test_the_written_map_converts_and_raises(files, tmp_path):
    """The map gives the trainer's very batch, and a record without a field or with a None raises with what is there."""
    target = tmp_path / "field_map.py"
    assert RUNNER.invoke(app, ["diff", *map(str, files), "--write-map", str(target), "-q"]).exit_code == 1
    field_map = runpy.run_path(str(target))["field_map"]
    arrays = _arrays()
    out = field_map(arrays)
    for key, wanted in _batch(arrays).items():
        assert out[key].dtype == wanted.dtype
        np.testing.assert_array_equal(out[key][:4], wanted)
    for broken in ({key: value for key, value in arrays.items() if key != "logprob"}, arrays | {"logprob": None}):
        with pytest.raises(KeyError, match=r"\['logprob'\]; it has") as raised:
            field_map(broken)
        assert "entropy" in str(raised.value)


def test_an_existing_map_is_not_overwritten(files, tmp_path):
    """A file that is there stays, unless forced."""
    target = tmp_path / "field_map.py"
    target.write_text("mine")
    result = RUNNER.invoke(app, ["diff", *map(str, files), "--write-map", str(target), "-q"])
    assert isinstance(result.exception, GyreError)
    assert target.read_text() == "mine"


def _jsonl(path: Path, **extra) -> Path:
    rows = [
        {"observation": [0.1, 0.2], "action": 1, "logprob": -0.5, "reward": 1.0, "terminated": False, "truncated": False} | extra
        for _ in range(6)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


SOURCE = """
import json, torch
class TrajectoryDataset:
    def __getitem__(self, index):
        record = self.records[index]
        return {"obs": torch.tensor(record["observation"], dtype=torch.float32), "act": record["action"], "old": record["logprob"], "r": record["reward"]}
def train_step(model, batch):
    B, T, D = batch["obs"].shape
    return model(batch["obs"], batch["act"], batch["old"], batch["r"])
"""


def test_files_against_source_that_fit(tmp_path):
    """A loader that reads what is written, and makes its own names of it, has no finding."""
    (tmp_path / "trainer.py").write_text(SOURCE)
    report, _, (_, theirs) = compare(_jsonl(tmp_path / "a.jsonl"), tmp_path / "trainer.py")
    assert not report.findings
    assert {field.key for field in theirs.fields} == {"observation", "action", "logprob", "reward"}


def test_source_that_reads_what_no_record_has(tmp_path):
    """The missing key is named with the line that reads it and with what the sampler does write; a filled one is its own error."""
    (tmp_path / "trainer.py").write_text(SOURCE.replace('record["reward"]', 'record["next_obs"]'))
    report, _, _ = compare(_jsonl(tmp_path / "a.jsonl"), tmp_path / "trainer.py")
    (finding,) = report.findings
    assert (finding.code, finding.side) == ("GYR303", "sampling")
    assert "trainer.py:6" in finding.message
    assert "reward" in finding.hint
    (tmp_path / "trainer.py").write_text(SOURCE.replace('record["reward"]', 'record.get("value", 0.0)'))
    report, _, _ = compare(_jsonl(tmp_path / "a.jsonl"), tmp_path / "trainer.py")
    (finding,) = report.findings
    assert (finding.code, finding.side) == ("GYR304", "training")
    assert "filled with 0.0" in finding.message


def test_source_without_reads_is_said(tmp_path):
    """A file that reads no batch is an error with a hint, not a table of nothing."""
    (tmp_path / "trainer.py").write_text("x = 1\n")
    with pytest.raises(GyreError, match="no key that is read of a batch"):
        compare(_jsonl(tmp_path / "a.jsonl"), tmp_path / "trainer.py")


def test_a_synchronous_topology_softens_nothing_it_should_not(files):
    """Codes that are errors in every topology stay errors."""
    from gyrecheck.model.finding import Topology

    report, _, _ = compare(*files, Asked(topology=Topology.SYNCHRONOUS))
    assert report.topology == "synchronous"
    assert {f.code for f in report.findings} <= {"GYR303", "GYR305", "GYR309"}


def test_undecided_layout_is_said(tmp_path):
    """Noise of [8, 12] does not tell time from batch, and the report says what would."""
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "a.npz", obs=rng.normal(size=(8, 12, 2)), reward=rng.normal(size=(8, 12)))
    report, _, _ = compare(tmp_path / "a.npz", tmp_path / "a.npz")
    assert any("`step` or `episode_id` field would tell" in text for text in report.not_judged)


def test_a_side_without_rows_is_refused(tmp_path: Path) -> None:
    """Columns of length 0 are no side to compare with, whichever side they are on: one sentence instead of a table of missing fields."""
    np.savez(tmp_path / "zero.npz", obs=np.zeros((0, 3)), reward=np.zeros(0))
    np.savez(tmp_path / "full.npz", obs=np.ones((4, 3)), reward=np.ones(4))
    zero, full = tmp_path / "zero.npz", tmp_path / "full.npz"
    with pytest.raises(GyreError, match=r"zero\.npz: holds no record \(the sampler's side\)"):
        compare(zero, full)
    with pytest.raises(GyreError, match=r"zero\.npz: holds no record \(the trainer's side\)"):
        compare(full, zero)


@pytest.mark.parametrize("longer", ["trainer", "sampler"])
def test_the_map_adds_and_takes_off_a_last_axis_of_one(tmp_path, longer):
    """Rewards [T,B] against [T,B,1]: the map gives exactly the trainer's shape, both ways, so that nothing broadcasts to [T,B,B]."""
    arrays = _arrays()
    column = arrays | {"reward": arrays["reward"][..., None]}
    sampler, trainer = (arrays, column) if longer == "trainer" else (column, arrays)
    for name, held in (("sampler", sampler), ("trainer", trainer)):
        np.savez(tmp_path / f"{name}.npz", **held)
    target = tmp_path / "field_map.py"
    RUNNER.invoke(app, ["diff", str(tmp_path / "sampler.npz"), str(tmp_path / "trainer.npz"), "--write-map", str(target)])
    mapped = runpy.run_path(str(target))["field_map"](sampler)
    assert {key: value.shape for key, value in mapped.items()} == {key: trainer[key].shape for key in mapped}
    assert np.array_equal(mapped["reward"], trainer["reward"])


def test_the_map_names_a_none_and_does_not_list_it_as_there(tmp_path):
    """A key that holds None is absent for the map, and not among those that are there."""
    arrays = _arrays()
    np.savez(tmp_path / "sampler.npz", **arrays)
    target = tmp_path / "field_map.py"
    RUNNER.invoke(app, ["diff", str(tmp_path / "sampler.npz"), str(tmp_path / "sampler.npz"), "--write-map", str(target)])
    with pytest.raises(KeyError, match=r"no value under \['reward'\]") as caught:
        runpy.run_path(str(target))["field_map"](arrays | {"reward": None})
    assert "'reward'" not in str(caught.value).partition("it has")[2]


def test_what_is_read_is_never_written_over(tmp_path):
    """A map, a schema or a report at the place of an input is refused, forced or not, and the input stays as it was."""
    sampler, trainer = tmp_path / "sampler.npz", tmp_path / "trainer.py"
    np.savez(sampler, **_arrays())
    trainer.write_text("def train_step(batch):\n    return batch['obs'], batch['reward']\n")
    kept = sampler.read_bytes(), trainer.read_text()
    for words in (
        ["diff", str(sampler), str(trainer), "--write-map", str(trainer), "--force"],
        ["check", str(sampler), "--write-schema", str(sampler), "--force"],
        ["show", str(tmp_path), "--write-schema", str(sampler), "--force"],
        ["check", str(sampler), "--output", str(sampler), "--force"],
        ["show", str(sampler), "--output-format", f"json:{sampler}", "--force"],
    ):
        outcome = RUNNER.invoke(app, words)
        assert isinstance(outcome.exception, GyreError)
        assert "not overwritten" in str(outcome.exception)
    assert (sampler.read_bytes(), trainer.read_text()) == kept


def test_a_typed_batch_of_the_train_step_may_hold_the_trainers_own_fields(tmp_path):
    """Advantages in a record class that the train step takes are the trainer's product; in one that a loader decodes they must be in the file."""
    sampler, trainer = tmp_path / "sampler.npz", tmp_path / "trainer.py"
    np.savez(sampler, **_arrays())
    head = "import json\nfrom dataclasses import dataclass\n@dataclass\nclass Batch:\n    obs: object\n    logprob: object\n    advantages: object\n"
    step = "def train_step(model, batch: Batch):\n    return (model(batch.obs) - batch.logprob) * batch.advantages\n"
    load = "def load_batch(path):\n    return [Batch(**json.loads(line)) for line in open(path)]\n"
    missing = {}
    for name, source in (("taken", head + step), ("decoded", head + load + step)):
        trainer.write_text(source)
        report, _, _ = compare(sampler, trainer)
        missing[name] = [f.message for f in report.findings if f.severity is Severity.ERROR and "`advantages`" in f.message]
    assert missing["taken"] == []
    assert len(missing["decoded"]) == 1
