"""The pre-commit hooks and the GitHub action call a command that exists, with options it has, and pass no input as shell text."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
CHECK = next(step for step in ACTION["runs"]["steps"] if step.get("id") == "check")


@pytest.mark.parametrize("hook", HOOKS, ids=[h["id"] for h in HOOKS])
def test_each_hook_runs(hook, tmp_path):
    """The hook's own command line, run in a clean repository, ends with 0."""
    (tmp_path / "a.py").write_text("x = 1\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    assert hook["pass_filenames"] is False
    words = hook["entry"].split()
    assert words[0] == "gyrecheck"
    env = {**os.environ, "GYRECHECK_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-m", *words], cwd=tmp_path, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr


def act(tmp_path, **inputs):
    """Run the action's check step with a stand-in that writes its words down and exits 1."""
    stand_in = tmp_path / "gyrecheck" / "bin" / "gyrecheck"
    stand_in.parent.mkdir(parents=True)
    stand_in.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "$RUNNER_TEMP/words"\nexit 1\n')
    stand_in.chmod(0o755)
    given = {name: str(spec["default"]) for name, spec in ACTION["inputs"].items()} | inputs
    env = {key: given[re.search(r"inputs\.([\w-]+)", value)[1]] for key, value in CHECK["env"].items()}
    env |= {"RUNNER_TEMP": str(tmp_path), "GITHUB_OUTPUT": str(tmp_path / "out"), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", CHECK["run"]], cwd=tmp_path, env=env, check=False, capture_output=True, text=True
    )
    return done, (tmp_path / "words").read_text().splitlines()


def test_the_action_passes_its_inputs_and_the_exit_code(tmp_path):
    """Paths come last, options that are empty are left out, and the command's exit code is the step's."""
    done, words = act(tmp_path, **{"paths": "src tests", "fail-on": "error", "baseline": "b c.json"})
    assert done.returncode == 1
    assert words == [
        "lint", "--output-format", "github", "--fail-on", "error", "--force", "--baseline", "b c.json",
        "--output-format", "sarif:gyrecheck.sarif", "--", "src", "tests",
    ]  # fmt: skip
    assert (tmp_path / "out").read_text() == "exit-code=1\n"


def test_an_input_is_never_shell_text(tmp_path):
    """What looks like a command in an input arrives as a word."""
    _, words = act(tmp_path, paths='"; touch hacked; echo $(touch hacked)', topology="`touch hacked`")
    assert not (tmp_path / "hacked").exists()
    assert "`touch hacked`" in words
    assert "${{" not in CHECK["run"]


def test_the_action_uses_options_that_lint_has():
    """Every option in the step is one that `gyrecheck lint --help` lists."""
    env = {**os.environ, "COLUMNS": "300"}
    listed = subprocess.run(
        [sys.executable, "-m", "gyrecheck", "lint", "--help"], capture_output=True, text=True, check=True, env=env
    ).stdout
    for option in set(re.findall(r"--[a-z][a-z-]+", CHECK["run"])):
        assert option in listed
