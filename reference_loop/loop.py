"""Both sides of the loop: as two programs side by side (the default), or in turns in one process (`--serial`).

This module only starts the two and waits for them; it samples nothing and trains nothing itself.
"""

from __future__ import annotations

import argparse
import dataclasses
import signal
import subprocess
import sys
import time

from reference_loop.config import Settings, as_arguments, from_arguments
from reference_loop.entry import Stop, parse, run_sides
from reference_loop.sampler import Sampler
from reference_loop.trainer import Trainer

DESCRIPTION = "PPO on CartPole-v1: a sampler and a trainer that meet only in a run folder."
START_PATIENCE_S = 120.0
"""Each program waits this long for the other one's start when both are started here."""


def serial(settings: Settings) -> int:
    """Alternate in one process until the sampler has a reason to end; bit-identical for equal seeds. The exit code."""
    stop = Stop()
    stop.listen()
    # In strict turns everything published is read at once, and nothing is waited for.
    settings = dataclasses.replace(settings, patience=0.0)

    def build() -> tuple[Trainer, Sampler]:
        trainer = Trainer(settings, stop)
        return trainer, Sampler(settings, stop)

    def alternate(sides: tuple[Trainer, Sampler]) -> str:
        trainer, sampler = sides
        while trainer.consume():
            pass
        while not (reason := sampler.why_end()):
            sampler.collect()
            while trainer.consume():
                pass
        return reason

    return run_sides(build, alternate)


def parallel(settings: Settings) -> int:
    """Run both programs side by side until they end by themselves; stop signals reach both. The worse exit code."""
    settings = dataclasses.replace(settings, patience=max(settings.patience, START_PATIENCE_S))
    words = as_arguments(settings)
    sides = {name: subprocess.Popen([sys.executable, "-m", f"reference_loop.{name}", *words]) for name in ("trainer", "sampler")}

    asked: set[int] = set()

    def forward(number: int, _frame: object) -> None:
        asked.add(number)
        if number == signal.SIGTERM:  # SIGINT comes to both from the terminal by itself
            for process in sides.values():
                process.send_signal(number)

    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGINT, forward)
    while (code := sides["trainer"].poll()) is None and sides["sampler"].poll() is None:
        time.sleep(0.1)
    if code is not None and sides["sampler"].poll() is None:
        asked.add(signal.SIGTERM)
        sides["sampler"].terminate()  # nobody is left to read
    elif sides["sampler"].poll():
        asked.add(signal.SIGTERM)
        sides["trainer"].terminate()  # nothing more will come, and no line of a journal says so
    # A program that dies of the signal it was passed had not begun anything: else it would have caught it.
    codes = [process.wait() for process in sides.values()]
    return max(0 if -code in asked else abs(code) for code in codes)


def main(argv: list[str] | None = None) -> int:
    """Run the loop; the exit code."""

    def add_mode(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--serial", action="store_true", help="alternate in one process instead of running two")

    namespace = parse(DESCRIPTION, argv, add_mode)
    settings = from_arguments(namespace)
    return serial(settings) if namespace.serial else parallel(settings)
