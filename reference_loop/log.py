"""One `key=value` line an event, in the run folder's log and on standard error; the lines are a contract (README).

A line is one write to an append-only descriptor, so a killed process leaves no half-flushed tail, and a full disk costs
lines of the log but never the run.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime, timezone
from pathlib import Path


def text(value: object) -> str:
    """Render one value without spaces: floats with six digits, words with spaces or `=` as a JSON string."""
    if isinstance(value, float):
        return f"{value:.6g}"
    plain = str(value)
    return json.dumps(plain) if not plain or any(mark in plain for mark in ' ="\n') else plain


class EventLog:
    """Writes `<time> pid=<pid> side=<side> <event> key=value ...` lines."""

    def __init__(self, path: Path, *, side: str, quiet: bool = False) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._side = side
        self._quiet = quiet
        self._torn = False

    def __call__(self, event: str, **fields: object) -> None:
        """Write one line."""
        stamp = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        words = [stamp, f"pid={os.getpid()}", f"side={self._side}", event]
        words += [f"{key}={text(value)}" for key, value in fields.items()]
        line = " ".join(words) + "\n"
        self._append(("\n" + line if self._torn else line).encode())
        if not self._quiet:
            sys.stderr.write(line)
            sys.stderr.flush()

    def _append(self, line: bytes) -> None:
        try:
            self._torn = os.write(self._descriptor, line) < len(line)
        except OSError:
            # A full disk: the run goes on, and the next line that fits starts on a line of its own.
            self._torn = True

    def close(self) -> None:
        """Close the file; standard error stays open."""
        os.close(self._descriptor)
