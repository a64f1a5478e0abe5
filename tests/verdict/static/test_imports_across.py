"""An environment's maker is known in a training module by whatever name it comes in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app

LEARNER = """\
import torch
{line}

MAKERS = {{"gym": {name}}}


def train(model, batch):
    optimizer = torch.optim.Adam(model.parameters())
    loss = model(batch).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def _lines(tree: dict[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    for name, text in tree.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.chdir(folder)
    words = ["lint", ".", "--output-format", "json", "--no-cache", "--quiet", "--topology", "decoupled", "--select", "GYR201"]
    return [(f["path"], f["line"]) for f in json.loads(CliRunner().invoke(build_app("lint"), words).stdout)["findings"]]


@pytest.mark.parametrize(
    ("line", "name"),
    [("from gymnasium import make", "make"), ("from lib.api import make", "make"), ("from lib.deep import create", "create")],
)
def test_reexported_maker(line: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make`, taken from the library, from a file that re-exports it, or from a second one under another name: GYR201 at the import."""
    tree = {
        "lib/__init__.py": "",
        "lib/api.py": "from gymnasium import make\n",
        "lib/deep.py": "from .api import make as create\n",
        "train.py": LEARNER.format(line=line, name=name),
    }
    assert _lines(tree, tmp_path, monkeypatch) == [("train.py", 2)]


def test_reexport_of_something_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A re-exported space, a name that the file does not have, and a maker of our own with the same name are no environment library."""
    tree = {
        "lib/__init__.py": "",
        "lib/api.py": "from gymnasium.spaces import Box\n\n\ndef make(name):\n    return name\n",
        "one.py": LEARNER.format(line="from lib.api import Box", name="Box"),
        "two.py": LEARNER.format(line="from lib.api import make", name="make"),
        "three.py": LEARNER.format(line="from lib.api import absent", name="absent"),
    }
    assert _lines(tree, tmp_path, monkeypatch) == []


def test_a_users_own_train_py_is_no_frameworks_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`train` in a `train.py` of one's own is judged like any function: it makes an environment, so its import is told."""
    text = LEARNER.replace("model(batch)", "model(batch, {name}('CartPole-v1'))")
    assert _lines({"train.py": text.format(line="from gymnasium import make", name="make")}, tmp_path, monkeypatch) == [("train.py", 2)]
