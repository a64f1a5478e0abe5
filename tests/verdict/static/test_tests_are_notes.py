"""What a project's tests do to see what happens is told as a note."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from gyrecheck.cli import build_app

LOOP = """
def fit(optimizer, losses):
    for loss in losses:
        loss.backward()
        optimizer.step()
"""


def severities(folder):
    """Severity of each GYR206 by file name."""
    done = CliRunner().invoke(build_app(), ["lint", "--no-cache", "--output-format", "json", str(folder)])
    return {f["path"].rpartition("/")[2]: f["severity"] for f in json.loads(done.stdout)["findings"] if f["code"] == "GYR206"}


def test_the_same_loop_weighs_less_in_a_test(tmp_path):
    """A step without zero_grad is a warning in the project and a note in its tests, and a warning again where only tests are checked."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "fit.py").write_text(LOOP)
    (tmp_path / "tests/test_fit.py").write_text(LOOP)
    found = severities(tmp_path)
    assert found["fit.py"] in {"warning", "error"}
    assert found["test_fit.py"] == "note"
    assert severities(tmp_path / "tests")["test_fit.py"] == found["fit.py"]
