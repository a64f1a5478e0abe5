"""The reference loop's pace beside other PPO implementations: environment steps per CPU second, end to end, one thread each.

The contenders alternate within one run, so that a busy machine hurts all alike; trust the ratios, not the absolutes. Imports
and first-call costs are left out. The peers are neither part of this project nor installed by it: make an environment with
stable-baselines3 (and tyro, tensorboard), take CleanRL's ppo.py from its repository, and say where both are:

    python bench/loop.py --peer-python /path/to/python --cleanrl /path/to/ppo.py
    python bench/loop.py                                            the loop alone, with a profile
    python bench/loop.py --to-475 1,2,3,4,5                         CPU seconds to a mean return of 475, each seed
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

OURS = """
import collections, json, sys, tempfile, time
import torch
torch.set_num_threads(1)
from reference_loop import checkpoint, consumer, log, loop, ppo, producer, rollout, sampler, trainer, weights
arguments, steps = sys.argv[1:-1], sys.argv[-1]
spent, inner = collections.Counter(), [0.0]
def timed(owner, name, label):
    real = getattr(owner, name)
    def call(*a, **k):
        outer, inner[0] = inner[0], 0.0
        start = time.process_time()
        try:
            return real(*a, **k)
        finally:
            whole = time.process_time() - start
            spent[label] += whole - inner[0]
            inner[0] = outer + whole
    setattr(owner, name, call)
def run(steps):
    with tempfile.TemporaryDirectory() as folder:
        loop.main(["--serial", "--quiet", "--run-dir", folder + "/run", "--total-steps", steps, *arguments])
run("6000")
start = time.process_time()
run(steps)
whole = time.process_time() - start
for owner, name, label in (
    (sampler.Sampler, "_act", "act"), (rollout.Rollout, "cut", "cut into slices"), (sampler, "encode", "write segments"),
    (producer.Producer, "publish", "write segments"), (consumer.Consumer, "claim", "read segments"), (trainer, "decode", "read segments"),
    (ppo.Learner, "update", "update"), (weights, "write", "weights"), (weights, "point_to", "weights"),
    (sampler, "load_newer", "weights"), (checkpoint, "write", "checkpoint"), (consumer.Consumer, "settle", "settle ledger"),
    (consumer.Consumer, "retire", "settle ledger"), (log.EventLog, "__call__", "log lines"),
):
    timed(owner, name, label)
start = time.process_time()
run(steps)
profiled = time.process_time() - start
spent["rest"] = profiled - sum(spent.values())
print(json.dumps({"rate": int(steps) / whole, "profile": {key: value / profiled for key, value in spent.most_common()}}))
"""

SB3 = """
import json, sys, time
import torch
torch.set_num_threads(1)
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
zoo, steps = sys.argv[1] == "zoo", int(sys.argv[2])
linear = lambda left: left * 1e-3
clip = lambda left: left * 0.2
special = dict(n_steps=32, n_epochs=20, batch_size=256, gamma=0.98, gae_lambda=0.8, learning_rate=linear, clip_range=clip) if zoo else {}
model = PPO("MlpPolicy", make_vec_env("CartPole-v1", n_envs=8 if zoo else 1), device="cpu", **special)
model.learn(2048)
start = time.process_time()
model.learn(steps)
print(json.dumps({"rate": model.num_timesteps / (time.process_time() - start)}))
"""

CLEANRL = """
import runpy, sys, time
import torch
torch.set_num_threads(1)
time.time = time.process_time  # its SPS lines then count CPU seconds
script, steps = sys.argv[1:]
sys.argv = [script, "--total-timesteps", steps, "--no-cuda"]
runpy.run_path(script, run_name="__main__")
"""

WATCH = """
import collections, os, sys, time
import gymnasium
make = gymnasium.make
returns, watched = collections.deque(maxlen=100), [0]
class Watch(gymnasium.Wrapper):
    def reset(self, **k):
        self.gained = 0.0
        return super().reset(**k)
    def step(self, action):
        result = super().step(action)
        self.gained += result[1]
        watched[0] += 1
        if result[2] or result[3]:
            returns.append(self.gained)
            if len(returns) == 100 and sum(returns) >= 47500:
                print("reached", watched[0], time.process_time(), flush=True)
                os._exit(0)
        return result
