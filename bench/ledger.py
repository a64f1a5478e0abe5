"""`gyrecheck ledger` against the habit `grep -o | awk` three times: wall and CPU time, peak memory, and totals against the truth.

    python bench/ledger.py [--megabytes 1000] [--dense | --jsonl | --generic]

Generates a log of the bundled loop's lines (5 % of all lines; all of them with --dense) among engine lines, ANSI colour, Ray prefixes and
progress redraws, in a temporary folder; runs both in turns and prints the ratios. `--jsonl` sets the scan of JSON lines (one process, no
start) beside msgspec decoding the same fields; `--generic` times the whole command on a log of plain `key=value` lines. Nothing is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GREP = "grep -ao '{0}=[0-9]*' {1} | awk -F= '{{s+=$2}} END{{print s}}'"


SHARE = 0.034
"""Of what is written; redraws end no line, so that of all lines 5 % are the ledger's."""


def write_log(path: Path, megabytes: int, *, dense: bool) -> dict[str, int]:
    """Write the log, and return the true totals."""
    random.seed(7)
    taken = stale = left = sampled = n = d = 0
    noise = [
        (
            "\x1b[36m(RolloutWorker pid={p}, ip=10.0.0.{i})\x1b[0m INFO 01-10 10:00:00 engine.py:{n}] Avg prompt throughput: {n}.{i} tokens/s, "
            "Avg generation throughput: {n}.{i} tokens/s, Running: {i} reqs, Waiting: {i} reqs, KV cache usage: {f:.3f}%\n"
        ),
        "\r {i}%|######    | {n}/4096 [00:{i:02}<00:41, {f:.2f}it/s]",
        "2026-01-10 10:00:00,{n} DEBUG scheduler: tick {n} idle {f:.4f}, prefix cache hit rate {f:.3f}, next batch of {n} in {i} ms\n",
    ]
    with path.open("w", encoding="utf-8") as file:
        size = written = 0
        while size < megabytes * 1_000_000:
            lines = []
            for _ in range(2000):
                if dense or random.random() < SHARE:
                    written += 1
                    if written % 2:
                        n, d = random.randint(20, 60), random.randint(0, 6)
                        sampled, taken, stale = sampled + n + d, taken + n, stale + d
                        lines.append(
                            f"2026-01-10T10:00:00Z pid=7 side=sampling sampled n={n + d} sampled_total={sampled} policy_version=1 act_calls=1\n"
                        )
                    else:
                        lines.append(
                            f"2026-01-10T10:00:00Z pid=8 side=training take dropped_stale={d} taken={n} "
                            f"buffer_left={left} dropped_other=0 reason=none\n"
                        )
                else:
                    lines.append(
                        random.choice(noise).format(
                            p=random.randint(100, 999), i=random.randint(1, 59), n=random.randint(1, 999), f=random.random()
                        )
                    )
            text = "".join(lines)
            size += len(text)
            file.write(text)
        if written % 2:  # the last that was sampled is taken
            file.write(
                f"2026-01-10T10:00:00Z pid=8 side=training take dropped_stale={d} taken={n} buffer_left={left} dropped_other=0 reason=none\n"
            )
    return {"sampled": sampled, "taken": taken, "dropped_stale": stale}


def write_json(path: Path, megabytes: int) -> int:
    """Write JSON lines, and return how many trajectories they say were sampled."""
    random.seed(7)
    sampled = 0
    with path.open("w", encoding="utf-8") as file:
        step = 0
        while file.tell() < megabytes * 1_000_000:
            for _ in range(2000):
                step += 1
                n, d = random.randint(20, 60), random.randint(0, 6)
                sampled += n + d
                row = {"ts": 1_700_000_000 + step / 4, "step": step, "sampled": n + d, "taken": n, "dropped_stale": d, "left": 0}
                file.write(json.dumps({**row, "loss": round(random.random(), 4), "reward": round(random.random(), 4)}) + "\n")
    return sampled


