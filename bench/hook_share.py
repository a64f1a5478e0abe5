"""The hook's own time in the reference loop, as a share of the loop's: what paired runs are too noisy to show below a few per cent.

    python bench/hook_share.py [--runs N] [--steps N]

Every function by which the hook is entered (the finder, the installer, what runs before and after a step, a pass, a load, a looked-at sample
call, a module's call) is timed from outside, nested ones once. What a counted call adds between two looks is its measured cost times its number.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

COUNTED = 140e-9
"""Seconds that a counted call adds, as `bench/hook.py` prints it."""
DRIVER = """
import gc, json, runpy, sys, time
begun = time.perf_counter()
spent, depth, calls = [0.0], [0], {}
def collecting(phase, info):
    if depth[0]:  # the collector's time is the program's: only its moment was the hook's
        spent[0] += time.perf_counter() if phase == "start" else -time.perf_counter()
gc.callbacks.append(collecting)
def timed(fn, deeper=()):
    # deeper: what to pass on besides, for a function that counts frames from its own
    def run(*args, **named):
        args += deeper
        if depth[0]:
            return fn(*args, **named)
        depth[0] = 1
        at = time.perf_counter()
        try:
            return fn(*args, **named)
        finally:
            took = time.perf_counter() - at
            spent[0] += took
            calls.setdefault(fn.__qualname__, [0, 0.0])
            calls[fn.__qualname__][0] += 1
            calls[fn.__qualname__][1] += took
            depth[0] = 0
    return run
at = time.perf_counter()
from gyrecheck.hook import count, environments, install, launch, loads, phases, schedules, updates
spent[0] += time.perf_counter() - at
targets = {
    updates.Updates: "made loaded counted before_step after_step before_backward cleared module_cleared clipped summary",
    phases.Phases: "after_update before_backward before_sample before_draw _fire end again",
    schedules.Schedules: "advanced",
    environments.Environments: "look follow consider wrap",
    install.Hooks: "after_import end", launch.Finder: "find_spec",
    count: "stepped", install: "due loaded fingerprint rate_of",
}
for holder, names in targets.items():
    for name in names.split():
        setattr(holder, name, timed(getattr(holder, name)))
count.slow_sample = timed(count.slow_sample, (3,))
sys.argv = ["reference_loop", *sys.argv[1:]]
try:
    runpy.run_module("reference_loop", run_name="__main__", alter_sys=True)
except SystemExit:
    pass
entries = install.installed("").runtime.entries["S"].values()
print(json.dumps([spent[0], time.perf_counter() - begun, sum(e.n for e in entries), calls]), file=sys.stderr)
"""


def main() -> int:
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--runs", type=int, default=5, help="runs of the reference loop")
    ask.add_argument("--steps", type=int, default=200_000, help="env steps of each run")
    options = ask.parse_args()
    from gyrecheck.hook.program import environment_for, write_table
    from gyrecheck.rulebook.hook_table import compiled

    shares = []
    for number in range(options.runs):
        with tempfile.TemporaryDirectory(prefix="bench-hook-") as name:
            folder = Path(name)
            write_table(folder, compiled())
            env = environment_for(folder, "bench", {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"})
            given = ["--serial", "--quiet", "--run-dir", str(folder / "run"), "--total-steps", str(options.steps)]
            done = subprocess.run([sys.executable, "-c", DRIVER, *given], env=env, check=True, capture_output=True, text=True)
        hook, whole, counted, calls = json.loads(done.stderr.splitlines()[-1])
        hook += counted * COUNTED
        shares.append(hook / whole)
        print(f"  run {number + 1}: hook {hook * 1000:.0f} ms of {whole:.2f} s, {shares[-1]:.2%}")
    for name, (times, took) in sorted(calls.items(), key=lambda item: -item[1][1])[:12]:
        print(f"    {name:32} {times:6} calls {took * 1000:8.1f} ms")
    share = statistics.median(shares)
    print(f"{'ok  ' if share <= 0.01 else 'MISS'} hook's own time / loop's wall time {share:.2%} (at most 1 %)")
    return 0 if share <= 0.01 else 1


if __name__ == "__main__":
    sys.exit(main())
