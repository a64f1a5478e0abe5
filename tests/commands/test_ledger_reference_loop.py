"""Each fault of the reference loop against the ledger's verdict on its run folder; a healthy run breaks nothing.

The runs are serial and small (8 environments, 16 ticks), so a table of all of them takes seconds. Faults that leave no trace in a log
stand with the command that sees them, and the ledger must not claim them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gyrecheck.commands.ledger_run import Request, ledger_of
from gyrecheck.model.finding import Severity, State
from gyrecheck.rulebook.codes import load_codes
from reference_loop.config import Settings, as_arguments
from reference_loop.faults import FAULTS
from reference_loop.loop import main

torch.set_num_threads(1)

SEEN = {
    "missing-field": "GYR505",
    "shape-jump": "GYR505",
    "zero-filled-field": "GYR402",
    "update-per-sample": "GYR501",
    "weights-never-published": "GYR403",
    "weights-not-loaded": "GYR406",
    "version-label-ahead": "GYR408",
    "stale-bypass": "GYR507",
    "age-limit-ignored": "GYR404",
    "filter-rejects-all": "GYR506",
    "trajectories-lost": "GYR507",
    "consumed-twice": "GYR510",
    "batch-too-large": "GYR503",
}
ELSEWHERE = {
    "done-merged": "handoff check: GYR309",
    "grad-in-sampling": "lint: GYR103",
    "backward-in-sampling": "lint: GYR101",
    "reward-in-loss": "lint: GYR203",
    "scheduler-per-sample": "lint: GYR205",
}


def broken(folder: Path, fault: str, steps: int = 2400) -> dict[str, Severity]:
    """Codes of the broken verdicts on a run with this fault."""
    base = Settings(run_dir=folder, total_steps=steps, num_envs=8, rollout_steps=16, quiet=True, patience=0.0, disk_patience=0.0)
    main(["--serial", *as_arguments(base), *(["--fault", fault] if fault else [])])
    report = ledger_of(Request((str(folder),)), load_codes())
    return {v.code: v.severity for v in report.verdicts if v.state is State.BROKEN}


def test_every_fault_has_its_place() -> None:
    """The two tables together name every fault that the loop knows."""
    assert set(SEEN) | set(ELSEWHERE) == set(FAULTS)
    assert not set(SEEN) & set(ELSEWHERE)


def test_a_healthy_run_breaks_nothing(tmp_path: Path) -> None:
    """No broken verdict above a note on a run without a fault."""
    base = Settings(run_dir=tmp_path / "run", total_steps=2400, num_envs=8, rollout_steps=16, quiet=True, patience=0.0)
    assert main(["--serial", *as_arguments(base)]) == 0
    report = ledger_of(Request((str(tmp_path / "run"),)), load_codes())
    assert [v.code for v in report.verdicts if v.state is State.BROKEN and v.severity is not Severity.NOTE] == []


@pytest.mark.parametrize("fault", SEEN)
def test_the_ledger_names_the_fault(tmp_path: Path, fault: str) -> None:
    """The code that `--list-faults` promises is among the broken verdicts, as an error; zeros for log-probabilities show in the ratio."""
    found = broken(tmp_path / "run", fault)
    assert found.get(SEEN[fault]) is Severity.ERROR, found


@pytest.mark.parametrize("fault", ELSEWHERE)
def test_what_a_log_cannot_show_is_not_claimed(tmp_path: Path, fault: str) -> None:
    """Nothing in the log tells of these faults, and the ledger reports no error."""
    assert Severity.ERROR not in broken(tmp_path / "run", fault).values()