def jsonl(path: Path, megabytes: int, rounds: int) -> None:
    """The scan of JSON lines beside msgspec."""
    import msgspec

    from gyrecheck.stream.logs import Ask, open_log, read_batches
    from gyrecheck.stream.open_log import find_logs
    from gyrecheck.verdict.tally import Tally

    truth = write_json(path, megabytes)
    fields = [(name, float, 0.0) for name in ("ts", "step", "sampled", "taken", "dropped_stale", "left", "loss", "reward")]
    decode = msgspec.json.Decoder(msgspec.defstruct("Row", fields)).decode

    def scan() -> float:
        log, tally = open_log(find_logs((str(path),))[0], Ask()), Tally()
        for batch in read_batches(log):
            tally.feed_batch(batch)
        return tally.snapshot().of("sampled")[0].total

    def decoded() -> float:
        with path.open("rb") as file:
            return float(sum(decode(line).sampled for line in file))

    for name, work in (("ledger", scan), ("msgspec", decoded)):
        best = float("inf")
        for _ in range(rounds + 1):  # the first one warms up
            start = time.process_time()
            if work() != truth:
                sys.exit(f"{name}: totals differ")
            best = min(best, time.process_time() - start)
        print(f"{name:8} {path.stat().st_size / best / 1e6:6.0f} MB/s cpu, one process")


def generic(path: Path, megabytes: int, rounds: int) -> None:
    """The whole command on plain `key=value` lines of no known format."""
    random.seed(7)
    with path.open("w", encoding="utf-8") as file:
        second = 0
        while file.tell() < megabytes * 1_000_000:
            second += 1
            n, clock = random.randint(20, 60), f"2026-01-10 {second // 3600 % 24:02}:{second // 60 % 60:02}:{second % 60:02}"
            file.write(
                f"{clock} INFO rollout sampled={n} version={second // 100}\n{clock} DEBUG tick {second} idle {random.random():.3f}\n"
            )
            file.write(f"{clock} INFO trainer step={second} taken={n} dropped=0 left=0 loss={random.random():.4f}\n")
    runs = [timed([sys.executable, "-m", "gyrecheck", "ledger", str(path), "-q"]) for _ in range(rounds)]
    if any("Conservation holds" not in text for *_, text in runs):
        sys.exit("the balance does not hold")
    walls, cpus = [wall for wall, *_ in runs], [cpu for _, cpu, _ in runs]
    print(f"ledger on {path.stat().st_size / 1e6:.0f} MB: wall {min(walls):.2f} s  cpu {min(cpus):.2f} s, start included")


def timed(command: list[str]) -> tuple[float, float, str]:
    """Wall seconds, CPU seconds of the process tree, standard output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def peak_memory(command: list[str]) -> float:
    """Peak resident MiB of one process."""
    code = (
        "import resource,subprocess,sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss/1024)"
    )
    return float(subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, check=True).stdout)


def main() -> None:
    """Run the comparison."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--megabytes", type=int, default=1000)
    options.add_argument("--dense", action="store_true")
    options.add_argument("--jsonl", action="store_true")
    options.add_argument("--generic", action="store_true")
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "train.log"
        if given.jsonl or given.generic:
            (jsonl if given.jsonl else generic)(log, given.megabytes, given.rounds)
            return
        truth = write_log(log, given.megabytes, dense=given.dense)
        ours = [sys.executable, "-m", "gyrecheck", "ledger", str(log), "--output-format", "json", "-q", "--exit-zero"]
        habit = ["sh", "-c", ";".join(GREP.format(key, log) for key in ("dropped_stale", "taken", "sampled_total"))]
        rows: dict[str, list[tuple[float, float]]] = {"ledger": [], "grep x 3": []}
        for _ in range(given.rounds):
            wall, cpu, text = timed(ours)
            rows["ledger"].append((wall, cpu))
            statistics = json.loads(text)["statistics"]
            found = {"sampled": statistics["sampled"], "taken": statistics["taken"], "dropped_stale": statistics["dropped_stale"]}
            if found != truth:
                sys.exit(f"totals differ: {found} against {truth}")
            rows["grep x 3"].append(timed(habit)[:2])
        best = {name: (min(w for w, _ in figures), min(c for _, c in figures)) for name, figures in rows.items()}
        megabytes = log.stat().st_size / 1e6
        for name, (wall, cpu) in best.items():
            print(f"{name:10} wall {wall:7.2f} s  cpu {cpu:7.2f} s  {megabytes / cpu:6.0f} MB/s cpu")
        print(f"ratio wall {best['ledger'][0] / best['grep x 3'][0]:.2f}  cpu {best['ledger'][1] / best['grep x 3'][1]:.2f}")
        print(f"peak memory {peak_memory(ours):.0f} MiB, totals right, {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
