"""What a trainer's source reads: found statically in the shapes that loaders and train steps are written in, and nothing else."""

from __future__ import annotations

from textwrap import dedent

import pytest

from gyrecheck.handoff.source_keys import read_source_keys
from gyrecheck.model.errors import GyreError
from gyrecheck.model.key_reads import KeyRead, SourceKeys


def _read(tmp_path, text: str) -> SourceKeys:
    path = tmp_path / "trainer.py"
    path.write_text(dedent(text))
    return read_source_keys(path)


def _wanted(tmp_path, text: str) -> dict[str, KeyRead]:
    return {read.key: read for read in _read(tmp_path, text).wanted}


def test_getitem_collate_and_train_step_are_one_chain(tmp_path):
    """Raw keys of `__getitem__` are demanded; keys it produces, and keys that collate_fn and the trainer make, are not."""
    wanted = _wanted(
        tmp_path,
        """
        import json, torch
        class TrajectoryDataset:
            def __init__(self, path):
                self.records = [json.loads(line) for line in open(path)]
            def __getitem__(self, index):
                record = self.records[index]
                return {"obs": torch.tensor(record["observation"], dtype=torch.float32), "act": torch.tensor(record["action"]).long()}
        def collate_fn(items):
            return {"obs": torch.stack([item["obs"] for item in items]), "old_logp": torch.stack([item["logprob"] for item in items])}
        def train_step(model, batch):
            batch["adv"] = batch["reward"] - batch["reward"].mean()
            return (batch["adv"] * batch["old_logp"] * model(batch["obs"], batch["act"])).mean()
        """,
    )
    assert set(wanted) == {"observation", "action", "logprob", "reward"}
    assert (wanted["observation"].dtype, wanted["observation"].line) == ("float32", 8)
    assert (wanted["action"].dtype, wanted["action"].stage) == ("int64", "loader")
    assert wanted["observation"].function == "TrajectoryDataset.__getitem__"


def test_axes_are_named_where_the_shape_is_unpacked(tmp_path):
    """`B, T, D = obs.shape` names the axes of what obs was read from; einops and padding say them too."""
    source = _read(
        tmp_path,
        """
        from torch.nn.utils.rnn import pad_sequence
        from einops import rearrange
        def collate_fn(rows):
            return {"mask": pad_sequence([row["mask"] for row in rows], batch_first=True)}
        def train_step(batch):
            obs = batch["obs"]
            B, T, D = obs.shape
            x = rearrange(batch["image"], "b t c h w -> (b t) c h w")
        """,
    )
    wanted = {read.key: read for read in source.wanted}
    assert wanted["obs"].axes == ("B", "T", "D")
    assert wanted["image"].axes == ("b", "t", "c", "h", "w")
    assert source.layout == "BT"
    assert "batch_first=True" in source.layout_reason


def test_padding_without_batch_first_is_time_major(tmp_path):
    """Left at its default, torch puts time first, and that is said."""
    source = _read(
        tmp_path,
        """
        from torch.nn.utils.rnn import pad_sequence
        def collate(samples):
            return pad_sequence([sample["obs"] for sample in samples])
        """,
    )
    assert source.layout == "TB"


@pytest.mark.parametrize(
    ("read", "how", "default"),
    [
        ('batch["logprob"]', "subscript", ""),
        ("batch.logprob", "attribute", ""),
        ('batch.get("logprob")', "get", "None"),
        ('batch.get("logprob", 0.0)', "default", "0.0"),
        ('batch.get("logprob", torch.zeros_like(x))', "default", "torch.zeros_like(x)"),
        ('batch.get("logprob", other)', "get", "other"),
        ('getattr(batch, "logprob")', "attribute", ""),
        ('getattr(batch, "logprob", 0)', "default", "0"),
        ('batch.pop("logprob")', "subscript", ""),
        ('batch.select("logprob")', "select", ""),
    ],
)
def test_every_way_of_reading_a_key(tmp_path, read, how, default):
    """Subscript, attribute, get with and without a filling, getattr, pop and select are told apart."""
    found = _wanted(tmp_path, f"import torch\ndef train_step(model, batch, x, other):\n    return model({read})\n")
    assert set(found) == {"logprob"}
    assert found["logprob"].how == how
    if default != "None":
        assert found["logprob"].default == default


def test_keys_from_loops_and_constants(tmp_path):
    """A loop over a constant list, or over a field map's values, reads each of its keys."""
    wanted = _wanted(
        tmp_path,
        """
        KEYS = ("obs", "action")
        FIELD_MAP = {"old_logp": "logprob", "ret": "return"}
        def load_batch(record):
            out = {}
            for key in KEYS:
                out[key] = record[key]
            for new, old in FIELD_MAP.items():
                out[new] = record[old]
            return {name: record[name] for name in ["reward"]} | out
        """,
    )
    assert set(wanted) == {"obs", "action", "logprob", "return", "reward"}


