"""What lint costs beside parsing alone: CPU of `gyrecheck lint` over a tree, cold, warm and with one file changed, as ratios.

    python bench/lint.py PATH [ROUNDS]

The reference is `ast.parse` of the same files in a process of its own, interleaved with the runs; the median of the rounds is told.
Promises: cold in one process at most 2.0 x, warm at most 0.15 x, one file changed at most 0.20 x, at most 120 MB resident. The last
is met where the change leaves the facts as they are (a comment); new code is analysed with the whole program, which is told apart.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

REFERENCE = """
import ast, sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
for path in Path(sys.argv[1]).rglob("*.py"):
    try:
        ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        pass
"""


ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
"""An installed tool has its bytecode: no run may compile it again."""


def spent(command: list[str]) -> tuple[float, float]:
    """CPU seconds (user and system) and peak resident MB of one child."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    _, _, usage = os.wait4(process.pid, 0)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    tree, rounds = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3
    rows: dict[str, list[float]] = {name: [] for name in ("ast.parse", "cold", "warm", "one comment changed", "one function added")}
    resident = 0.0
    with tempfile.TemporaryDirectory() as scratch:
        copy, kept = Path(scratch, "tree"), Path(scratch, "cache")
        shutil.copytree(tree, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        changed = max(copy.rglob("*.py"), key=lambda p: p.stat().st_size)
        lint = [
            sys.executable,
            "-m",
            "gyrecheck",
            "lint",
            str(copy),
            "--jobs",
            "1",
            "--cache-dir",
            str(kept),
            "-q",
            "--exit-zero",
            "--output-format",
            "concise",
        ]
        spent(lint)
        for at in range(rounds):
            shutil.rmtree(kept, ignore_errors=True)
            rows["ast.parse"].append(spent([sys.executable, "-c", REFERENCE, str(copy)])[0])
            cold, memory = spent(lint)
            rows["cold"].append(cold)
            resident = max(resident, memory)
            rows["warm"].append(spent(lint)[0])
            changed.write_bytes(changed.read_bytes() + b"\n# changed\n")
            rows["one comment changed"].append(spent(lint)[0])
            changed.write_bytes(changed.read_bytes() + b"\ndef added_%d(value):\n    return str(value)\n" % at)
            rows["one function added"].append(spent(lint)[0])
    reference = statistics.median(rows["ast.parse"])
    for name, seconds in rows.items():
        print(f"{name:20} {statistics.median(seconds):7.2f} s CPU   {statistics.median(seconds) / reference:5.2f} x")
    print(f"peak resident        {resident:7.0f} MB")


if __name__ == "__main__":
    main()
