"""Costs of `gyrecheck watch`, each beside what it is measured against, in one process tree.

    python bench/watch.py

first paint         the command in a terminal of 140x40, from process start to the first counter on the screen
share of a core     64 workers writing 2 lines a second each, watched at 2 Hz without a screen
512 shards          read and summed once
--once --json       above a bare interpreter start
memory              after one hour's worth of replayed events, against after five minutes' worth
"""

import fcntl
import os
import pty
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

MEMORY = """
import resource, sys
from gyrecheck.rulebook.codes import load_codes
from gyrecheck.screen.feed import RunFeed
from gyrecheck.screen.following_app import lean
from gyrecheck.screen.history import Frames
from gyrecheck.screen.view import View
from gyrecheck.model.events import Key, Reading, Unit
feed = RunFeed(("nowhere.log",), load_codes())
frames = Frames(View(), lambda v: frozenset(x.code for x in v.broken), lambda v: v.versions, lean)
keys = [Key(n, t, Unit.TRAJECTORY, "yes") for n, t in (("sampled_total", "sampled"), ("taken_total", "taken"), ("left", "left"))]
for start in range(0, int(sys.argv[1]), 1000):
    frames.add(feed.show([
        Reading("nowhere.log", n + 1, 0, b"", ((keys[0], float(n)), (keys[1], float(n)), (keys[2], 0.0)), (), float(n) / 400)
        for n in range(start, start + 1000)]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def cpu_and_wall(words):
    """CPU seconds of a child and its wall seconds."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.perf_counter() - begin


def first_paint(words, needle=b"sampled"):
    """Wall seconds until `needle` is drawn in a pseudo-terminal, and the CPU seconds of the process that drew it."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execv(words[0], words)  # noqa: S606 - our own command
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))
    seen = b""
    while needle not in seen:
        seen += os.read(terminal, 1 << 16)
    wall = time.perf_counter() - begin
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(terminal)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def best(words, rounds=3):
    """The least of several runs, for CPU and wall each."""
    runs = [cpu_and_wall(words) for _ in range(rounds)]
    return min(cpu for cpu, _ in runs), min(wall for _, wall in runs)


def share_of_a_core(folder, seconds=12.0):
    """CPU share of a feed that watches 64 growing logs at 2 Hz."""
    from gyrecheck.rulebook.codes import load_codes
    from gyrecheck.screen.feed import RunFeed

    files = [(folder / f"worker{at:02d}.log").open("a") for at in range(64)]
    feed = RunFeed((str(folder),), load_codes())
    feed.poll()
    spent, begin, tick = 0.0, time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        tick += 1
        for at, file in enumerate(files):
            when, total = f"2026-01-01 10:{tick // 60:02d}:{tick % 60:02d}", tick * 8
            file.write(f"{when} pid={5000 + at} sampled_total={total} taken_total={total} buffer_left=0\n")
            file.flush()
        start = time.process_time()
        feed.poll()
        spent += time.process_time() - start
        time.sleep(max(0.0, begin + tick * 0.5 - time.perf_counter()))
    feed.close()
    return spent / (time.perf_counter() - begin)


def shards(folder, count=512):
    """CPU milliseconds to read and sum `count` shards when one call in each is new, and when nothing is; the least of ten looks each."""
    from gyrecheck.hook.shard import Shard
    from gyrecheck.stream.shard_follow import FollowedShards

    made = [Shard(str(folder), "bench") for _ in range(count)]
    cells = [shard.place_for(f"E S marked place{at}") for shard in made for at in range(4)]
    followed = FollowedShards(folder)
    followed.poll()
    times = {True: [], False: []}
    for look in range(20):
        if look % 2:
            for cell in cells:
                cell[0] += 1
        begin = time.process_time()
        run, _ = followed.poll()
        total = run.calls("S")
        times[bool(look % 2)].append(1000 * (time.process_time() - begin))
        if total != 4 * count * ((look + 1) // 2):
            sys.exit("the sum is wrong")
    followed.close()
    return min(times[True]), min(times[False])


def main():
    """Print one line a promise."""
    python = sys.executable
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a start that compiles every module is not the one that users have
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = folder / "train.log"
        log.write_text("".join(f"sampled_total={8 * n} taken_total={8 * n} buffer_left=0\n" for n in range(1, 2000)))
        bare = best([python, "-c", "pass"], rounds=7)
        paints = [first_paint([python, "-m", "gyrecheck", "watch", str(log)]) for _ in range(5)]
        paint = min(cpu for cpu, _ in paints), min(wall for _, wall in paints)
        print(f"first paint: {paint[1]:.2f} s wall, {paint[0]:.2f} s CPU; bare interpreter {bare[1]:.3f} s; promise 1.5 s")
        once = best([python, "-m", "gyrecheck", "watch", "--once", "--json", "--exit-zero", str(log)], rounds=7)
        wall, cpu = 1000 * (once[1] - bare[1]), 1000 * (once[0] - bare[0])
        times = once[0] / bare[0]
        print(f"--once --json: {wall:.0f} ms above a bare start (CPU {cpu:.0f} ms, {times:.1f} x the bare start's); promise 150 ms")
        (folder / "shards").mkdir()
        moving, still = shards(folder / "shards")
        print(f"512 shards: read and summed in {moving:.1f} ms when all moved, {still:.1f} ms when none did; promise 10 ms")
        workers = folder / "workers"
        workers.mkdir()
        print(f"64 workers at 2 Hz: {share_of_a_core(workers):.1%} of a core; promise 15 %")
        short, long = (int(subprocess.check_output([python, "-c", MEMORY, str(n)])) / 1024 for n in (120_000, 1_440_000))
        print(f"memory with the screen's history: {long:.0f} MiB after an hour of 400 readings a second (1,440 pictures), ", end="")
        print(f"{short:.0f} MiB after five minutes: {long / short:.2f} x")


if __name__ == "__main__":
    main()
