"""`gyrecheck run`: the program behaves as it would unhooked, and the report says what it did."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from gyrecheck.cli import main

ROOT = Path(__file__).resolve().parents[2]
MARKED = """
from gyrecheck.hook import ledger, sampling, training

@sampling
def rollout():
    pass

@training
def update():
    pass

for _ in range(6):
    rollout()
    rollout()
    update()
ledger(sampled=12, taken={taken}, dropped_stale=2, left=0)
"""


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def gyrecheck(monkeypatch, tmp_path, capfd):
    """Runs the command in this process (starting an interpreter costs more than the command), with its output caught at the descriptors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("COLUMNS", "200")

    def call(*args: str, env: dict[str, str] | None = None) -> Done:
        capfd.readouterr()
        for name, value in (env or {}).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["gyrecheck", *args])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capfd.readouterr()
        return Done(int(end.value.code or 0), out, err)

    return call


@pytest.fixture
def program(tmp_path):
    """Writes a program and gives its path."""

    def write(text: str, name: str = "train.py") -> Path:
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return path

    return write


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("import sys; sys.exit(3)", 3),
        ("import os; os._exit(4)", 4),
        ("raise SystemExit('gone')", 1),
        ("raise ValueError('x')", 1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 137),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", 143),
        ("raise KeyboardInterrupt", 130),
    ],
)
def test_exit_code_output_and_errors_are_the_programs_own(gyrecheck, program, tmp_path, text, code):
    """What the program prints and how it ends is what it prints and how it ends without us."""
    path = program(f"print('out', flush=True)\n{text}\n")
    alone = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    done = gyrecheck("run", "--report", str(tmp_path / "report.txt"), "--", sys.executable, str(path))
    assert done.returncode == code
    assert done.returncode == (128 - alone.returncode if alone.returncode < 0 else alone.returncode)
    assert done.stdout == alone.stdout
    assert done.stderr.replace("next: ", "").startswith(alone.stderr)


def test_the_report_is_json_on_standard_output(gyrecheck, program, tmp_path):
    """`--report - --output-format json --quiet-child` leaves nothing on standard output but the object."""
    path = program("print('COUNTERS sampled_total=10 taken=4 dropped=0 buffer_left=0')\n")
    done = gyrecheck("run", "--report", "-", "--output-format", "json", "--quiet-child", "--", sys.executable, str(path))
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert found["command"] == "run"
    assert found["statistics"]["program_exit"] == 0


def test_marks_are_counted_and_balanced(gyrecheck, program, tmp_path):
    """Twelve samples, six updates; 12 = 10 + 2 + 0 holds, 12 = 7 + 2 + 0 does not: three are unaccounted."""
    for taken, state in ((10, "holds"), (7, "broken")):
        path = program(MARKED.format(taken=taken))
        done = gyrecheck("run", "--report", "-", "--output-format", "json", "--", sys.executable, str(path))
        found = json.loads(done.stdout)
        assert found["statistics"]["sample_calls"] == 12
        assert found["statistics"]["update_calls"] == 6
        conservation = [v for v in found["verdicts"] if v["code"] == "GYR507"]
        assert [v["state"] for v in conservation] == [state]


def test_findings_change_the_exit_code_only_when_asked(gyrecheck, program, tmp_path):
    """With `--fail-on error` a broken balance is exit 1; a program's own failure comes first."""
    path = program(MARKED.format(taken=7))
    assert gyrecheck("run", "--", sys.executable, str(path)).returncode == 0
    assert gyrecheck("run", "--fail-on", "error", "--", sys.executable, str(path)).returncode == 1
    path = program(MARKED.format(taken=7) + "\nraise SystemExit(9)")
    assert gyrecheck("run", "--fail-on", "error", "--", sys.executable, str(path)).returncode == 9


