"""The bundled loop under `gyrecheck run`: healthy it is silent, and each fault that shows in a running process is found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("gymnasium")

ROOT = Path(__file__).resolve().parents[2]
FAULTS = {
    "": set(),
    "grad-in-sampling": {"GYR103"},
    "backward-in-sampling": {"GYR101"},
    "update-per-sample": {"GYR501"},
    "weights-not-loaded": {"GYR406"},
    "weights-never-published": {"GYR403"},
    "filter-rejects-all": {"GYR506"},
    "missing-field": {"GYR505"},
    "shape-jump": {"GYR505"},
    "trajectories-lost": {"GYR507"},
}


@pytest.mark.soak
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault or "healthy")
def test_faults_that_a_running_process_shows(fault, tmp_path):
    """12,000 env steps in two processes: the fault's code is there, and the healthy loop has no finding."""
    args = ["--run-dir", str(tmp_path / "loop"), "--total-steps", "12000", "--rollout-steps", "16", "--patience", "30"]
    command = [sys.executable, "-m", "reference_loop", *args, *(["--fault", fault] if fault else [])]
    report = tmp_path / "report.json"
    done = subprocess.run(
        [sys.executable, "-m", "gyrecheck", "run", "--report", str(report), "--output-format", "json", "--quiet-child", "-q", "--", *command],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    found = json.loads(report.read_text())
    broken = {v["code"] for v in found["verdicts"] if v["state"] == "broken"}
    assert done.returncode == found["statistics"]["program_exit"]
    assert FAULTS[fault] <= broken
    if not fault:
        assert not broken
        assert found["statistics"]["sample_calls"] > 0
        assert found["statistics"]["optimizer_steps"] > 0
