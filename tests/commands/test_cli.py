"""Promises of the command line: help, streams, exit codes and one-sentence errors."""

import os
import subprocess
import sys

import pytest

from gyrecheck.cli import COMMANDS


def gyrecheck(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "FORCE_COLOR", "COLUMNS"}} | settings
    return subprocess.run([sys.executable, "-m", "gyrecheck", *words], capture_output=True, text=True, check=False, env=env)


def test_bare_and_help_say_the_same_and_exit_0():
    """`gyrecheck` and `gyrecheck --help` print the overview of every command and exit 0."""
    bare = gyrecheck()
    assert bare.returncode == 0
    assert bare.stdout == gyrecheck("--help").stdout
    assert all(name in bare.stdout for name in COMMANDS)
    assert max(len(line) for line in bare.stdout.splitlines()) <= 110


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_answers_help(name):
    """Each command of the overview exists and explains itself."""
    done = gyrecheck(name, "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout


def test_an_unknown_command_is_exit_2():
    """A word that is no command is a usage error."""
    done = gyrecheck("lnt")
    assert done.returncode == 2
    assert done.stdout == ""


def test_ascii_streams_get_ascii_twins():
    """A stream that cannot encode the box signs gets their twins, and no traceback."""
    done = gyrecheck(PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0
    assert done.stdout.isascii()


def test_an_existing_output_file_is_refused_without_force(tmp_path):
    """Nothing is overwritten unless asked: an existing report file is exit 2 with the flag that allows it."""
    target = tmp_path / "report.json"
    target.write_text("kept")
    source = tmp_path / "a.py"
    source.write_text("x = 1\n")
    done = gyrecheck("lint", str(source), "--output-format", "json", "-o", str(target))
    assert done.returncode == 2
    assert "--force" in done.stderr
    assert target.read_text() == "kept"
    assert gyrecheck("lint", str(source), "--output-format", "json", "-o", str(target), "--force").returncode == 0
    assert target.read_text().startswith("{")