def test_a_recorded_run_keeps_counters_and_output(gyrecheck, program, tmp_path):
    """The folder holds a shard, the program's output byte for byte, and is refused for a second run."""
    path = program(
        "from gyrecheck.hook import sampling\nimport sys\nsampling(lambda: None)()\nsys.stdout.buffer.write(b'\\xff\\x00one\\r\\n')\n"
    )
    done = gyrecheck("run", "--record", "run", "--quiet-child", "--", sys.executable, str(path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run/stdout.log").read_bytes() == b"\xff\x00one\r\n"
    assert len(list((tmp_path / "run").glob("*.shard"))) == 1
    again = gyrecheck("run", "--record", "run", "--", sys.executable, str(path))
    assert again.returncode == 2
    assert "another run" in again.stderr


def test_modules_arguments_and_code_strings_run_as_ever(gyrecheck, program, tmp_path):
    """`-m module` and `-c code` get their arguments, and the program sees itself as __main__ in its own folder."""
    program("import sys\nprint(__name__, sys.argv[1:], sys.path[0] != '', [p for p in sys.path if 'launcher' in p])\n", "mod.py")
    done = gyrecheck("run", "--", sys.executable, "-m", "mod", "--lr", "3e-4")
    assert done.stdout == "__main__ ['--lr', '3e-4'] True []\n"
    done = gyrecheck("run", "--", sys.executable, "-c", "import sys; print(sys.argv)", "x")
    assert done.stdout == "['-c', 'x']\n"


def test_the_programs_own_sitecustomize_still_runs(gyrecheck, program, tmp_path):
    """A sitecustomize on the program's path is found behind ours, and an error in it is told as ever."""
    program("import builtins\nbuiltins.OWN = 42\n", "sitecustomize.py")
    done = gyrecheck("run", "--", sys.executable, "-c", "print(OWN)", env={"PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"})
    assert done.stdout == "42\n"


def test_an_isolated_interpreter_is_said_to_be_out_of_reach(gyrecheck, tmp_path):
    """With -I nothing is hooked: the program runs, and the report says that counts are unknown."""
    done = gyrecheck("run", "--", sys.executable, "-I", "-c", "print('ran')")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "not started in any process" in done.stderr


def test_a_program_that_is_no_python_runs_too(gyrecheck, tmp_path):
    """Any command may be run; its children in Python are hooked through the environment."""
    done = gyrecheck("run", "--", "sh", "-c", "echo hi; exit 5")
    assert (done.returncode, done.stdout) == (5, "hi\n")


def test_children_by_exec_and_subprocess_are_hooked(gyrecheck, program, tmp_path):
    """A child program started by the program counts into a shard of its own, and both are summed."""
    program("from gyrecheck.hook import sampling\nrollout = sampling(lambda: None)\nfor _ in range(3): rollout()\n", "child.py")
    path = program(
        f"""
        import os, subprocess, sys
        from gyrecheck.hook import sampling
        sampling(lambda: None)()
        subprocess.run([sys.executable, {str(tmp_path / "child.py")!r}], check=True)
        os.execv(sys.executable, [sys.executable, {str(tmp_path / "child.py")!r}])
        """
    )
    done = gyrecheck("run", "--report", "-", "--output-format", "json", "--", sys.executable, str(path))
    found = json.loads(done.stdout)
    assert found["statistics"]["processes_hooked"] == 3
    assert found["statistics"]["sample_calls"] == 7


def test_a_folder_that_cannot_be_written_leaves_the_program_alone(gyrecheck, tmp_path):
    """The program runs, its output and exit code are its own, and one line says that nothing is recorded."""
    done = gyrecheck("run", "--record", "/proc/version/x", "--", sys.executable, "-c", "print('ran')")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "nothing is recorded" in done.stderr


def test_signals_reach_the_program(tmp_path):
    """SIGTERM sent to us ends the program in its own way, and its exit code is kept."""
    text = "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(21))\nprint('up', flush=True)\ntime.sleep(60)"
    child = subprocess.Popen(
        [sys.executable, "-m", "gyrecheck", "run", "--", sys.executable, "-c", text],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "up\n"
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=60)
    assert child.returncode == 21


def test_a_process_left_behind_does_not_hold_the_report(gyrecheck, tmp_path):
    """A background process that keeps the output open is waited for a moment only."""
    begun = time.monotonic()
    done = gyrecheck("run", "--", "sh", "-c", "sleep 30 & echo done")
    assert done.stdout == "done\n"
    assert time.monotonic() - begun < 25


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["run", "--output-format", "nonsense", "--", "true"], "nonsense"),
        (["run", "--", "no-such-command-here"], "cannot be started"),
        (["run", "--select", "GYR9x", "--", "true"], "unknown rule code"),
        (["run"], "Missing argument"),
    ],
)
def test_a_wrong_call_is_said_before_the_program_runs(gyrecheck, tmp_path, args, says):
    """Usage errors end with exit 2 and one sentence."""
    done = gyrecheck(*args)
    assert done.returncode == 2
    assert says in done.stderr


def test_torch_is_hooked_from_the_command_line(gyrecheck, tmp_path):
    """The whole way, once: a real program, started as a user would, and its fault in the report."""
    pytest.importorskip("torch")
    script = ROOT / "fixtures/runtime/sampler-copy-never-refreshed/input.py"
    done = gyrecheck("run", "--report", "-", "--output-format", "json", "--quiet-child", "--", sys.executable, str(script))
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert {"GYR420", "GYR402"} <= {v["code"] for v in found["verdicts"] if v["state"] == "broken"}
    assert found["statistics"]["optimizer_steps"] == 24
    assert found["exit"] == 1


def test_a_program_on_a_terminal_gets_a_terminal(tmp_path):
    """Where our output is a terminal the program's is one too, with its size, and no newline is doubled."""
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 31, 97, 0, 0))
    text = "import os, sys; print(sys.stdout.isatty(), os.get_terminal_size().columns); print('x')"
    child = subprocess.Popen(
        [sys.executable, "-m", "gyrecheck", "run", "--report", str(tmp_path / "r.txt"), "-q", "--", sys.executable, "-c", text],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(writer)
    seen = b""
    with contextlib.suppress(OSError):
        while part := os.read(reader, 1024):
            seen += part
    os.close(reader)
    assert child.wait(timeout=60) == 0
    assert seen == b"True 97\r\nx\r\n"


def test_the_ledger_reads_what_a_killed_run_left(gyrecheck, program, tmp_path):
    """A program killed with its totals half way is judged from its folder alone: 12 = 7 + 2 + 0 leaves 3 unaccounted."""
    path = program(MARKED.format(taken=7) + "\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    assert gyrecheck("run", "--record", "run", "--", sys.executable, str(path)).returncode == 137
    done = gyrecheck("ledger", "run", "--output-format", "json")
    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert found["statistics"]["sample_calls"] == 12
    assert [(v["state"], v["value"]) for v in found["verdicts"] if v["code"] == "GYR507"] == [("broken", 3)]


def test_a_record_folder_that_cannot_be_made_is_named_with_its_reason(gyrecheck, monkeypatch):
    """Where making the folder is refused, the message gives that refusal, not that the folder is absent; the program runs."""

    def refused(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refused)
    done = gyrecheck("run", "--record", "closed/r", "--", sys.executable, "-c", "print(1)")
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "nothing is recorded: closed/r: Permission denied" in done.stderr
