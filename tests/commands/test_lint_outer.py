"""`gyrecheck lint` around the findings: suppressions, baseline, revisions, fixes, formats and drawings, through the whole command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gyrecheck.commands import lint
from gyrecheck.model.errors import GyreError
from gyrecheck.source.cache import Cache

SAMPLER = """import gymnasium as gym
from torch import nn


def rollout(policy: nn.Module, rows):
    env = gym.make("CartPole-v1")
    obs, _ = env.reset()
    for _ in range(64):
        value = policy(obs)
        obs, reward, terminated, truncated, _ = env.step(0)
        rows.append({"obs": obs, "reward": reward, "value": value, "terminated": terminated, "truncated": truncated})


if __name__ == "__main__":
    rollout(nn.Linear(4, 2), [])
"""
TRAINER = """import torch


def fit(policy, batches):
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    for batch in batches:
        loss = policy.surrogate(batch)
        loss.backward()
        optimizer.step()
"""


@pytest.fixture
def project(run):
    """A sampler with an unguarded forward (GYR103, line 9) and a trainer that never clears (GYR206, line 9)."""
    Path("agent").mkdir()
    Path("agent/collect.py").write_text(SAMPLER)
    Path("agent/train.py").write_text(TRAINER)
    return Path("agent")


def git(*arguments):
    identity = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    plain = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *arguments], check=True, env={**os.environ, **identity, **plain}, capture_output=True)


def found(done):
    return [(f["code"], f["path"], f["line"]) for f in json.loads(done.out)["findings"] if not f["suppressed"] and not f["baselined"]]


BOTH = [("GYR103", "agent/collect.py", 9), ("GYR206", "agent/train.py", 9)]


def test_both_are_found_without_any_option(run, project):
    """The ground the other tests stand on: two warnings, exit 1."""
    done = run("lint", "--output-format", "json")
    assert found(done) == BOTH
    assert done.code == 1


def test_a_suppression_needs_its_code_and_reason(run, project):
    """With code and reason the finding is hidden and shown as suppressed; without a reason it stays and GYR002 joins it."""
    Path("agent/train.py").write_text(
        TRAINER.replace("optimizer.step()", "optimizer.step()  # gyre: ignore[GYR206] accumulates over the epoch")
    )
    done = run("lint", "--output-format", "json")
    assert found(done) == BOTH[:1]
    assert [f["suppressed"] for f in json.loads(done.out)["findings"] if f["suppressed"]] == ["accumulates over the epoch"]
    assert "accumulates over the epoch" in run("lint", "--show-suppressed").out
    Path("agent/train.py").write_text(TRAINER.replace("optimizer.step()", "optimizer.step()  # gyre: ignore[GYR206]"))
    assert [code for code, _, _ in found(run("lint", "--output-format", "json"))] == ["GYR103", "GYR206", "GYR002"]


def test_a_comment_of_a_rule_left_out_is_not_called_unused(run, project):
    """`--select GYR1` judges no GYR206, so its comment may stand."""
    Path("agent/train.py").write_text(TRAINER.replace("optimizer.step()", "optimizer.step()  # gyre: ignore[GYR206] why"))
    assert found(run("lint", "--select", "GYR1,GYR002", "--output-format", "json")) == BOTH[:1]


def test_the_baseline_accepts_marks_and_shrinks(run, project):
    """Written: nothing counts, all are marked. Code moves: still accepted. One mended: said, and gone when written again. One more: new."""
    done = run("lint", "--baseline", "base.json", "--write-baseline")
    assert done.code == 0
    assert "2 accepted (2 added, 0 removed)" in done.err
    Path("agent/train.py").write_text("\n\n# moved\n" + TRAINER)
    done = run("lint", "--baseline", "base.json", "--output-format", "json")
    assert found(done) == []
    assert sum(f["baselined"] for f in json.loads(done.out)["findings"]) == 2
    Path("agent/train.py").write_text("x = 1\n")
    done = run("lint", "--baseline", "base.json")
    assert "Mended since: 1" in done.out
    assert "2 accepted" not in run("lint", "--baseline", "base.json", "--write-baseline").err
    assert [e["code"] for e in json.loads(Path("base.json").read_text())["entries"]] == ["GYR103"]
    Path("agent/train.py").write_text(TRAINER)
    assert found(run("lint", "--baseline", "base.json", "--output-format", "json")) == BOTH[1:]


def test_a_baseline_written_over_one_folder_keeps_the_entries_of_others(run, project):
    """Entries of files that were not checked stay."""
    run("lint", "--baseline", "base.json", "--write-baseline")
    assert "2 accepted (0 added, 0 removed)" in run("lint", "agent/train.py", "--baseline", "base.json", "--write-baseline").err
    assert run("lint", "--baseline", "base.json").code == 0


def test_a_baseline_that_is_missing_is_exit_2(run, project):
    """Nothing is taken for an empty baseline."""
    assert run("lint", "--baseline", "none.json").code == 2


def test_a_baseline_without_a_name_is_written_beside_the_configuration_and_read_when_named(run, project):
    """`--write-baseline` alone says its file; a run that does not name it counts everything, one that does counts nothing."""
    done = run("lint", "--write-baseline")
    assert done.code == 0
    assert "--baseline gyre-baseline.json reads it" in done.err
    assert run("lint").code == 1
    assert run("lint", "--baseline", "gyre-baseline.json").code == 0
    Path("agent/gyrecheck.toml").write_text("")
    assert run("lint", "agent", "--write-baseline").code == 0
    assert Path("agent/gyre-baseline.json").is_file()


@pytest.mark.parametrize("words", [("--select", ""), ("--select", "GYR103", "--ignore", "GYR103")])
def test_an_empty_selection_is_an_error(run, project, words):
    """With no rule left nothing is checked, which is exit 2 in one sentence and never a clean result."""
    done = run("lint", *words)
    assert done.code == 2
    assert "the selection is empty" in done.err
    assert not done.out


def test_when_no_file_could_be_read_nothing_was_checked(run):
    """A lone broken file is GYR001 and exit 2, even with --exit-zero; beside a good file it is a finding and exit 1."""
    Path("bad.py").write_text("def f(:\n")
    done = run("lint", "bad.py", "--exit-zero")
    assert done.code == 2
    assert "GYR001" in done.out
    assert "other files are" not in done.out
    Path("good.py").write_text("x = 1\n")
    done = run("lint")
    assert done.code == 1
    assert "the other files are still checked" in done.out


def test_a_closed_standard_input_is_one_sentence(run, monkeypatch):
    """Without standard input `-` could check nothing: exit 2, no internal error."""
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(GyreError, match="standard input is closed"):
        lint._texts((Path("-"),), (), "", Cache(None))


def test_diff_base_shows_only_what_is_new(run, project):
    """Findings of the old tree do not count; a new one does; an unknown revision is exit 2."""
    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "x")
    assert run("lint", "--diff-base", "HEAD").code == 0
    Path("agent/train.py").write_text("# above\n" + TRAINER + TRAINER.partition("\n\n\n")[2].replace("fit", "fit_again"))
    done = run("lint", "--diff-base", "HEAD", "--output-format", "json")
    assert found(done) == [("GYR206", "agent/train.py", 16)]
    assert found(run("lint", "agent", "--diff-base", "HEAD", "--output-format", "json")) == [("GYR206", "agent/train.py", 16)]
    assert run("lint", str(Path("agent").absolute()), "--diff-base", "HEAD").code == 1
    git("mv", "agent/collect.py", "agent/gather.py")
    assert "GYR103" not in str(found(run("lint", "--diff-base", "HEAD", "--output-format", "json")))
    done = run("lint", "--diff-base", "nope")
    assert done.code == 2
    assert "`nope`" in done.err


def test_fix_makes_safe_fixes_only_and_checks_again(run, project):
    """The sampler is guarded, the trainer untouched until asked; the report is that of the fixed tree, its closing lines apart."""
    done = run("lint", "--fix", "--output-format", "full")
    assert done.code == 1
    assert "\\n" not in done.out
    assert "Fixed 1 finding in 1 file. 1 more with --unsafe-fixes." in done.out
    assert Path("agent/collect.py").read_text() == SAMPLER.replace("nn\n", "nn\nimport torch\n", 1).replace(
        "def rollout", "@torch.no_grad()\ndef rollout"
    )
    assert Path("agent/train.py").read_text() == TRAINER
    done = run("lint", "--fix", "--unsafe-fixes")
    assert done.code == 0
    assert Path("agent/train.py").read_text() == TRAINER + "        optimizer.zero_grad()\n"
    assert "Nothing to fix." in run("lint", "--fix").out


def test_diff_prints_a_patch_and_writes_nothing(run, project):
    """`git apply` turns the patch into what `--fix` would have written; with nothing to fix the exit code is 0 and there is no output."""
    done = run("lint", "--diff", "--unsafe-fixes")
    assert done.code == 1
    assert Path("agent/collect.py").read_text() == SAMPLER
    subprocess.run(["git", "apply", "-"], input=done.out.encode(), check=True)
    done = run("lint", "--diff", "--unsafe-fixes")
    assert (done.code, done.out) == (0, "")
    assert run("lint", "--fix", "--diff").code == 2


def test_suppressed_and_baselined_findings_are_not_fixed(run, project):
    """What a person accepted is left as it is."""
    run("lint", "--baseline", "base.json", "--write-baseline")
    assert run("lint", "--baseline", "base.json", "--diff", "--unsafe-fixes").out == ""


def test_several_formats_at_once(run, project):
    """One to standard output, the others to their files; SARIF holds fixes and code flows."""
    done = run(
        "lint",
        "--output-format",
        "concise",
        "--output-format",
        "sarif:out.sarif",
        "--output-format",
        "junit:out.xml",
        "--output-format",
        "gitlab:out.json",
    )
    assert done.out.startswith("agent/collect.py:9:")
    results = json.loads(Path("out.sarif").read_text())["runs"][0]["results"]
    assert [(r["ruleId"], len(r["fixes"]), len(r["codeFlows"])) for r in results] == [("GYR103", 1, 1), ("GYR206", 1, 1)]
    assert Path("out.xml").read_text().startswith("<?xml")
    assert len(json.loads(Path("out.json").read_text())) == 2


def test_a_notebook_is_checked_and_never_fixed(run):
    """The finding lies on the line of the .ipynb with its cell; `--fix` leaves the file alone."""
    cells = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": part.splitlines(keepends=True)}
        for part in ("%matplotlib inline", SAMPLER)
    ]
    data = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)
    Path("nb.ipynb").write_text(data)
    done = run("lint", "--output-format", "json")
    ((code, path, line),) = found(done)
    assert (code, path) == ("GYR103", "nb.ipynb")
    assert "value = policy(obs)" in data.splitlines()[line - 1]
    assert "(cell 2, line 9)" in done.out
    run("lint", "--fix", "--unsafe-fixes")
    assert Path("nb.ipynb").read_text() == data
    piped = run("lint", "-", "--stdin-filename", "other.ipynb", "--output-format", "json", given=data.encode())
    assert found(piped) == [(code, "other.ipynb", line)]


def test_standard_input_goes_by_the_name_given(run):
    """`-` with --stdin-filename: findings carry that name; `--fix` is refused, `--diff` prints the patch."""
    done = run("lint", "-", "--stdin-filename", "sub/x.py", "--output-format", "json", given=SAMPLER.encode())
    assert found(done) == [("GYR103", "sub/x.py", 9)]
    assert run("lint", "-", "--fix", given=SAMPLER.encode()).code == 2
    assert "+++ b/sub/x.py" in run("lint", "-", "--stdin-filename", "sub/x.py", "--diff", given=SAMPLER.encode()).out


def test_a_change_elsewhere_makes_a_finding_new(run):
    """The trainer's file does not change; the helper it calls begins to step the environment: the finding is new all the same."""
    Path("train.py").write_text(
        TRAINER.replace("import torch", "import torch\n\nfrom warm import warm").replace(
            "        loss.b", "        optimizer.zero_grad()\n        warm(policy)\n        loss.b"
        )
    )
    Path("warm.py").write_text("def warm(policy):\n    return policy\n")
    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "x")
    assert run("lint", "--topology", "decoupled", "--diff-base", "HEAD").code == 0
    Path("warm.py").write_text(
        "import gymnasium as gym\n\n\ndef warm(policy):\n    env = gym.make('x')\n    env.reset()\n    env.step(0)\n"
    )
    new = found(run("lint", "--topology", "decoupled", "--diff-base", "HEAD", "--output-format", "json"))
    assert "train.py" in {path for _, path, _ in new}


@pytest.mark.parametrize("form", ["dot", "mermaid", "html"])
def test_the_graph_shows_both_sides(run, project, form):
    """Both modules stand on their side; a file is refused without --force."""
    done = run("lint", "--graph", form)
    assert done.code == 0
    assert "collect" in done.out
    assert "optimizer.step 9" in done.out
    assert run("lint", "--graph", form, "-o", "g").code == 0
    assert run("lint", "--graph", form, "-o", "g").code == 2


def test_a_clean_tree_never_imports_libcst(tmp_path):
    """Cold and warm, with and without suppression comments: the parser of the fixes is not loaded."""
    (tmp_path / "a.py").write_text("def scale(reward):\n    return reward * 0.1\n")
    (tmp_path / "b.py").write_text(TRAINER.replace("optimizer.step()", "optimizer.step()  # gyre: ignore[GYR206] why"))
    code = (
        "import sys\nfrom gyrecheck import cli\nsys.argv = ['gyrecheck', 'lint', '.']\n"
        "try:\n    cli.main()\nexcept SystemExit as left:\n    assert not left.code, left.code\n"
        "assert 'libcst' not in sys.modules\n"
    )
    env = {**os.environ, "GYRECHECK_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, check=True, capture_output=True)
