"""The pytest fixtures, as a project's own test run sees them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = """
import numpy as np
import pytest

def _batch():
    rng = np.random.default_rng(0)
    return {"obs": rng.normal(size=(8, 5, 3)), "action": rng.integers(0, 3, (8, 5)), "logprob": -rng.random((8, 5)) - 0.1, "reward": rng.normal(size=(8, 5)), "policy_version": np.full(8, 2)}

def test_good_batch(gyre_contract):
    gyre_contract(_batch())

def test_bad_batch(gyre_contract):
    gyre_contract(_batch() | {"logprob": np.zeros((8, 5))})

def test_balanced(gyre_ledger):
    report = gyre_ledger("good.log")
    assert report.command == "ledger"

def test_gap(gyre_ledger):
    gyre_ledger("gap.log")

def test_undecided(gyre_ledger):
    gyre_ledger("open.log")

def test_undecided_allowed(gyre_ledger):
    gyre_ledger("open.log", undecided_ok=True)
"""


def _log(path: Path, *, lost: int = 0, left: str = " buffer_left=0") -> None:
    lines = []
    for step in range(1, 13):
        taken = 8 * step - (lost * step)
        lines.append(
            f"2026-01-01T00:00:{step:02d}Z step={step} sampled_total={8 * step} taken_total={taken} dropped_stale_total=0{left} policy_version={step}"
        )
    path.write_text("\n".join(lines) + "\n")


def test_fixtures_pass_and_fail_a_projects_tests(tmp_path):
    """A good batch and a balanced log pass; a broken batch, a gap and an undecided log fail with the code in the message."""
    (tmp_path / "test_project.py").write_text(TESTS)
    _log(tmp_path / "good.log")
    _log(tmp_path / "gap.log", lost=1)
    (tmp_path / "open.log").write_text(
        "".join(f"2026-01-01T00:00:{step:02d}Z step={step} sampled_total={8 * step}\n" for step in range(1, 13))
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_project.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "3 failed, 3 passed" in done.stdout, done.stdout
    assert "GYR304" in done.stdout
    assert "GYR507" in done.stdout
    assert "the ledger does not hold" in done.stdout