gymnasium.make = lambda *a, **k: Watch(make(*a, **k))
"""


def run(python: str, code: str, *words: str, seed: int = 1) -> str:
    """Run a contender in a process of its own with one thread; what it printed."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | threads | {"PYTHONPATH": str(Path.cwd()), "PYTHONWARNINGS": "ignore", "PYTHONHASHSEED": str(seed)}
        result = subprocess.run([python, "-c", code, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if result.returncode:
        raise SystemExit(f"{code.strip().splitlines()[0]} ... failed:\n{result.stderr[-2000:]}")
    return result.stdout


def cleanrl_rate(output: str) -> float:
    """Steps per CPU second from its SPS lines, one each 512 steps, leaving out the first eight updates."""
    paces = [int(value) for value in re.findall(r"SPS: (\d+)", output)]
    clocks = [512 * (index + 1) / pace for index, pace in enumerate(paces)]
    return 512 * (len(paces) - 8) / (clocks[-1] - clocks[7])


def pace(arguments: argparse.Namespace) -> None:
    """Alternate all contenders and print their medians and ratios."""
    peer = arguments.peer_python
    script = str(Path(arguments.cleanrl or ".").resolve())

    def scaled(steps: int) -> str:
        return str(round(steps * arguments.share))

    contenders = {"reference loop": lambda: json.loads(run(sys.executable, OURS, *arguments.setting, scaled(120_000)))}
    if peer and arguments.cleanrl:
        contenders["CleanRL ppo.py"] = lambda: {"rate": cleanrl_rate(run(peer, CLEANRL, script, scaled(20_480)))}
    if peer:
        contenders["SB3 PPO, defaults"] = lambda: json.loads(run(peer, SB3, "defaults", scaled(6_144)))
        contenders["SB3 PPO, rl-zoo settings"] = lambda: json.loads(run(peer, SB3, "zoo", scaled(16_384)))
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    profiles = []
    for _ in range(arguments.rounds):
        for name, contend in contenders.items():
            found = contend()
            rates[name].append(found["rate"])
            print(f"{name}: {found['rate']:,.0f}", file=sys.stderr, flush=True)
            profiles += [found["profile"]] if "profile" in found else []
    ours = statistics.median(rates["reference loop"])
    print(f"environment steps per CPU second, median of {arguments.rounds} rounds (min .. max), and the reference loop's multiple")
    for name, values in rates.items():
        middle = statistics.median(values)
        print(f"{name:26} {middle:10,.0f}  ({min(values):,.0f} .. {max(values):,.0f})  {ours / middle:6.1f} x")
    print("where the reference loop's CPU time goes (median share)")
    for part in profiles[0]:
        print(f"{part:26} {statistics.median(profile.get(part, 0.0) for profile in profiles):6.1%}")


def to_475(arguments: argparse.Namespace) -> None:
    """Print each contender's CPU seconds, imports included, to a mean return of 475 over 100 training episodes."""
    ours = "import sys, time; from reference_loop.loop import main; main(sys.argv[1:]); print(time.process_time())"
    script = str(Path(arguments.cleanrl or ".").resolve())
    for seed in (int(word) for word in arguments.to_475.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            words = ["--serial", "--run-dir", folder + "/run", "--quiet", "--target-return", "475", "--seed", str(seed), *arguments.setting]
            seconds = float(run(sys.executable, ours, *words).splitlines()[-1])
            log = Path(folder, "run", "sampler.log").read_text(encoding="utf-8")
        reason, steps = re.search(r" ended reason=(\w+) .*sample_step=(\d+)", log).groups()
        print(f"seed {seed}: reference loop {seconds:.1f} CPU-s, {int(steps):,} steps, {reason}", flush=True)
        if arguments.peer_python and arguments.cleanrl:
            code = WATCH + CLEANRL.replace('"--no-cuda"]', f'"--no-cuda", "--seed", "{seed}"]').replace("time.time = time.process_time", "")
            found = re.search(r"reached (\d+) ([\d.]+)", run(arguments.peer_python, code, script, "500000"))
            print(f"seed {seed}: CleanRL", f"{found[2]} CPU-s, {found[1]} steps" if found else "not in 500,000 steps", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0, help="share of the usual number of steps; 0.5 is the least that makes sense")
    parser.add_argument("--peer-python", help="a Python that has stable-baselines3, tyro and tensorboard")
    parser.add_argument("--cleanrl", help="CleanRL's ppo.py")
    parser.add_argument("--to-475", default="", metavar="SEEDS", help="measure CPU seconds to a return of 475 instead")
    parser.add_argument("--setting", nargs="*", default=[], help="further options for the reference loop, as in --setting=--layout=step")
    arguments = parser.parse_args()
    (to_475 if arguments.to_475 else pace)(arguments)


if __name__ == "__main__":
    main()