def test_batches_are_followed_through_calls(tmp_path):
    """A batch handed to a function under another parameter name is still a batch."""
    wanted = _wanted(
        tmp_path,
        """
        def main(loader, model):
            for batch in loader:
                step(model, batch)
        def step(model, x):
            return loss(model, mb=x)
        def loss(model, mb):
            return mb["advantage"].mean()
        """,
    )
    assert set(wanted) == {"advantage"}


def test_typed_records_are_read_whole(tmp_path):
    """Fields of a record class that a decoder is made for are demanded with their dtypes; defaults are fillings."""
    wanted = _wanted(
        tmp_path,
        """
        import msgspec
        class Step(msgspec.Struct):
            obs: list[float]
            action: int
            logprob: float
            entropy: float = 0.0
            @property
            def ratio(self): return 1.0
        class RunSettings(msgspec.Struct):
            seed: int
        DECODER = msgspec.json.Decoder(Step)
        SETTINGS = msgspec.json.Decoder(RunSettings)
        def read_steps(lines):
            return [DECODER.decode(line) for line in lines]
        """,
    )
    assert set(wanted) == {"obs", "action", "logprob", "entropy"}
    assert (wanted["action"].dtype, wanted["obs"].axes, wanted["entropy"].how) == ("int64", ("L",), "default")


def test_reads_under_a_test_are_optional(tmp_path):
    """`if "mask" in batch` makes the mask optional, not demanded."""
    wanted = _wanted(
        tmp_path,
        """
        def train_step(batch):
            if "mask" in batch:
                return batch["mask"].float()
            return batch["obs"]
        """,
    )
    assert wanted["mask"].optional
    assert not wanted["obs"].optional


def test_what_is_no_batch_is_not_read(tmp_path):
    """Configurations, checkpoints, metrics, methods and the sampler's own writing demand nothing of a record."""
    wanted = _wanted(
        tmp_path,
        """
        import json, torch
        def load_model(path, config):
            checkpoint = torch.load(path)
            settings = json.loads(open("c.json").read())
            return checkpoint["model"], config["lr"], settings["seed"]
        def write_record(record, out):
            out.write(json.dumps(record["debug"]))
        def train_step(batch, metrics):
            metrics["loss"] = 1.0
            n = batch.batch_size
            return batch.to("cpu")["obs"], metrics["loss"], batch.keys()
        """,
    )
    assert set(wanted) == {"obs"}


def test_a_key_normalised_in_place_is_still_demanded(tmp_path):
    """`batch["obs"] = f(batch["obs"])` reads obs; `batch["adv"] = f(batch["reward"])` makes adv."""
    wanted = _wanted(
        tmp_path,
        """
        def train_step(batch):
            batch["obs"] = batch["obs"].to("cuda")
            batch["adv"] = batch["reward"] * 2
            return batch["obs"] * batch["adv"]
        """,
    )
    assert set(wanted) == {"obs", "reward"}


def test_exchanged_axes_are_seen_at_the_read(tmp_path):
    """A transpose of the first two axes where the field is read is noted."""
    wanted = _wanted(tmp_path, "def train_step(batch):\n    return batch['obs'].transpose(0, 1), batch['action']\n")
    assert wanted["obs"].swaps
    assert not wanted["action"].swaps


def test_a_folder_is_read_whole_and_broken_files_are_named(tmp_path):
    """Files that do not parse are named with their line; the others are still read; nothing is imported."""
    (tmp_path / "good.py").write_text("def train_step(batch):\n    return batch['obs']\n")
    (tmp_path / "bad.py").write_text("def broken(:\n")
    (tmp_path / "booby.py").write_text("raise SystemExit('imported')\n")
    found = read_source_keys(tmp_path)
    assert [read.key for read in found.wanted] == ["obs"]
    assert len(found.unread) == 1
    assert "bad.py:1: does not parse" in found.unread[0]


def test_no_python_file_is_an_error(tmp_path):
    """An empty folder, a missing path and a file that does not parse at all end with one sentence."""
    with pytest.raises(GyreError, match="holds no Python file"):
        read_source_keys(tmp_path)
    with pytest.raises(GyreError, match="no such file"):
        read_source_keys(tmp_path / "absent.py")
    broken = tmp_path / "x.py"
    broken.write_text("def (")
    with pytest.raises(GyreError, match="does not parse"):
        read_source_keys(broken)
