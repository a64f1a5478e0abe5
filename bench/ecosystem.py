"""What lint says of public repositories: every finding at warning or above, judged by hand, as a table of repository and code.

    python bench/ecosystem.py CHECKOUT...                 findings that nobody has judged yet, one a line
    python bench/ecosystem.py CHECKOUT... --table         the Markdown table for ecosystem.md

Judgements stand in `ecosystem.tsv`: repository, code, path, fingerprint, true or false, why. The checkouts are made by hand; none
of their code is kept here. Exit 1: a finding is not judged, a false one is at error level, or false ones exceed one in 20,000 lines.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
LINES_PER_FALSE_ALARM = 20_000


@dataclass(frozen=True)
class Found:
    """One finding at warning or above in one repository."""

    repository: str
    code: str
    severity: str
    path: str
    line: int
    message: str
    fingerprint: str


@dataclass(frozen=True)
class Tree:
    """One checkout: what it is, how large, and what lint said."""

    name: str
    commit: str
    lines: int
    seconds: float
    notes: int
    found: tuple[Found, ...]
    resolution: str


def main() -> int:
    """Run, print, and say with the exit code whether the promise holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--table", action="store_true", help="print the Markdown table")
    parser.add_argument("--all", action="store_true", help="print judged findings, too")
    options = parser.parse_args()
    judged = read_judgements()
    trees = [check(path) for path in options.checkouts]
    new = [f for tree in trees for f in tree.found if key(f) not in judged]
    false = [f for tree in trees for f in tree.found if judged.get(key(f)) == "false"]
    for found in [f for t in trees for f in t.found] if options.all else new:
        mark = judged.get(key(found), "?")
        print(
            f"{mark}\t{found.repository}\t{found.severity}\t{found.code}\t{found.path}:{found.line}\t{found.fingerprint}\t{found.message}"
        )
    if options.table:
        print(table(trees, judged))
    lines = sum(tree.lines for tree in trees)
    allowed = lines // LINES_PER_FALSE_ALARM
    errors = [f for f in false if f.severity == "error"]
    print(
        f"{len(trees)} repositories, {lines:,} lines: {len(new)} not judged, "
        f"{len(false)} false (at most {allowed}), {len(errors)} false errors",
        file=sys.stderr,
    )
    return 1 if new or errors or len(false) > allowed else 0


def check(path: Path) -> Tree:
    """Lint one checkout from inside it, cold."""
    files = [p for p in path.rglob("*.py") if p.is_file()]
    lines = sum(p.read_bytes().count(b"\n") for p in files)
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "gyrecheck", "lint", ".", "--output-format", "json", "--no-cache", "--quiet", "--statistics"],
        cwd=path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    seconds = time.perf_counter() - began
    if done.returncode not in {0, 1}:
        print(f"{path.name}: exit {done.returncode}: {done.stderr.strip()[-500:]}", file=sys.stderr)
        raise SystemExit(2)
    report = json.loads(done.stdout)
    shown = [f for f in report["findings"] if not f["suppressed"]]
    found = tuple(
        Found(path.name, f["code"], f["severity"], f["path"], f["line"], f["message"], f["fingerprint"])
        for f in shown
        if f["severity"] in {"error", "warning"}
    )
    return Tree(path.name, commit_of(path), lines, seconds, len(shown) - len(found), found, resolution(report))


def resolution(report: dict) -> str:
    """The share of first-party calls that were resolved, as lint says it."""
    value = report["statistics"].get("call_resolution")
    return f"{value:.1%}" if value is not None else "-"


def commit_of(path: Path) -> str:
    """The commit of a checkout, or what a file `<checkout>.commit` beside it says."""
    done = subprocess.run(["git", "-C", str(path), "log", "-1", "--format=%h %cs"], capture_output=True, text=True, check=False)
    noted = path.with_name(path.name + ".commit")
    return noted.read_text().strip() if noted.exists() else done.stdout.strip() or "unknown"


def key(found: Found) -> tuple[str, str, str, str]:
    """What a judgement is about: it survives changed line numbers."""
    return (found.repository, found.code, found.path, found.fingerprint)


def read_judgements() -> dict[tuple[str, str, str, str], str]:
    """Repository, code, path and fingerprint -> true or false."""
    path = HERE / "ecosystem.tsv"
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {(r[0], r[1], r[2], r[3]): r[4] for r in csv.reader(file, delimiter="\t") if r and not r[0].startswith("#")}


def table(trees: list[Tree], judged: dict[tuple[str, str, str, str], str]) -> str:
    """Repository, commit, lines, notes, then each code with its true, false and open findings."""
    out = [
        "| repository | commit | lines | notes | findings: true / false | false per 20,000 lines | calls resolved |",
        "|---|---|--:|--:|---|--:|--:|",
    ]
    for tree in trees:
        counts: dict[str, Counter[str]] = {}
        for found in tree.found:
            counts.setdefault(found.code, Counter())[judged.get(key(found), "open")] += 1
        said = ", ".join(
            f"{code} {c['true']} / {c['false']}" + (f" ({c['open']} open)" if c["open"] else "") for code, c in sorted(counts.items())
        )
        false = sum(c["false"] for c in counts.values())
        rate = false * LINES_PER_FALSE_ALARM / max(tree.lines, 1)
        out.append(f"| {tree.name} | {tree.commit} | {tree.lines:,} | {tree.notes} | {said or 'none'} | {rate:.2f} | {tree.resolution} |")
    return "\n".join(out)


if __name__ == "__main__":
    sys.exit(main())
