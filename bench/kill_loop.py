"""Kill the sampler, the trainer or both with SIGKILL at random moments, and recompute the balance from the files each time.

After each kill the survivor is frozen while the files are read, so what is read is what a power cut would have left. The
dead side is then started again. At the end both run to their clean end, and nothing may be lost, repeated, or trained on
twice.

    python bench/kill_loop.py --kills 300
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from reference_loop.balance import balance, whole_lines
from reference_loop.config import Settings
from reference_loop.entry import Stop, run_sides
from reference_loop.sampler import Sampler
from reference_loop.trainer import Trainer

SIDES = {"sampler": Sampler, "trainer": Trainer}


def start(side: str, settings: Settings) -> int:
    """Fork one side of the loop: forking saves the four seconds that importing torch takes."""
    pid = os.fork()
    if pid == 0:
        stop = Stop()
        stop.listen()
        code = run_sides(lambda: (SIDES[side](settings, stop),), lambda sides: sides[0].run())
        os._exit(code)
    return pid


def warm_up() -> None:
    """Run a few updates here first, so that forked programs find every lazy import done."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(run_dir=Path(folder), total_steps=512, num_envs=16, rollout_steps=8, quiet=True, patience=0.0)
        run_sides(lambda: (Sampler(settings, Stop()),), lambda sides: sides[0].run())
        run_sides(lambda: (Trainer(settings, Stop()),), lambda sides: sides[0].run())


def frozen(pid: int, side_ended: set[int]) -> bool:
    """Stop a process and wait until it stands still; False when it had ended by itself."""
    if pid in side_ended:
        return False
    os.kill(pid, signal.SIGSTOP)
    _, status = os.waitpid(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        return True
    side_ended.add(pid)
    return False


def kill_once(settings: Settings, pids: dict[str, int], chance: random.Random) -> tuple[str, str]:
    """Let the loop run a moment, kill, and return who was killed with the balance found."""
    time.sleep(chance.uniform(0.0, 0.25))
    victims = chance.choice((("sampler",), ("trainer",), ("sampler", "trainer")))
    ended: set[int] = set()
    for side in victims:
        os.kill(pids[side], signal.SIGKILL)
        os.waitpid(pids[side], 0)
        ended.add(pids[side])
    still = [pid for pid in pids.values() if frozen(pid, ended)]
    found = balance(settings.run_dir)
    if not found.holds:
        raise SystemExit(f"kill of {victims}: {found}\n missing {found.missing[:5]} surplus {found.surplus[:5]} in {settings.run_dir}")
    for pid in still:
        os.kill(pid, signal.SIGCONT)
    for side, pid in list(pids.items()):
        if pid in ended:
            pids[side] = start(side, settings)
    return "+".join(victims), str(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--layout", default="slice")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kill_loop-"))
    # No end in sight while killing; small rollouts, so that many hand-overs lie in each second.
    settings = Settings(
        run_dir=folder, total_steps=10**9, num_envs=16, rollout_steps=8, epochs=1, minibatches=1, max_unread=2, patience=60.0,
        layout=arguments.layout, quiet=True, max_age=1,
    )  # fmt: skip
    chance = random.Random(arguments.seed)
    warm_up()
    pids = {side: start(side, settings) for side in SIDES}
    killed: Counter[str] = Counter()
    in_flight = recovered = 0
    for _ in range(arguments.kills):
        victims, found = kill_once(settings, pids, chance)
        killed[victims] += 1
        in_flight += "in_flight=0" not in found
    time.sleep(0.5)
    os.kill(pids["sampler"], signal.SIGTERM)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pids[side], 0)[1]) for side in SIDES]
    found = balance(folder)
    checks = final_checks(folder)
    recovered = sum(line.split("recovered=")[1].split()[0] != "0" for line in logs(folder) if " resumed " in line)
    print(f"kills {dict(killed)}; {in_flight} times something was in flight, {recovered} restarts recovered something")
    print(f"end: exit codes {codes}, {found}, {checks}")
    # A rollout that the stop cut short may hold too few trajectories for a batch: those are left, and said to be.
    if not found.holds or len(found.left) >= settings.num_envs or found.in_flight or any(codes):
        raise SystemExit(f"does not balance: see {folder}")
    shutil.rmtree(folder)


def logs(folder: Path) -> list[str]:
    """Read every log line of the run."""
    return [line for path in folder.glob("*.log") for line in path.read_text(encoding="utf-8").splitlines()]


def final_checks(folder: Path) -> str:
    """Compare the ledger with the weights: each finished update stands in the ledger once, and none was made twice."""
    content = (folder / "state" / "trainer.safetensors").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    state = json.loads(header["__metadata__"]["trainer"])
    steps = sorted({line["train_step"] for line in whole_lines(folder.glob("ledger/*.jsonl")) if line["taken"]})
    if steps != list(range(1, state["train_step"] + 1)):
        raise SystemExit(f"ledger has {len(steps)} updates, the checkpoint {state['train_step']}")
    if state["optimizer_steps"] != state["train_step"]:
        raise SystemExit(f"{state['optimizer_steps']} optimiser steps in {state['train_step']} updates of one step")
    return f"{state['train_step']} updates, each in the ledger once"


if __name__ == "__main__":
    sys.exit(main())
