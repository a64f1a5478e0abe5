"""How fast `handoff check` reads, in MB a second of one core, and how much memory it takes; beside it what a user would do with pandas.

    python bench/handoff.py              64 MB a format, a minute or two
    python bench/handoff.py --size 2048 --rounds 1 --no-pandas  2 GB a format: the memory promise

Every measurement runs in a process of its own, one thread, CPU time; imports and the rulebook are loaded on a small file before it
begins (they are told apart as `start`). Promises: JSON lines >= 100 MB/s a core, Parquet and npz >= 500 MB/s, peak
RSS <= 200 MB on 2 GB. The ratio to pandas on the same file is what holds on another machine.
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

GYRE = """
from pathlib import Path
from gyrecheck.commands.handoff_check import check_report
report, _ = check_report([Path(FILE)], {})
"""
PANDAS = {
    "jsonl": "import pandas; pandas.read_json(FILE, lines=True).describe()",
    "parquet": "import pandas; pandas.read_parquet(FILE).describe()",
    "npz": "import numpy, pandas; z = numpy.load(FILE); [pandas.DataFrame(z[k].reshape(len(z[k]), -1)).describe() for k in z]",
}
IMPORTS = {"gyrecheck": "import gyrecheck.commands.handoff_check", "pandas": "import pandas"}


def main() -> None:
    """Write the files, measure, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=64, help="MB a file")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-pandas", action="store_true", help="leave the comparison out (it needs many times the file's size in memory)")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help=f"files to measure, of {', '.join(WRITERS)}")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gyrecheck-bench-") as folder:
        print(f"{'file':22} {'MB':>7} {'gyrecheck MB/s':>15} {'peak RSS MB':>12} {'start s':>8} {'pandas MB/s':>12} {'ratio':>7}")
        for name, write in WRITERS.items():
            if given.only and name not in given.only:
                continue
            path = Path(folder) / name
            write(path, given.size)
            write(path.with_stem("small-" + path.stem), 1)
            megabytes = path.stat().st_size / 1e6
            ours = min((measure(GYRE, path, "gyrecheck") for _ in range(given.rounds)), key=lambda m: m[0])
            line = f"{name:22} {megabytes:7.0f} {megabytes / ours[0]:15.0f} {ours[1]:12.0f} {ours[2]:8.2f}"
            if not given.no_pandas:
                theirs = min((measure(PANDAS[path.suffix[1:]], path, "pandas") for _ in range(given.rounds)), key=lambda m: m[0])
                line += f" {megabytes / theirs[0]:12.0f} {theirs[0] / ours[0]:6.1f}x"
            print(line, flush=True)
            path.unlink()


def measure(code: str, path: Path, what: str) -> tuple[float, float, float]:
    """CPU seconds of a file, the process's peak RSS in MB, and CPU seconds of a small file before it, which loads what has to be loaded."""
    program = f"""
import os, resource, sys, time
{IMPORTS[what]}
begin = time.process_time()
FILE = {str(path.with_stem("small-" + path.stem))!r}
{code}
start = time.process_time() - begin
FILE = {str(path)!r}
begin = time.process_time()
{code}
try:  # of this program alone; ru_maxrss begins with the size of the process that started it
    peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
except OSError:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(time.process_time() - begin, peak, start)
"""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "ARROW_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True, env=environment)
    seconds, peak, start = map(float, done.stdout.split()[-3:])
    return seconds, peak, start


def write_steps(path: Path, size: int) -> None:
    """One line a time step, as a classic sampler writes it."""
    chance = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        at = 0
        while file.tell() < size * 1_000_000:
            lines = []
            for _ in range(2000):
                obs, after = ([round(chance.gauss(0, 1), 4) for _ in range(8)] for _ in range(2))
                lines.append(json.dumps({
                    "episode_id": at // 100, "t": at % 100, "obs": obs, "action": chance.randint(0, 3), "reward": 1.0,
                    "next_obs": after,
                    "terminated": at % 100 == 99, "truncated": False, "logprob": round(-chance.random(), 4), "value": 0.3,
                    "policy_version": at // 1000,
                }))  # fmt: skip
                at += 1
            file.write("\n".join(lines) + "\n")


def write_tokens(path: Path, size: int) -> None:
    """One line an answer, 100 to 300 tokens."""
    chance = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        at = 0
        while file.tell() < size * 1_000_000:
            lines = []
            for _ in range(200):
                length = chance.randint(100, 300)
                lines.append(json.dumps({
                    "sample_id": f"s{at}", "group_id": at // 4, "policy_version": 3,
                    "tokens": [chance.randint(0, 50_000) for _ in range(length)],
                    "mask": [1] * length, "logprobs": [round(-chance.expovariate(1), 4) for _ in range(length)],
                    "reward": float(chance.randint(0, 1)),
                }))  # fmt: skip
                at += 1
            file.write("\n".join(lines) + "\n")


def arrays(size: int) -> dict[str, object]:
    """Rows of 24 observations and seven scalars."""
    import numpy as np

    rows = size * 1_000_000 // 234
    rng = np.random.default_rng(0)
    obs = rng.normal(size=(rows + 1, 24)).astype(np.float32)
    last = np.arange(rows) % 200 == 199
    return {
        "obs": obs[:-1], "next_obs": obs[1:], "action": rng.integers(0, 6, rows), "reward": rng.normal(size=rows).astype(np.float32),
        "terminated": last, "truncated": np.zeros(rows, np.bool_), "episode_id": np.arange(rows) // 200,
        "policy_version": np.arange(rows) // 10_000,
        "logprob": -rng.random(rows).astype(np.float32),
    }  # fmt: skip


def write_npz(path: Path, size: int) -> None:
    """Uncompressed, as replay buffers are saved."""
    import numpy as np

    np.savez(path, **arrays(size))  # type: ignore[arg-type]


def write_parquet(path: Path, size: int) -> None:
    """Snappy, lists of fixed length for observations."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    columns = {}
    for key, array in arrays(size).items():
        values = np.asarray(array)
        flat = pa.array(values.reshape(-1))
        columns[key] = pa.FixedSizeListArray.from_arrays(flat, values.shape[1]) if values.ndim > 1 else flat
    parquet.write_table(pa.table(columns), path, row_group_size=100_000)


WRITERS = {"steps.jsonl": write_steps, "tokens.jsonl": write_tokens, "rows.npz": write_npz, "rows.parquet": write_parquet}

if __name__ == "__main__":
    began = time.monotonic()
    main()
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{time.monotonic() - began:.0f} s in all; load {os.getloadavg()[0]:.1f}; the writer itself took {own} MB")
