"""The bundled loop under `gyrecheck run`: healthy it is silent, and each fault that shows in a running process is found.

In turns in one process (short, a fork of a process that has the library loaded), and, as a soak, the way a user starts it: two programs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("gymnasium")

from gyrecheck.commands.hook_samples import judge_script
from gyrecheck.model.finding import Report, Severity, State
from reference_loop.faults import FAULTS

ROOT = Path(__file__).resolve().parents[2]
SEEN = {
    "missing-field": "GYR505",
    "zero-filled-field": "GYR402",
    "shape-jump": "GYR505",
    "grad-in-sampling": "GYR103",
    "weights-never-published": "GYR420",
    "weights-not-loaded": "GYR420",
    "version-label-ahead": "GYR408",
    "stale-bypass": "GYR507",
    "age-limit-ignored": "GYR404",
    "filter-rejects-all": "GYR506",
    "trajectories-lost": "GYR507",
    "consumed-twice": "GYR510",
    "batch-too-large": "GYR503",
    "backward-in-sampling": "GYR101",
    "scheduler-per-sample": "GYR205",
}
"""Found when both sides take turns in one process, and when they run side by side."""
TWO = {"update-per-sample": "GYR501"}
"""In one process that is what a synchronous loop does; with a sampler of its own it is the fault."""
BESIDE = SEEN | TWO | {"weights-never-published": "GYR403", "weights-not-loaded": "GYR406"}
"""Found in two programs: the weights of two processes are compared only where one of them acts with what the other trains."""
HIDDEN = {"done-merged", "reward-in-loss"}
"""Nothing that a running process does tells these from a choice of its author: `lint` and `handoff` see them."""
ENDS_WITH = {"missing-field": 1, "shape-jump": 1}


def broken(report: Report) -> dict[str, Severity]:
    """Codes of the broken verdicts above a note, the gravest of each."""
    found = sorted((v for v in report.verdicts if v.state is State.BROKEN), key=lambda v: v.severity.rank)
    return {v.code: v.severity for v in found if v.severity is not Severity.NOTE}


def in_turns(fault: str, folder: Path) -> tuple[int, Report]:
    """The exit code and the report of 1,600 env steps of 8 environments in one process."""
    args = ["--serial", "--run-dir", str(folder / "loop"), "--total-steps", "1600", "--num-envs", "8", "--rollout-steps", "16"]
    args += ["--patience", "0", *(["--fault", fault] if fault else [])]
    script = folder / "train.py"
    script.write_text(f"import sys\nfrom reference_loop.loop import main\nsys.exit(main({args!r}))\n")
    hook = folder / "hook"
    hook.mkdir()
    return judge_script(script, hook)


def test_every_fault_has_its_place():
    """The three tables together name every fault that the loop knows, each once, and `--list-faults` names the code that a run shows."""
    assert sorted([*SEEN, *TWO, *HIDDEN]) == sorted(FAULTS)
    for fault, code in [*SEEN.items(), *BESIDE.items()]:
        said = next(part for part in FAULTS[fault].seen_by.split("; ") if "run" in part.partition(":")[0].replace(",", " ").split())
        assert code in said, fault
    assert not any("run" in FAULTS[fault].seen_by.partition(":")[0] for fault in HIDDEN)


def test_a_healthy_loop_is_silent(tmp_path):
    """Exit 0, nothing broken and nothing undecided, both sides counted: 1,600 steps of 8 environments are at least 200 sample calls."""
    code, report = in_turns("", tmp_path)
    assert code == 0
    assert [v.message for v in report.verdicts if v.state is not State.HOLDS] == []
    assert report.statistics["sample_calls"] >= 200
    assert report.statistics["optimizer_steps"] > 0


@pytest.mark.parametrize("fault", SEEN)
def test_a_fault_is_found(fault, tmp_path):
    """The fault's code is among the broken verdicts, and the program's exit code is its own."""
    code, report = in_turns(fault, tmp_path)
    assert code == ENDS_WITH.get(fault, 0)
    assert SEEN[fault] in broken(report), broken(report)


@pytest.mark.parametrize("fault", sorted(HIDDEN))
def test_what_one_process_cannot_show_is_not_claimed(fault, tmp_path):
    """In one process these look like what their author may want: nothing is broken above a note."""
    code, report = in_turns(fault, tmp_path)
    assert code == 0
    assert broken(report) == {}


@pytest.mark.soak
@pytest.mark.parametrize("fault", ["", *FAULTS], ids=lambda fault: fault or "healthy")
def test_two_programs_started_as_a_user_would(fault, tmp_path):
    """`gyrecheck run -- python -m reference_loop --fault ...`, two processes: the fault's code is there, the healthy loop has no finding."""
    args = ["--run-dir", str(tmp_path / "loop"), "--total-steps", "12000", "--rollout-steps", "16", "--patience", "30"]
    command = [sys.executable, "-m", "reference_loop", *args, *(["--fault", fault] if fault else [])]
    report = tmp_path / "report.json"
    done = subprocess.run(
        [sys.executable, "-m", "gyrecheck", "run", "--report", str(report), "--output-format", "json", "--quiet-child", "-q", "--", *command],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    found = json.loads(report.read_text())
    shown = [v for v in found["verdicts"] if v["state"] == "broken"]
    assert done.returncode == found["statistics"]["program_exit"]
    if fault in BESIDE:  # zeros for log-probabilities may be drift where ages are not 0: there they are a note
        assert BESIDE[fault] in {v["code"] for v in shown}
    else:
        assert [v["message"] for v in shown if v["severity"] != "note"] == []
        assert done.returncode == 0
        assert found["statistics"]["sample_calls"] > 0
        assert found["statistics"]["optimizer_steps"] > 0
