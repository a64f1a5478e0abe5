"""What the hook costs, beside what else could count: one script, one run, ratios printed and checked.

    python bench/hook.py [--loop PAIRS] [--steps N]

`added` is the time of a counted call minus that of the bare call: CPU time of this thread, the least of many short rounds in which all
ways take turns, so that a busy neighbour meets them all. The loop part runs the reference loop as its settings stand, in turns with and
without the hook, after one run of each that leaves compiled modules behind, and compares wall times pairwise; `--loop 0` leaves it out.
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

CALLS, ROUNDS, THREADS, DEPTH = 200_000, 60, 4, 60
MARKED, STEPS = "sampling(): whole wrapper", "env.step: whole wrapper"
LOGGING, PROMETHEUS = "logging.info to a file", "prometheus_client multiprocess"
WORDS = {"step": ["step"], "reset": ["reset"], "never": []}


def each(ways: dict[str, tuple[Callable[[], None], int]]) -> dict[str, float]:
    """Nanoseconds of CPU time a call of each way, given as its loop and the calls that makes: the least of `ROUNDS` rounds in turns."""
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for name, (work, calls) in ways.items():
            begun = time.thread_time_ns()
            work()
            best[name] = min(best[name], (time.thread_time_ns() - begun) / calls)
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
    deep(DEPTH, lambda: found.append(each({"walk": (loop_of(sides.find_under, codes, 0, calls=500), 500)})["walk"]))
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
    for number in range(-1, pairs):
        times: dict[str, float] = {}
        cpu: dict[str, float] = {}
        order = ("bare", "hooked") if number % 2 else ("hooked", "bare")
        for kind in order:
            place = FOLDER / f"{kind}{number}"
            hook = FOLDER / f"hook{number}"
            hook.mkdir(exist_ok=True)
            write_table(hook, compiled())
            env = {k: v for k, v in os.environ.items() if not k.startswith(("GYRECHECK", "PROMETHEUS", "PYTHONDONTWRITEBYTECODE"))}
            env = environment_for(hook, "bench", env) if kind == "hooked" else env
            command = [sys.executable, "-m", "reference_loop", "--serial", "--quiet", "--run-dir", str(place), "--total-steps", str(steps)]
            begun, used = time.perf_counter(), spent()
            subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
            times[kind], cpu[kind] = time.perf_counter() - begun, spent() - used
        if number < 0:
            continue
        shares.append(times["hooked"] / times["bare"] - 1)
        costs.append(cpu["hooked"] / cpu["bare"] - 1)
        print(f"  pair {number + 1}: bare {times['bare']:.2f} s, hooked {times['hooked']:.2f} s, {shares[-1]:+.2%}")
    return statistics.median(shares), statistics.median(costs)


def main() -> int:
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--loop", type=int, default=5, help="pairs of runs of the reference loop")
    ask.add_argument("--steps", type=int, default=200_000, help="env steps of each run")
    options = ask.parse_args()
    Environments(current(), WORDS).consider(Counted)
    env, counted_env = Env(), Counted()
    ways: dict[str, Callable[[], None] | None] = {
        "bare": loop_of(bare, 1, calls=10_000),
        "bare step": loop_of(env.step, 1, calls=10_000),
        MARKED: loop_of(sampling("bench")(bare), 1, calls=10_000),
        STEPS: loop_of(counted_env.step, 1, calls=10_000),
        "training(): whole wrapper": loop_of(training("bench")(bare), 1, calls=1000),
        LOGGING: loop_of(logged(), 1, calls=1000),
        PROMETHEUS: loop_of(rival, 1, calls=10_000) if (rival := prometheus()) else None,
    }
    few = {"training(): whole wrapper", LOGGING}
    times = each({name: (work, 1000 if name in few else 10_000) for name, work in ways.items() if work is not None})
    rows = {name: value - times["bare step" if name == STEPS else "bare"] for name, value in times.items() if not name.startswith("bare")}
    for name, value in rows.items():
        print(f"{name:34} {value:10.0f} ns added")
    lost, walk = threads_lose(), side_check()
    checks = []
    for name in (MARKED, STEPS):
        if PROMETHEUS in rows:
            share = rows[name] / rows[PROMETHEUS]
            checks.append((f"{name:27} / prometheus_client multiprocess {share:.3f} (at most 0.15)", share <= 0.15))
        share = rows[name] / rows[LOGGING]
        checks.append((f"{name:27} / logging.info to a file 1/{1 / share:.0f} (at most 1/100)", share <= 0.01))
    checks += [
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
