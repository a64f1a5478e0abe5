"""What lint costs beside parsing alone: CPU of `gyrecheck lint` over a tree, cold, warm and with one file changed, as ratios.

    python bench/lint.py PATH [ROUNDS] [--fixit PROGRAM] [--import-linter PROGRAM]

The reference is `ast.parse` of the same files in a process of its own, interleaved with the runs; the median of the rounds is told.
Promises: cold in one process at most 2.0 x, warm at most 0.15 x, one file changed at most 0.20 x, at most 120 MB resident. The last
is met where the change leaves the facts as they are (a comment); new code is analysed with the whole program, which is told apart.

Beside it, in the same run, what others offer today: import-linter with its cache warm (one contract: the tree's largest package may not
import gymnasium), and Fixit with one rule, once, since it parses everything anew each time. Both are installed by hand, neither is a
dependency; one that is absent is left out with a sentence.
"""

from __future__ import annotations

import argparse
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
RULE = "fixit.rules.no_inherit_from_object:NoInheritFromObject"
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
"""An installed tool has its bytecode: no run may compile it again."""


def spent(command: list[str], **more: object) -> tuple[float, float, int]:
    """CPU seconds (user and system) and peak resident MB of one child with all it started, and its exit code."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": ENVIRONMENT} | more
    process = subprocess.Popen(command, **quiet)
    _, status, usage = os.wait4(process.pid, 0)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status)


def contract(copy: Path, at: Path) -> list[str] | None:
    """The arguments of import-linter for the largest importable package of the tree, or None when there is none."""
    packages = [p.parent for p in copy.glob("*/__init__.py")] + [p.parent for p in copy.glob("src/*/__init__.py")]
    if not packages:
        return None
    package = max(packages, key=lambda p: sum(1 for _ in p.rglob("*.py")))
    config = at / "contract.ini"
    config.write_text(
        f"[importlinter]\nroot_package = {package.name}\ninclude_external_packages = True\n\n[importlinter:contract:one]\n"
        f"name = no environment\ntype = forbidden\nsource_modules = {package.name}\nforbidden_modules = gymnasium\n"
    )
    return ["--cache-dir", str(at / "imports"), "--no-logo", str(config), "PYTHONPATH", str(package.parent)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("rounds", type=int, nargs="?", default=3)
    beside = Path(sys.executable).with_name("lint-imports")
    parser.add_argument("--import-linter", default=str(beside) if beside.exists() else shutil.which("lint-imports"))
    parser.add_argument("--fixit", default=shutil.which("fixit"))
    options = parser.parse_args()
    rows: dict[str, list[float]] = {name: [] for name in ("ast.parse", "cold", "warm", "one comment changed", "one function added")}
    resident = 0.0
    with tempfile.TemporaryDirectory() as scratch:
        copy, kept = Path(scratch, "tree"), Path(scratch, "cache")
        shutil.copytree(options.tree, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        changed = max(copy.rglob("*.py"), key=lambda p: p.stat().st_size)
        lint = [sys.executable, "-m", "gyrecheck", "lint", str(copy), "--jobs", "1", "--cache-dir", str(kept)]
        lint += ["-q", "--exit-zero", "--output-format", "concise"]
        spent(lint)
        imports = contract(copy, Path(scratch)) if options.import_linter else None
        linter = [options.import_linter, *imports[:-2]] if imports else []
        where = ENVIRONMENT | {imports[-2]: imports[-1]} if imports else {}
        if imports and spent(linter, env=where, cwd=scratch)[2] not in {0, 1}:
            linter = []
        for at in range(options.rounds):
            shutil.rmtree(kept, ignore_errors=True)
            rows["ast.parse"].append(spent([sys.executable, "-c", REFERENCE, str(copy)])[0])
            cold, memory, _ = spent(lint)
            rows["cold"].append(cold)
            resident = max(resident, memory)
            rows["warm"].append(spent(lint)[0])
            if linter:
                rows.setdefault("import-linter, warm", []).append(spent(linter, env=where, cwd=scratch)[0])
            changed.write_bytes(changed.read_bytes() + b"\n# changed\n")
            rows["one comment changed"].append(spent(lint)[0])
            changed.write_bytes(changed.read_bytes() + b"\ndef added_%d(value):\n    return str(value)\n" % at)
            rows["one function added"].append(spent(lint)[0])
        if options.fixit:
            rows["Fixit, one rule"] = [spent([options.fixit, "--quiet", "--rules", RULE, "lint", str(copy)])[0]]
    reference = statistics.median(rows["ast.parse"])
    for name, seconds in rows.items():
        print(f"{name:20} {statistics.median(seconds):7.2f} s CPU   {statistics.median(seconds) / reference:5.2f} x")
    print(f"peak resident        {resident:7.0f} MB")
    if not linter:
        print("import-linter is left out: it is not installed here, or the tree holds no package that it can import.")
    if not options.fixit:
        print("Fixit is left out: it is not installed here.")


if __name__ == "__main__":
    main()
