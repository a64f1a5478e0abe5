"""What `gyrecheck watch` refuses before it looks: what is not there, what is no log, and numbers that are none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app
from gyrecheck.model.errors import GyreError


def _refusal(*arguments: str) -> str:
    result = CliRunner().invoke(build_app("watch"), ["watch", *arguments])
    if isinstance(result.exception, GyreError):
        return result.exception.message
    assert result.exit_code == 2
    return result.output


@pytest.mark.parametrize("way", ["--once", "--json", "--plain"])
def test_without_a_screen_a_log_must_be_there_and_be_text(way: str, tmp_path: Path) -> None:
    """A missing and a binary file end in the ledger's sentence, whatever the form without a screen."""
    assert _refusal(way, str(tmp_path / "none.log")) == f"{tmp_path}/none.log: no such file"
    binary = tmp_path / "bin.log"
    binary.write_bytes(bytes(range(32)) * 200)
    assert _refusal(way, str(binary)) == f"{binary}: is no text log (binary file)"
    os.mkfifo(tmp_path / "pipe")
    assert "is a pipe" in _refusal(way, str(tmp_path / "pipe"))


@pytest.mark.parametrize(
    "options",
    [("--plain", "--interval", "nan"), ("--plain", "--timeout", "nan"), ("--prometheus", "99999999"), ("--serve", "-5")],
)
def test_numbers_that_are_none_are_refused(options: tuple[str, ...], tmp_path: Path) -> None:
    """No-numbers and ports that no machine has are refused by the option's name."""
    log = tmp_path / "run.log"
    log.write_text("iter 1: sampled_total=5 taken=5 buffer_left=0\n")
    assert options[-2] in _refusal(*options, str(log))


def test_a_key_that_the_log_lacks_is_named(tmp_path: Path) -> None:
    """One look with --map of a key that is nowhere says which key."""
    log = tmp_path / "run.log"
    log.write_text("iter 1: sampled_total=5 taken=5 buffer_left=0\n")
    assert "no key `nokey`" in _refusal("--once", str(log), "--map", "sampled_total=nokey")
