"""Files named one by one are judged with what their project knows, and only what stands in them is shown."""

import json
from pathlib import Path

import pytest

TRAINER = """import torch
from fleet.wrap import make_env


def fit(policy, batches, spec):
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    arena = make_env(spec)
    for batch in batches:
        optimizer.zero_grad()
        loss = policy.surrogate(batch, arena.bounds)
        loss.backward()
        optimizer.step()
"""
SCHEME = """class Arena:
    def __init__(self, spec):
        self.bounds = spec["bounds"]


def make_env(spec):
    return Arena(spec)
"""
WORLD = """import gymnasium as gym


def make_env(spec):
    return gym.make(spec["id"])
"""
BASE = """class Stepper:
    def train_on(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
"""


def found(done):
    return [(f["code"], f["severity"], f["path"], f["line"]) for f in json.loads(done.out)["findings"] if f["severity"] != "note"]


@pytest.fixture
def package(run):
    Path("fleet").mkdir()
    Path("pyproject.toml").write_text("")
    Path("fleet/__init__.py").write_text("")
    Path("fleet/train.py").write_text(TRAINER)
    return Path("fleet")


def test_where_the_environment_is_made_is_told_through_another_module(package, run):
    """A file named alone is judged like its folder: nothing where the import makes no environment, and nothing of other files."""
    (package / "wrap.py").write_text(SCHEME)
    assert found(run("lint", "fleet", "--output-format", "json")) == []
    assert found(run("lint", "fleet/train.py", "--output-format", "json")) == []


def test_a_guard_in_the_caller_clears_a_file_that_is_named_alone(package, run):
    """A policy call that records alone is silent when the importing file switches recording off around it, and told when it does not."""
    Path("fleet/act.py").write_text(
        "from torch import nn\n\n\ndef collect(policy: nn.Module, env, rows):\n    obs, _ = env.reset()\n    for _ in range(9):\n"
        "        value = policy(obs)\n        obs, reward, ended, cut, _ = env.step(0)\n"
        '        rows.append({"obs": obs, "reward": reward, "value": value, "terminated": ended, "truncated": cut})\n'
    )
    guarded = "import torch\nfrom fleet.act import collect\n\n\ndef serve(policy, env, rows):\n    with torch.no_grad():\n        collect(policy, env, rows)\n"
    Path("fleet/serve.py").write_text(guarded)
    assert found(run("lint", "fleet/act.py", "--output-format", "json")) == []
    Path("fleet/serve.py").write_text(guarded.replace("torch.no_grad()", "torch.autocast('cpu')"))
    assert found(run("lint", "fleet/act.py", "--output-format", "json")) == [("GYR103", "warning", "fleet/act.py", 7)]


def test_what_rests_on_modules_that_are_not_there_is_no_error(package, run):
    """An environment imported in a training module is an error; a warning where the file's own project is not beside it."""
    text = TRAINER.replace("from fleet.wrap import make_env", "import gymnasium as gym").replace("make_env(spec)", "gym.make(spec)")
    Path("fleet/train.py").write_text(text)
    assert found(run("lint", "fleet/train.py", "--output-format", "json")) == [("GYR201", "error", "fleet/train.py", 2)]
    Path("fleet/train.py").write_text(text.replace("import torch\n", "import torch\nfrom .losses import surrogate\n"))
    assert found(run("lint", "fleet/train.py", "--output-format", "json")) == [("GYR201", "warning", "fleet/train.py", 3)]


def test_findings_in_the_files_around_are_not_shown(package, run):
    """The imported module's own findings belong to whoever names it."""
    Path("fleet/train.py").write_text(TRAINER.replace("        optimizer.zero_grad()\n", "").replace("make_env", "make_world"))
    Path("fleet/wrap.py").write_text(
        WORLD.replace("make_env", "make_world") + "\n\n" + BASE.replace("self.optimizer.zero_grad()\n        ", "")
    )
    both = found(run("lint", "fleet", "--output-format", "json"))
    alone = found(run("lint", "fleet/train.py", "--output-format", "json"))
    assert {path for _, _, path, _ in both} == {"fleet/train.py", "fleet/wrap.py"}
    assert alone == [f for f in both if f[2] == "fleet/train.py"]
    assert ("GYR201", "error", "fleet/train.py", 2) in alone


def test_neighbours_that_nothing_imports_do_not_count(run):
    """Two scripts of one folder that do not import one another are judged apart."""
    Path("one.py").write_text(
        TRAINER.replace("from fleet.wrap import make_env", "import gymnasium as gym").replace("make_env(spec)", "gym.make(spec)")
    )
    Path("two.py").write_text("from one_more import fit\n")
    assert found(run("lint", "one.py", "--output-format", "json")) == [("GYR201", "error", "one.py", 2)]
