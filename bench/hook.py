"""What the hook costs, beside what else could count: one script, one run, ratios printed and checked.

    python bench/hook.py [--loop PAIRS] [--steps N]

`added` is the time of a counted call minus that of the bare call, the least of several repeats in CPU time of this thread. The loop
part runs the reference loop in turns with and without the hook and compares wall times pairwise; `--loop 0` leaves it out.
"""

from __future__ import annotations

import argparse
import logging
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(tempfile.mkdtemp(prefix="bench-hook-"))
os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(FOLDER)
os.environ["GYRECHECK_RUN_DIR"] = str(FOLDER)

from gyrecheck.hook import sampling, training  # noqa: E402 - the folder must be named before
from gyrecheck.hook import side as sides  # noqa: E402
from gyrecheck.hook.environments import Environments  # noqa: E402
from gyrecheck.hook.runtime import current  # noqa: E402
from gyrecheck.stream.shards import read_run  # noqa: E402

CALLS, REPEATS, THREADS, DEPTH = 200_000, 9, 4, 60
WORDS = {"step": ["step"], "reset": ["reset"], "never": []}


def each(work: Callable[[], None], calls: int = CALLS) -> float:
    """Nanoseconds of CPU time of one pass of `work`'s loop, the least of several repeats."""
    best = float("inf")
    for _ in range(REPEATS):
        begun = time.thread_time_ns()
        work()
        best = min(best, (time.thread_time_ns() - begun) / calls)
    return best


def loop_of(fn: Callable[..., object], *args: object, calls: int = CALLS) -> Callable[[], None]:
    """A function that calls `fn` many times."""

    def work() -> None:
        for _ in range(calls):
            fn(*args)

    return work


def bare(value: int) -> int:
    return value


class Env:
    """An environment that does nothing."""

    def reset(self) -> int:
        """Nothing."""
        return 0

    def step(self, action: int) -> int:
        """Nothing."""
        return action


class Counted(Env):
    """The same, counted."""

    def step(self, action: int) -> int:
        """Nothing."""
        return action


def prometheus() -> Callable[[int], int] | None:
    try:
        import prometheus_client
    except ImportError:
        return None
    counter = prometheus_client.Counter("calls", "calls")

    def counted(value: int) -> int:
        counter.inc()
        return bare(value)

    return counted


def logged() -> Callable[[int], int]:
    logger = logging.getLogger("bench")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    handler = logging.FileHandler(FOLDER / "bench.log")
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
    logger.addHandler(handler)

    def counted(value: int) -> int:
        logger.info("sample_call n=%d", value)
        return bare(value)

    return counted


def deep(left: int, work: Callable[[], None]) -> None:
    """Run `work` below `left` further frames."""
    if left:
        deep(left - 1, work)
    else:
        work()


def side_check() -> float:
    """Microseconds of one walk over a stack of `DEPTH` frames that finds nothing."""
    codes = current().sampling_codes
    found: list[float] = []
    deep(DEPTH, lambda: found.append(each(loop_of(sides.find_under, codes, 0, calls=2000), 2000)))
    return found[0] / 1000


def threads_lose() -> int:
    """Calls lost by `THREADS` threads that count into one entry."""
    counted = sampling("threads")(bare)
    workers = [threading.Thread(target=loop_of(counted, 1)) for _ in range(THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    run = read_run(FOLDER)
    if run is None:
        return THREADS * CALLS
    return THREADS * CALLS - sum(s.calls for p in run.processes for s in p.sites if s.entry and s.label == "threads")


def spent() -> float:
    """CPU seconds of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def reference_loop(pairs: int, steps: int) -> tuple[float, float]:
    """Median over pairs of hooked / bare - 1: of wall time, and of CPU time, which busy neighbours disturb less."""
    from gyrecheck.hook.program import environment_for, write_table
    from gyrecheck.rulebook.hook_table import compiled

    shares, costs = [], []
    for number in range(pairs):
        times: dict[str, float] = {}
        cpu: dict[str, float] = {}
        order = ("bare", "hooked") if number % 2 else ("hooked", "bare")
        for kind in order:
            place = FOLDER / f"{kind}{number}"
            hook = FOLDER / f"hook{number}"
            hook.mkdir(exist_ok=True)
            write_table(hook, compiled())
            env = {k: v for k, v in os.environ.items() if not k.startswith(("GYRECHECK", "PROMETHEUS"))}
            env = environment_for(hook, "bench", env) if kind == "hooked" else env
            command = [sys.executable, "-m", "reference_loop", "--serial", "--quiet", "--run-dir", str(place), "--total-steps", str(steps)]
            begun, used = time.perf_counter(), spent()
            subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
            times[kind], cpu[kind] = time.perf_counter() - begun, spent() - used
        shares.append(times["hooked"] / times["bare"] - 1)
        costs.append(cpu["hooked"] / cpu["bare"] - 1)
        print(f"  pair {number + 1}: bare {times['bare']:.2f} s, hooked {times['hooked']:.2f} s, {shares[-1]:+.2%}")
    return statistics.median(shares), statistics.median(costs)


def main() -> int:
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--loop", type=int, default=5, help="pairs of runs of the reference loop")
    ask.add_argument("--steps", type=int, default=60_000, help="env steps of each run")
    options = ask.parse_args()
    Environments(current(), WORDS).consider(Counted)
    env, counted_env = Env(), Counted()
    base, env_base = each(loop_of(bare, 1)), each(loop_of(env.step, 1))
    rows = {
        "sampling(): whole wrapper": each(loop_of(sampling("bench")(bare), 1)) - base,
        "env.step: whole wrapper": each(loop_of(counted_env.step, 1)) - env_base,
        "training(): whole wrapper": each(loop_of(training("bench")(bare), 1, calls=20_000), 20_000) - base,
        "logging.info to a file": each(loop_of(logged(), 1, calls=20_000), 20_000) - base,
    }
    rival = prometheus()
    rows["prometheus_client multiprocess"] = each(loop_of(rival, 1)) - base if rival else float("nan")
    for name, value in rows.items():
        print(f"{name:34} {value:10.0f} ns added")
    ours = rows["sampling(): whole wrapper"]
    to_prometheus, to_logging = ours / rows["prometheus_client multiprocess"], ours / rows["logging.info to a file"]
    lost, walk = threads_lose(), side_check()
    checks = [
        (f"added / prometheus_client multiprocess  {to_prometheus:.3f} (at most 0.15)", not to_prometheus > 0.15),
        (f"added / logging.info to a file          1/{1 / to_logging:.0f} (at most 1/100)", to_logging <= 0.01),
        (f"lost by {THREADS} threads                       {lost} of {THREADS * CALLS:,}", lost == 0),
        (f"side check at depth {DEPTH}                  {walk:.1f} us (at most 12)", walk <= 12),
    ]
    if options.loop:
        share, cost = reference_loop(options.loop, options.steps)
        print(f"reference loop, CPU time                {cost:+.2%}")
        checks.append((f"reference loop, wall time               {share:+.2%} (at most +1 %)", share <= 0.01))
    for text, held in checks:
        print(f"{'ok  ' if held else 'MISS'} {text}")
    shutil.rmtree(FOLDER, ignore_errors=True)
    return 0 if all(held for _, held in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
