"""`gyrecheck demo`: the bundled loop learns and balances; then one fault is switched on and named. Everything shown is really run."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gyrecheck.commands.options import write_stdout
from gyrecheck.model.errors import ExitCode, GyreError

if TYPE_CHECKING:
    from gyrecheck.screen.view import View

NEEDED = ("torch", "gymnasium", "safetensors", "numpy")
Folder = Annotated[Path | None, typer.Option("--dir", help="Keep the demo's runs here; else in a new temporary folder.")]
Steps = Annotated[int, typer.Option("--steps", min=4000, help="Environment steps of the healthy run.")]
Fault = Annotated[str, typer.Option("--fault", help="The fault of the second run; python -m reference_loop --list-faults names all.")]


def command(folder: Folder = None, steps: Steps = 100_000, fault: Fault = "weights-not-loaded") -> None:
    """See a healthy loop balanced, then a broken one named."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing or importlib.util.find_spec("reference_loop") is None:
        raise GyreError(
            f"the demo runs the reference loop, which needs {', '.join(missing) or 'its package'}",
            hint="pip install 'gyrecheck[loop]', or make demo",
        )
    place = folder or Path(tempfile.mkdtemp(prefix="gyrecheck-demo-"))
    if folder is not None and folder.exists() and any(folder.iterdir()):
        raise GyreError(f"{folder}: is not empty", hint="give a new folder")
    healthy, broken = place / "healthy", place / "broken"
    say("1  A sampler and a trainer, two processes that meet only in a folder, learn CartPole; gyrecheck counts both.")
    run_loop(healthy, steps, seed=1)
    show("ledger", str(healthy), expect={ExitCode.OK})
    say("2  The code that did it, checked for crossings between the two sides.")
    source = importlib.util.find_spec("reference_loop")
    show("lint", str(Path(source.origin).parent) if source and source.origin else "reference_loop", "--no-cache", expect={ExitCode.OK})
    say("3  The trajectories it wrote, checked against the field contract.")
    show("handoff", "check", str(healthy), expect={ExitCode.OK, ExitCode.UNDECIDED})
    say(f"4  The same loop with one fault switched on: {fault}.")
    run_loop(broken, max(4000, steps // 3), seed=1, fault=fault)
    show("ledger", str(broken), expect={ExitCode.FOUND})
    say("Where to go next")
    write_stdout(
        f"  gyrecheck watch --replay 5 {healthy}      the live screen, on the run that just ended\n"
        "  gyrecheck run -- python train.py           count both sides of your own program, unchanged\n"
        "  gyrecheck ledger train.log                 balance the log of a run you have\n"
        "  gyrecheck lint src/                        check your own code\n"
    )


def say(text: str) -> None:
    """A heading of the demo."""
    write_stdout(f"\n{text}\n\n")


def run_loop(folder: Path, steps: int, *, seed: int, fault: str = "") -> None:
    """The reference loop in its own processes, hooked, with its counters on one line while it runs.

    Raises:
        GyreError: the loop ended with an error, which is no part of the demo.
    """
    loop = [sys.executable, "-m", "reference_loop", "--run-dir", str(folder), "--total-steps", str(steps), "--seed", str(seed), "--quiet"]
    loop += ["--fault", fault] if fault else []
    hooked = [
        sys.executable,
        "-m",
        "gyrecheck",
        "run",
        "--quiet-child",
        "--record",
        f"{folder}-counts",
        "--report",
        f"{folder}-report.txt",
        "--",
        *loop,
    ]
    write_stdout("$ gyrecheck run -- python " + " ".join(loop[1:]) + "\n")
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(hooked, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        try:
            follow(folder, child)
        finally:
            if child.poll() is None:
                child.terminate()
                child.wait()
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip().splitlines()
    if child.returncode not in {0, 1} or not (folder / "run.json").exists():
        raise GyreError(
            f"the reference loop ended with {child.returncode}: {said[-1] if said else 'no message'}", hint=f"look into {folder}"
        )


def follow(folder: Path, child: subprocess.Popen[bytes]) -> None:
    """One status line, redrawn on a terminal, once at the end elsewhere."""
    from gyrecheck.rulebook.codes import load_codes
    from gyrecheck.screen.feed import RunFeed

    feed = RunFeed((str(folder),), load_codes())
    live = sys.stderr.isatty()
    started = time.monotonic()
    while child.poll() is None:
        if live:
            sys.stderr.write(f"\r\x1b[K{time.monotonic() - started:4.0f} s  {line_of(feed.poll())}")
            sys.stderr.flush()
        time.sleep(0.5)
    if live:
        sys.stderr.write("\r\x1b[K")
    write_stdout(f"{time.monotonic() - started:.0f} s: {line_of(feed.poll())}\n\n")
    feed.close()


def line_of(view: View) -> str:
    """Counters and the newest mean return."""
    from gyrecheck.screen.numbers import short

    words = [f"{row.name} {short(row.total)} {row.unit}".strip() for row in view.counters]
    learned = next((series.values[-1] for series in view.series if "return" in series.name and series.values), None)
    return ", ".join(words) + (f", mean return {learned:.0f}" if learned is not None else "") if words else "starting"


def show(*words: str, expect: set[ExitCode]) -> None:
    """One command as a person would type it, and what it printed.

    Raises:
        GyreError: it ended in a way that this demo never should.
    """
    write_stdout("$ gyrecheck " + " ".join(words) + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "gyrecheck", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    write_stdout(done.stdout)
    if done.returncode not in expect:
        raise GyreError(
            f"`gyrecheck {' '.join(words)}` ended with {done.returncode}: {done.stderr.strip() or 'see above'}", hint="please report this"
        )
