"""`gyrecheck lint` as a command: exits, selection, layout, duties, statistics, cache, standard input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app

CROSSING = "def update(model, opt, env):\n    obs, r, te, tr, i = env.step(1)\n    loss = model(obs)\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
CLEAN = "def update(model, opt, batch):\n    loss = model.surrogate(batch)\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"


@pytest.fixture
def lint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs the command in an empty folder; returns exit code and output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GYRECHECK_CACHE_DIR", str(tmp_path / ".kept"))

    def run(*args: str, stdin: str | None = None):
        done = CliRunner().invoke(build_app("lint"), ["lint", *args], input=stdin)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.stdout

    return run


def test_exit_codes(lint, tmp_path: Path) -> None:
    """Clean is 0, a warning 1, the same with --exit-zero or a higher fail level 0."""
    (tmp_path / "a.py").write_text(CLEAN)
    assert lint("a.py")[0] == 0
    (tmp_path / "b.py").write_text(CROSSING)
    assert lint("b.py")[0] == 1
    assert lint("b.py", "--exit-zero")[0] == 0
    assert lint("b.py", "--fail-on", "error")[0] == 0
    assert lint("b.py", "--topology", "decoupled", "--fail-on", "error")[0] == 1


def test_unparsable_file_does_not_hide_the_others(lint, tmp_path: Path) -> None:
    """A broken file is GYR001 at its line, and the crossing in the other file is still found."""
    (tmp_path / "a.py").write_text("x = 1\ndef f(:\n")
    (tmp_path / "b.py").write_text(CROSSING)
    code, out = lint(".", "--output-format", "json")
    found = {(f["code"], f["path"], f["line"]) for f in json.loads(out)["findings"]}
    assert code == 1
    assert {("GYR001", "a.py", 2), ("GYR204", "b.py", 2)} <= found


def test_selection(lint, tmp_path: Path) -> None:
    """--select, --ignore, --extend-select and per-path-ignores each change what is shown."""
    (tmp_path / "b.py").write_text(CROSSING)

    def codes(*args: str) -> set[str]:
        return {f["code"] for f in json.loads(lint("b.py", "--output-format", "json", *args)[1])["findings"]}

    assert codes() == {"GYR204", "GYR301"}
    assert codes("--ignore", "GYR3") == {"GYR204"}
    assert codes("--select", "GYR301", "--extend-select", "rollout-inside-update") == {"GYR204", "GYR301"}
    (tmp_path / "gyrecheck.toml").write_text('[per-path-ignores]\n"b.py" = ["GYR204"]\n')
    assert codes() == {"GYR301"}


def test_layout_is_inferred_and_can_be_declared(lint, tmp_path: Path) -> None:
    """One loop is synchronous with a note; declared decoupled, the same meeting is an error."""
    (tmp_path / "main.py").write_text(
        "def main(env, opt, loss):\n    env.step(1)\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
    )
    out = json.loads(lint("main.py", "--output-format", "json")[1])
    assert (out["topology"], [(f["code"], f["severity"]) for f in out["findings"]]) == ("synchronous", [("GYR301", "note")])
    out = json.loads(lint("main.py", "--output-format", "json", "--topology", "decoupled")[1])
    assert ("GYR301", "error") in [(f["code"], f["severity"]) for f in out["findings"]]


def test_duties_and_statistics(lint, tmp_path: Path) -> None:
    """--duties lists each function with its side and why; --statistics counts calls that resolve."""
    (tmp_path / "a.py").write_text(CLEAN + "\n\ndef run(m, o, b):\n    update(m, o, b)\n")
    out = json.loads(lint("a.py", "--duties", "--statistics", "--output-format", "json")[1])
    rows = [
        dict(zip(out["tables"]["duties"]["columns"], row, strict=True)) if isinstance(row, list) else row
        for row in out["tables"]["duties"]["rows"]
    ]
    assert {r["function"]: r["duty"] for r in rows} == {"update": "trainer", "run": "trainer"}
    assert out["statistics"]["call_resolution"] == 1.0


def test_hints_can_be_left_out(lint, tmp_path: Path) -> None:
    """What is known by name only is a note, and --hints off hides it."""
    (tmp_path / "a.py").write_text("def turn(agent, learner, item):\n    item = agent.act(item)\n    return learner.update(item)\n")
    assert {f["code"] for f in json.loads(lint("a.py", "--output-format", "json")[1])["findings"]} == {"GYR003"}
    assert lint("a.py", "--output-format", "json", "--hints", "off")[1].count("GYR003") == 0


def test_cache_changes_nothing(lint, tmp_path: Path) -> None:
    """Cold, warm and uncached runs print the same; a changed file is seen."""
    (tmp_path / "b.py").write_text(CROSSING)
    first, warm, bare = (lint("b.py", *extra)[1] for extra in ((), (), ("--no-cache",)))
    assert first == warm == bare
    (tmp_path / "b.py").write_text(CLEAN)
    assert "No findings" in lint("b.py")[1]


def test_standard_input(lint) -> None:
    """`-` reads standard input under the given name."""
    code, out = lint("-", "--stdin-filename", "pkg/b.py", "--output-format", "concise", stdin=CROSSING)
    assert code == 1
    assert "pkg/b.py:2:" in out


def test_heavy_libraries_stay_out(tmp_path: Path) -> None:
    """A clean tree loads neither libcst nor torch, pandas or numpy."""
    (tmp_path / "a.py").write_text(CLEAN)
    program = (
        "import sys\nfrom gyrecheck.cli import build_app\n"
        f"try:\n    build_app('lint')(['lint', {str(tmp_path)!r}, '--no-cache', '-q'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'libcst', 'torch', 'pandas', 'numpy', 'textual'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")
