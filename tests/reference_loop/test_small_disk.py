"""A disk that is really full: the two programs on a file system of 700 KiB, and again after it has grown."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reference_loop.balance import balance
from reference_loop.config import Settings, as_arguments


def _mount(*arguments: str) -> bool:
    """Whether `mount` did it: it needs Linux and the right to mount."""
    try:
        return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with room for 700 KiB; skips where none may be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if not _mount("-t", "tmpfs", "-o", "size=700k", "tmpfs", str(disk)):
        pytest.skip("no right to mount a small file system here")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def _loop(settings: Settings) -> int:
    """Run both programs side by side as a user would; the exit code."""
    command = [sys.executable, "-m", "reference_loop", *as_arguments(settings)]
    return subprocess.run(command, capture_output=True, check=False, timeout=120).returncode


def test_a_really_full_disk_loses_and_repeats_nothing(small_disk: Path, settings: Callable[..., Settings]) -> None:
    """The run ends with code 1 and balances; with room again it goes on, and every trajectory is taken once."""
    run = settings(run_dir=small_disk / "run", total_steps=12_000, num_envs=64, rollout_steps=32, patience=2.0, disk_patience=0.5)
    assert _loop(run) == 1
    stopped = balance(run.run_dir)
    assert stopped.holds
    assert 0 < len(stopped.sampled) < len(stopped.taken) + len(stopped.left) + 1
    assert _mount("-o", "remount,size=64m", str(small_disk))
    assert _loop(run) == 0
    found = balance(run.run_dir)
    assert found.holds
    assert len(found.left) == 0
    assert len(found.taken) == len(set(found.taken)) == len(found.sampled) > len(stopped.sampled)
