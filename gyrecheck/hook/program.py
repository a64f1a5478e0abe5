"""Starts a program hooked and stays out of its way: same output, same signals, same exit code.

The program's standard output and error pass through this process so that its own counter lines can be read; where ours is a terminal the
program gets a terminal too, so that it buffers and colours as it would without us. Order is kept within each of the two streams.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from gyrecheck.hook.launch import MODULES
from gyrecheck.hook.runtime import FOLDER, RUN_ID, TABLE

LAUNCHER = Path(__file__).with_name("launcher")
ROOT = "GYRECHECK_ROOT"
STREAMS = ("stdout", "stderr")
LINGER = 1.0
"""Seconds for which output of processes that outlive the program is still waited for."""
FORWARDED = ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT", "SIGWINCH")
_CHUNK = 65536


@dataclass(slots=True)
class Outcome:
    """How a program ended. `code` is what a shell would see: 128 + n for a program that signal n ended."""

    code: int
    pid: int
    seconds: float
    logs: tuple[Path, ...] = ()
    interrupted: bool = False
    problems: list[str] = field(default_factory=list)


def environment_for(folder: Path, run_id: str, base: dict[str, str] | None = None) -> dict[str, str]:
    """The environment of a hooked program: our launcher first on PYTHONPATH, the run folder and the run's id."""
    env = dict(os.environ if base is None else base)
    env[FOLDER], env[RUN_ID], env[ROOT] = str(folder.absolute()), run_id, str(Path(__file__).resolve().parents[2])
    old = env.get("PYTHONPATH", "")
    env["PYTHONPATH"] = f"{LAUNCHER}{os.pathsep}{old}" if old else str(LAUNCHER)
    return env


def write_table(folder: Path, table: str) -> None:
    """The compiled table of names into the run folder, and apart from it the modules it speaks of; each whole or not at all."""
    rows = [row for kind in ("wraps", "registers", "bases") for row in json.loads(table).get(kind, ())]
    for name, text in ((TABLE, table), (MODULES, "\n".join(sorted({row["module"] for row in rows})))):
        partial = folder / f".{name}.partial"
        partial.write_text(text, encoding="utf-8")
        partial.replace(folder / name)


class Program:
    """One program, its output passed on while it is copied into the run folder."""

    def __init__(self, command: list[str], env: dict[str, str], logs: Path | None, *, quiet: bool) -> None:
        self.command, self.env, self.quiet, self.logs = command, env, quiet, logs
        self.kept: dict[str, int] = {}
        self.problems: list[str] = []

    def run(self) -> Outcome:
        """Start, pass on, wait. Raises OSError where the command cannot be started."""
        ends = {name: _pair(getattr(sys, name)) for name in STREAMS}
        start = time.monotonic()
        previous: dict[int, object] = {}
        try:
            child = subprocess.Popen(self.command, env=self.env, stdout=ends["stdout"][1], stderr=ends["stderr"][1])
        except BaseException:
            for reader, writer in ends.values():
                os.close(reader)
                os.close(writer)
            raise
        for _, writer in ends.values():
            os.close(writer)
        self._open_logs()
        try:
            previous = _pass_signals(child)
            self._pump(child, {name: reader for name, (reader, _) in ends.items()})
            code = child.wait()
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)  # type: ignore[arg-type]
            for fd in (*self.kept.values(), *(reader for reader, _ in ends.values())):
                with contextlib.suppress(OSError):
                    os.close(fd)
        logs = tuple(self.logs / f"{name}.log" for name in self.kept) if self.logs else ()
        return Outcome(128 - code if code < 0 else code, child.pid, time.monotonic() - start, logs, code == -signal.SIGINT, self.problems)

    def _open_logs(self) -> None:
        if self.logs is None:
            return
        for name in STREAMS:
            try:
                self.kept[name] = os.open(self.logs / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            except OSError as error:
                self.problems.append(f"{name} of the program is not kept: {error.strerror or error}")

    def _pump(self, child: subprocess.Popen[bytes], readers: dict[str, int]) -> None:
        """Copy until both streams end, or `LINGER` after the program did (a process it left behind may hold them open)."""
        own = {"stdout": 1, "stderr": 2}
        with selectors.DefaultSelector() as selector:
            for name, fd in readers.items():
                selector.register(fd, selectors.EVENT_READ, name)
            last = None
            while selector.get_map():
                ready = selector.select(0.1)
                if not ready and child.poll() is not None:
                    last = last or time.monotonic()
                    if time.monotonic() - last > LINGER:
                        return
                for key, _ in ready:
                    data = _read(int(key.fd))
                    if not data:
                        selector.unregister(key.fd)
                        continue
                    self._pass_on(str(key.data), own[str(key.data)], data)

    def _pass_on(self, name: str, fd: int, data: bytes) -> None:
        if not self.quiet:
            _write(fd, data)
        kept = self.kept.get(name)
        if kept is not None:
            try:
                _write(kept, data)
            except OSError as error:
                self.problems.append(f"{name} of the program is kept in part only: {error.strerror or error}")
                del self.kept[name]


def _pair(stream: object) -> tuple[int, int]:
    """A reading and a writing end: a terminal where our own stream is one, else a pipe."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        if stream.isatty():  # type: ignore[attr-defined]
            import fcntl
            import pty
            import termios
            import tty

            reader, writer = pty.openpty()
            tty.setraw(writer)  # the outer terminal does the line discipline; a second one would double every newline
            attributes = termios.tcgetattr(writer)
            attributes[3] |= termios.ISIG
            termios.tcsetattr(writer, termios.TCSANOW, attributes)
            with contextlib.suppress(OSError):
                size = fcntl.ioctl(stream.fileno(), termios.TIOCGWINSZ, bytes(8))  # type: ignore[attr-defined]
                fcntl.ioctl(writer, termios.TIOCSWINSZ, size)
            return reader, writer
    return os.pipe()


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, _CHUNK)
    except OSError as error:
        if error.errno == errno.EIO:  # a terminal whose last writer has gone
            return b""
        raise


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _pass_signals(child: subprocess.Popen[bytes]) -> dict[int, object]:
    """Send on what is sent to us; Ctrl-C reaches the program by itself and only must not end us first."""
    previous: dict[int, object] = {}

    def forward(number: int, frame: object) -> None:
        del frame
        with contextlib.suppress(OSError):
            child.send_signal(number)

    def interrupt(number: int, frame: object) -> None:
        del frame
        if not sys.stdin.isatty():  # no terminal has told the program
            with contextlib.suppress(OSError):
                child.send_signal(number)

    for name in FORWARDED:
        number = getattr(signal, name, None)
        if number is not None:
            with contextlib.suppress(OSError, ValueError):
                previous[int(number)] = signal.signal(number, forward)
    with contextlib.suppress(OSError, ValueError):
        previous[int(signal.SIGINT)] = signal.signal(signal.SIGINT, interrupt)
    return previous
