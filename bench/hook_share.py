"""The hook's own time in the reference loop, as a share of the loop's: what paired runs are too noisy to show below a few per cent.

    python bench/hook_share.py [--runs N] [--steps N]

Every function by which the hook is entered (the finder, the installer, the torch hooks, a looked-at sample call, a module's call) is timed from
outside, nested ones once; of a wrapped function, what is left when the time of what it wraps is taken off. What the clocks themselves take is
measured in a run with the same clocks in the same places and nothing hooked, and taken off, too. What a counted call adds between two looks is
its measured cost times its number.
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
from types import SimpleNamespace
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
        time.perf_counter()  # read once before: that the clock is cold is not the hook's doing
        before, at = spent[0], time.perf_counter()
        try:
            return fn(*args, **named)
        finally:
            spent[0] += time.perf_counter() - at
            took = spent[0] - before
            calls.setdefault(fn.__qualname__, [0, 0.0])
            calls[fn.__qualname__][0] += 1
            calls[fn.__qualname__][1] += took
            depth[0] = 0
    return run
inner = []
def beneath(fn):
    def run(*args, **named):
        if not inner:
            return fn(*args, **named)
        was, depth[0] = depth[0], 0
        time.perf_counter()
        at = time.perf_counter()
        try:
            return fn(*args, **named)
        finally:
            inner[-1] += time.perf_counter() - at
            depth[0] = was
    return run
def around(fn, name):
    # a wrapper: its own time is what is left without that of what it wraps
    def run(*args, **named):
        if depth[0]:
            return fn(*args, **named)
        depth[0] = 1
        inner.append(0.0)
        time.perf_counter()
        before, at = spent[0], time.perf_counter()
        try:
            return fn(*args, **named)
        finally:
            spent[0] += time.perf_counter() - at
            took = inner.pop()
            spent[0] -= took
            calls.setdefault(name, [0, 0.0])
            calls[name][0] += 1
            calls[name][1] += spent[0] - before
            depth[0] = 0
    return run
def nothing(*given):
    pass
at = time.perf_counter()
from gyrecheck.hook import count, environments, install, launch
calls["imports"] = [0, time.perf_counter() - at]
spent[0] += calls["imports"][1]
def registering(hooks, holder, last, role, register=install.Hooks._register):
    real = getattr(holder, last, None)
    return register(hooks, SimpleNamespace(**{last: lambda hook: real(timed(hook))} if real else {}), last, role)
def wrapping(hooks, holder, last, role, wrap=install.Hooks._wrap):
    fn = holder.__dict__.get(last)
    if not callable(fn):
        return wrap(hooks, holder, last, role)
    setattr(holder, last, beneath(fn))
    done = wrap(hooks, holder, last, role)
    setattr(holder, last, around(holder.__dict__[last], "wrapped " + role) if done else fn)
    return done
def only_clocks(hooks, holder, last, role):
    fn = holder.__dict__.get(last)
    if last.startswith("register") and hasattr(holder, last) and "step" in role:
        getattr(holder, last)(timed(nothing))
    elif callable(fn):
        setattr(holder, last, around(beneath(fn), "wrapped " + role))
    return True
bare = sys.argv.pop(1) == "bare"
install.Hooks._register, install.Hooks._wrap = (only_clocks, only_clocks) if bare else (registering, wrapping)
targets = {
    environments.Environments: "look follow consider wrap",
    install.Hooks: "after_import end", launch.Finder: "find_spec", count: "stepped",
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
if bare:
    spent[0] = sum(took for name, (_, took) in calls.items() if name == "nothing" or name.startswith("wrapped "))
print(json.dumps([spent[0], time.perf_counter() - begun, sum(e.n for e in entries), calls]), file=sys.stderr)
"""


def loop(mode: str, steps: int) -> tuple[float, float, int, dict[str, list[float]]]:
    """One run of the reference loop: seconds of the hook (or of the clocks alone), of the loop, counted calls, and what each entrance took."""
    from gyrecheck.hook.program import environment_for, write_table
    from gyrecheck.rulebook.hook_table import compiled

    with tempfile.TemporaryDirectory(prefix="bench-hook-") as name:
        folder = Path(name)
        write_table(folder, compiled())
        env = environment_for(folder, "bench", {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"})
        given = [mode, "--serial", "--quiet", "--run-dir", str(folder / "run"), "--total-steps", str(steps)]
        done = subprocess.run([sys.executable, "-c", DRIVER, *given], env=env, check=True, capture_output=True, text=True)
    hook, whole, counted, calls = json.loads(done.stderr.splitlines()[-1])
    return hook, whole, counted, calls


def main() -> int:
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--runs", type=int, default=5, help="runs of the reference loop")
    ask.add_argument("--steps", type=int, default=200_000, help="env steps of each run")
    options = ask.parse_args()
    shares = []
    for number in range(options.runs):
        clocks, _, _, _ = loop("bare", options.steps)
        hook, whole, counted, calls = loop("hooked", options.steps)
        calls["counted calls"] = [counted, counted * COUNTED]
        hook += counted * COUNTED - clocks
        shares.append(hook / whole)
        print(f"  run {number + 1}: hook {hook * 1000:.0f} ms of {whole:.2f} s, {shares[-1]:.2%} (clocks {clocks * 1000:.0f} ms)")
    for name, (times, took) in sorted(calls.items(), key=lambda item: -item[1][1])[:16]:
        print(f"    {name:32} {times:6} calls {took * 1000:8.1f} ms")
    share = statistics.median(shares)
    print(f"{'ok  ' if share <= 0.01 else 'MISS'} hook's own time / loop's wall time {share:.2%} (at most 1 %)")
    return 0 if share <= 0.01 else 1


if __name__ == "__main__":
    sys.exit(main())
