"""Promises of a glance (`watch --once --json`): the full command's words and exit code, from a start that loads almost nothing."""

import json
import subprocess
import sys

import pytest

LOG = "".join(f"sampled_total={10 * i} taken_total={9 * i} buffer_left=0\n" for i in range(1, 6))
HEAVY = ("typer", "rich", "textual", "numpy", "multiprocessing", "subprocess", "tomllib", "gyrecheck.screen", "gzip", "msgspec")


def watch(*words, cwd):
    return subprocess.run(
        [sys.executable, "-m", "gyrecheck", "watch", *words], capture_output=True, text=True, check=False, timeout=120, cwd=cwd
    )


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.log").write_text(LOG)
    return tmp_path


@pytest.mark.parametrize("extra", [(), ("--exit-zero",), ("-q",)], ids=["plain", "exit-zero", "quiet"])
def test_a_glance_says_what_the_full_command_says(folder, extra):
    """Standard output, standard error and exit code are the same as with `--fail-on warning`, which only the full command takes."""
    quick = watch("--once", "--json", *extra, "a.log", cwd=folder)
    full = watch("--once", "--json", *extra, "--fail-on", "warning", "a.log", cwd=folder)
    assert (quick.stdout, quick.stderr, quick.returncode) == (full.stdout, full.stderr, full.returncode)
    assert json.loads(quick.stdout)["verdicts"]


def test_the_projects_own_settings_count_at_a_glance(folder):
    """`fail-on` and `ignore` of gyrecheck.toml are kept: the broken balance is left out, and nothing fails."""
    (folder / "gyrecheck.toml").write_text('ignore = ["GYR5"]\nfail-on = "error"\n')
    done = watch("--once", "--json", "a.log", cwd=folder)
    assert done.returncode == 0
    assert not [v for v in json.loads(done.stdout)["verdicts"] if v["code"].startswith("GYR5")]


def test_a_missing_log_is_one_sentence(folder):
    """A path that does not exist is exit 2, one line and a hint, as for the ledger."""
    done = watch("--once", "--json", "b.log", cwd=folder)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines()[0] == "error: b.log: no such file"


def test_a_glance_loads_neither_parser_nor_screen_nor_arrays(folder):
    """With the rule tables kept from a start before, the process holds none of the heavy modules."""
    script = (
        "import sys, atexit\nsys.argv = ['gyrecheck', 'watch', '--once', '--json', '--exit-zero', 'a.log']\n"
        f"atexit.register(lambda: print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr))\n"
        "from gyrecheck.cli import main\nmain()\n"
    )
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120, cwd=folder)
    assert done.stderr.splitlines()[-1] == "[]"
