"""`gyrecheck doctor`: one clear line each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gyrecheck.commands.doctor import _file_system

ROOT = Path(__file__).resolve().parents[2]


def gyrecheck(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "gyrecheck", *args], cwd=cwd, env=env, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_machine_is_described(tmp_path):
    """Without a run: the interpreter, the libraries and the disk."""
    done = gyrecheck("doctor", cwd=tmp_path)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("python     3.")
    assert lines[1].startswith("libraries  ")
    assert "free" in lines[2]


def test_the_processes_of_a_run_are_named(tmp_path):
    """Each process with a shard is a line with its counts; helpers without anything to count are summed up."""
    (tmp_path / "train.py").write_text(
        "import subprocess, sys\nfrom gyrecheck.hook import sampling\nrollout = sampling(lambda: None)\nrollout(); rollout()\n"
        "subprocess.run([sys.executable, '-c', 'pass'], check=True)\n"
    )
    assert gyrecheck("run", "--record", "run", "--", sys.executable, "train.py", cwd=tmp_path).returncode == 0
    done = gyrecheck("doctor", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "shard ok, 2 sample calls, 0 update calls" in done.stdout
    assert "1 more reached by the hook" in done.stdout


def test_hooks_that_fired_and_libraries_out_of_reach_are_named(tmp_path):
    """Of a library that lacks a name of ours: what fired, what is absent; a library that nothing hooks is a note with its reason."""
    lib = tmp_path / "lib"
    lib.mkdir()
    (lib / "gymnasium.py").write_text("__version__ = '0.9'\n\n\nclass Env:\n    pass\n")
    (lib / "jax.py").write_text("")
    (tmp_path / "train.py").write_text("import sys\nsys.path.insert(0, 'lib')\nimport gymnasium, jax\n")
    assert gyrecheck("run", "--record", "run", "--", sys.executable, "train.py", cwd=tmp_path).returncode == 0
    done = gyrecheck("doctor", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "gymnasium 0.9: 1 fired: Env; 1 absent: vector.VectorEnv" in done.stdout
    assert "jax was loaded and is not hooked" in done.stdout


@pytest.mark.parametrize(("folder", "says"), [("nowhere", "no such folder"), (".", "nothing that the hook wrote")])
def test_a_folder_without_a_run_is_refused(tmp_path, folder, says):
    """Exit 2, one sentence, and how to record one."""
    done = gyrecheck("doctor", folder, cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert "gyrecheck run --record" in done.stderr


def test_the_file_system_is_the_nearest_mount():
    """/proc is its own file system, whatever the root is."""
    assert _file_system(Path("/proc/self"))[0] == "proc"
