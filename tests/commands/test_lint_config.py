"""What a project states in its configuration (sides, entry points, carrier) outranks what lint infers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app

SAMPLER = """\
import gymnasium
import torch


@torch.no_grad()
def collect(policy, store):
    env = gymnasium.make("CartPole-v1")
    obs, _ = env.reset()
    for _ in range(128):
        obs, reward, terminated, truncated, _ = env.step(policy(obs))
        store.put({"obs": obs, "reward": reward, "policy_version": policy.version})
"""
TRAINER = """\
import torch


def update(policy, store):
    optimizer = torch.optim.Adam(policy.parameters())
    loss = policy.loss(store.get())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
DRIVER = """\
from sampler import collect
from trainer import update


def main(policy, store):
    for _ in range(10):
        collect(policy, store)
        update(policy, store)


if __name__ == "__main__":
    main(None, None)
"""
ALONE = {
    "sample": "from sampler import collect\n\n\ndef run():\n    collect(None, None)\n",
    "train": "from trainer import update\n\n\ndef run():\n    update(None, None)\n",
}


@pytest.fixture
def lint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes a configuration and a tree, and gives lint's report as JSON."""
    monkeypatch.chdir(tmp_path)

    def run(config: str, more: tuple[str, ...] = (), **files: str) -> dict[str, Any]:
        Path("gyrecheck.toml").write_text(config)
        for name, text in files.items():
            Path(name.replace("__", "/") + ".py").parent.mkdir(parents=True, exist_ok=True)
            Path(name.replace("__", "/") + ".py").write_text(text)
        words = ["lint", ".", "--output-format", "json", "--cache-dir", "kept", "--quiet", "--exit-zero", *more]
        done = CliRunner().invoke(build_app("lint"), words)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    return run


def _codes(report: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(f["code"], f["path"], f["severity"]) for f in report["findings"]]


def test_a_stated_training_file_may_not_import_environments(lint: Any) -> None:
    """A file with no training call of its own is judged as training when `sides` says so, and the reason names the configuration."""
    text = "import gymnasium\n\nSHAPE = gymnasium.make('CartPole-v1').observation_space.shape\n"
    assert _codes(lint("", learner__shapes=text)) == []
    report = lint('sides = { "learner/**" = "training" }', learner__shapes=text)
    assert _codes(report) == [("GYR201", "learner/shapes.py", "error")]
    assert report["findings"][0]["evidence"][0]["text"] == "import gymnasium"


def test_the_longest_glob_decides(lint: Any) -> None:
    """`learner/**` is training, `learner/envs.py` within it is sampling: its environment is in place."""
    text = "import gymnasium\n\nSHAPE = gymnasium.make('CartPole-v1').observation_space.shape\n"
    config = 'sides = { "learner/envs.py" = "sampling", "learner/**" = "training" }'
    assert _codes(lint(config, learner__envs=text)) == []


def test_a_stated_side_answers_the_note_on_bare_names(lint: Any) -> None:
    """GYR003 asks for the side of a module that only names speak for; once stated it asks no more."""
    text = "def turn(agent, learner, item):\n    item = agent.act(item)\n    return learner.update(item)\n"
    assert _codes(lint("", glue=text)) == [("GYR003", "glue.py", "note")]
    assert _codes(lint('sides = { "glue.py" = "neutral" }', glue=text)) == []


def test_an_unknown_side_ends_the_run(lint: Any) -> None:
    """A side that does not exist is exit 2 and names those that do."""
    Path("gyrecheck.toml").write_text('sides = { "a.py" = "trainning" }')
    Path("a.py").write_text("")
    done = CliRunner().invoke(build_app("lint"), ["lint", "."], standalone_mode=False)
    assert "one of sampling, training, handoff, neutral" in str(done.exception)


def test_stated_entry_points_make_a_program_decoupled(lint: Any) -> None:
    """A debug driver beside two entry points is no meeting of the sides; without the configuration it is the one program there is."""
    tree = {"sampler": SAMPLER, "trainer": TRAINER, "debug": DRIVER, **ALONE}
    stated = 'entrypoints = { sampler = ["sample.py"], trainer = ["train.py"] }'
    assert lint("", **tree)["topology"] == "colocated"
    after = lint(stated, **tree)
    assert after["topology"] == "decoupled"
    assert "GYR301" not in {code for code, _, _ in _codes(after)}


def test_an_entry_point_that_starts_both_sides_is_told(lint: Any) -> None:
    """A stated sampler entry that drives the trainer as well does not run alone: GYR301, an error since the layout is decoupled."""
    tree = {"sampler": SAMPLER, "trainer": TRAINER, "sample": DRIVER, "train": ALONE["train"]}
    found = _codes(lint('entrypoints = { sampler = ["sample.py"], trainer = ["train.py"] }', **tree))
    assert ("GYR301", "sample.py", "error") in found


def test_a_stated_carrier_makes_a_driver_colocated(lint: Any) -> None:
    """A driver with a real handoff object, a folder on disk that no vocabulary knows, is colocated and not synchronous."""
    sampler = SAMPLER.replace("store.put({", "write('runs/ready', {").replace("import torch\n", "import torch\nfrom disk import write\n")
    trainer = TRAINER.replace("store.get()", "read('runs/ready')").replace("import torch\n", "import torch\nfrom disk import read\n")
    disk = "def write(folder, row):\n    pass\n\n\ndef read(folder):\n    return []\n"
    tree = {"sampler": sampler, "trainer": trainer, "disk": disk, "main": DRIVER}
    assert lint("", **tree)["topology"] == "synchronous"
    assert lint('carrier = "runs/ready"', **tree)["topology"] == "colocated"
    assert lint('carrier = "disk"', **tree)["topology"] == "colocated"


def test_the_stated_carrier_is_no_side_channel(lint: Any) -> None:
    """GYR302 on a list that both sides use beside a queue is silent when that very list is the carrier, and stays for any other name."""
    text = (
        "import queue\n\nimport gymnasium\nimport torch\n\nQUEUE = queue.Queue()\nROWS = []\n\n\n@torch.no_grad()\ndef sample(policy):\n"
        "    env = gymnasium.make('CartPole-v1')\n    obs, _ = env.reset()\n    for _ in range(128):\n        ROWS.append(policy.value(obs))\n"
        "        obs, reward, terminated, truncated, _ = env.step(policy(obs))\n"
        "        QUEUE.put({'obs': obs, 'reward': reward, 'policy_version': policy.version})\n\n\n"
        "def train(policy):\n    optimizer = torch.optim.Adam(policy.parameters())\n    while True:\n        batch = QUEUE.get()\n"
        "        loss = policy.loss(batch, ROWS.pop(0))\n        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n"
    )
    only = ("--topology", "decoupled", "--select", "GYR302")
    assert [code for code, _, _ in _codes(lint("", only, both=text))] == ["GYR302"]
    assert [code for code, _, _ in _codes(lint('carrier = "both.QUEUE"', only, both=text))] == ["GYR302"]
    assert _codes(lint('carrier = "both.ROWS"', only, both=text)) == []
