"""What the two programs share around their work: options, signals, one thread, and what each exit code means.

Exit codes: 0 ended cleanly, 1 ended on a fault that a line of the log names, 2 could not start, 130 stopped a second time.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Protocol, TypeVar

import torch

from reference_loop.config import Settings, add_arguments, from_arguments
from reference_loop.faults import FAULTS, listing
from reference_loop.store import FolderInUseError


class ContractBrokenError(Exception):
    """A side met something that only a change of code can mend; it has logged what."""


class Stop:
    """Set by SIGINT or SIGTERM; both sides look at it between steps. The second signal ends the program at once."""

    def __init__(self) -> None:
        self.asked = False

    def listen(self) -> None:
        """Take over the two signals."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ask)

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


class Program(Protocol):
    """A side of the loop."""

    def run(self) -> str:
        """Work until there is a reason to end, and return it."""
        ...

    def close(self, reason: str, exit_code: int) -> None:
        """Log the end and let go of everything."""
        ...


def parse(
    description: str, argv: list[str] | None = None, extra: Callable[[argparse.ArgumentParser], None] | None = None
) -> argparse.Namespace:
    """Read the command line; lists faults and exits when asked to."""
    parser = argparse.ArgumentParser(description=description)
    add_arguments(parser)
    if extra is not None:
        extra(parser)
    namespace = parser.parse_args(argv)
    if namespace.list_faults:
        sys.stdout.write(listing())
        raise SystemExit(0)
    if namespace.fault and namespace.fault not in FAULTS:
        parser.error(f"no fault `{namespace.fault}`; --list-faults names them")
    return namespace


def run_program(make: Callable[[Settings, Stop], Program], argv: list[str] | None = None) -> int:
    """Run one side as a program of its own."""
    settings = from_arguments(parse(make.__doc__ or "", argv))
    stop = Stop()
    stop.listen()
    return run_sides(lambda: (make(settings, stop),), lambda sides: sides[0].run())


Sides = TypeVar("Sides", bound=tuple[Program, ...])


def run_sides(build: Callable[[], Sides], work: Callable[[Sides], str]) -> int:
    """Build the sides, let them work, close them whatever happens; the exit code."""
    torch.set_num_threads(1)
    try:
        sides = build()
    except FolderInUseError as error:
        sys.stderr.write(f"error: {error}\n hint: end that one first, give a second sampler another --producer, or use another --run-dir\n")
        return 2
    reason, code = "failed", 1
    try:
        reason, code = work(sides), 0
    except ContractBrokenError as error:
        reason = str(error)
    except OSError as error:
        reason = f"os_error {error}"
    except KeyboardInterrupt:
        reason, code = "interrupted", 130
    finally:
        for side in sides:
            side.close(reason, code)
    return code
