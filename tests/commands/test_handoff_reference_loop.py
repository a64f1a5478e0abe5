"""The reference loop's own files keep the contract; with each of its data faults on, the fault is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gyrecheck.commands.handoff_check import check_report
from gyrecheck.model.finding import Finding, Severity

FAULTS = {"missing-field": "GYR303", "zero-filled-field": "GYR304", "shape-jump": "GYR307", "done-merged": "GYR309"}


def sampled(folder: Path, *words: str) -> tuple[Finding, ...]:
    command = [
        sys.executable,
        "-m",
        "reference_loop.sampler",
        "--run-dir",
        str(folder),
        "--seed",
        "1",
        "--total-steps",
        "2000",
        "--patience",
        "0.1",
        *words,
    ]
    subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).parents[2])
    return check_report([folder], {})[0].findings


@pytest.mark.parametrize("layout", ["slice", "step", "arrow"])
def test_a_healthy_run_folder_passes(tmp_path: Path, layout: str) -> None:
    """Segments of every layout give nothing above a note."""
    assert [f.code for f in sampled(tmp_path / "run", "--layout", layout) if f.severity is not Severity.NOTE] == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_data_fault_is_named(tmp_path: Path, fault: str) -> None:
    """Each fault of the sampler's records is found under its code."""
    assert FAULTS[fault] in {f.code for f in sampled(tmp_path / "run", "--fault", fault)}
