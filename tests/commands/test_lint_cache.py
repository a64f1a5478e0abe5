"""What lint keeps between runs is only ever a shortcut: with it, without it, after a comment or a change, the report is the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app

PROJECTS = Path(__file__).resolve().parents[2] / "fixtures" / "projects"


def _report(*more: str) -> str:
    words = ["lint", "tree", "--jobs", "1", "--quiet", "--exit-zero", "--duties", "--output-format", "json", *more]
    done = CliRunner().invoke(build_app("lint"), words)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.stdout


@pytest.mark.parametrize("project", ["anchors", "idioms"])
def test_kept_and_fresh_agree(project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cold, warm, and after each of four edits (comment at the end, on a quoted line, a moved line, new code): as without a cache."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(PROJECTS / project, "tree")
    kept = ("--cache-dir", "kept")
    bare = _report("--no-cache")
    assert _report(*kept) == bare
    assert _report(*kept) == bare
    files = sorted(p for p in Path("tree").rglob("*.py") if p.read_text().strip())
    for path in files[:: (len(files) + 1) // 2]:
        text = path.read_text()
        quoted = "\n".join(f"{line}  # Größe" if line.strip().endswith(")") else line for line in text.split("\n"))
        for edited in (f"{text}\n# a word\n", quoted, f"\n{text}", f"{text}\n\ndef step_env(env):\n    return env.step(env.sample())\n"):
            path.write_text(edited)
            assert _report(*kept) == _report("--no-cache")
        path.write_text(text)
        assert _report(*kept) == bare
