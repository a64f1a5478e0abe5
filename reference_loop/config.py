"""Every setting of the loop, once: one frozen dataclass that is also the command line of all three programs.

The two sides read the same settings but not the same ones: what only one side uses says so in its help text.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
from pathlib import Path
from typing import Any

OBS_DIM = 4
"""CartPole's observation width; the trainer takes it from here, never from an environment."""
NUM_ACTIONS = 2
"""CartPole's number of discrete actions."""
UNIT = "trajectory"
"""What every count in logs and ledgers counts: trajectory slices (one episode's part of one rollout)."""


def option(default: Any, text: str, **extra: Any) -> Any:  # noqa: ANN401 - dataclasses.field is untyped in the same way
    """Declare one setting with its default and its help text."""
    return dataclasses.field(default=default, metadata={"help": text, **extra})


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """All settings; see each field's help text."""

    run_dir: Path = option(Path("runs/latest"), "run folder, the only interface between the two programs")  # noqa: RUF009
    run_id: str = option("", "name of the run in records and logs; empty = the run folder's name")
    seed: int = option(1, "seeds initial weights, environments, action noise and minibatch order")
    total_steps: int = option(200_000, "environment steps to sample over the run's whole life, resumes included")
    target_return: float = option(0.0, "sampler: end early at this mean return over 100 episodes; 0 = never")
    num_envs: int = option(64, "sampler: environments stepped together (N)")
    rollout_steps: int = option(32, "sampler: ticks in one rollout (T); one rollout is one segment")
    sampler_latency: float = option(0.0, "sampler: seconds slept per tick, to make sampling dear")
    producer: str = option("s0", "sampler: its name; a second sampler on one run folder needs a second name")
    consumer: str = option("t0", "trainer: its name below taken/, ledger/ and settled/")
    layout: str = option("slice", "sampler: how segments are written", choices=("slice", "step", "arrow"))
    max_unread: int = option(1, "sampler: back-pressure, unread segments in ready/ at which it waits")
    max_backlog: int = option(256, "sampler: the same bound while no trainer is alive; it ends cleanly there")
    patience: float = option(5.0, "seconds to wait for the other program before going on or ending without it")
    disk_patience: float = option(30.0, "seconds to wait for room on a full disk before ending")
    fsync: bool = option(False, "force every file to the disk before it counts (survives power loss, about 2 ms a segment)")
    max_age: int = option(4, "trainer: drop trajectories older than this many policy versions; 0 = only fresh ones")
    max_age_steps: int = option(0, "trainer: also drop trajectories sampled more than this many steps ago; 0 = no such limit")
    batch_trajectories: int = option(0, "trainer: trajectories needed for one update; 0 = one for each environment, as every segment has")
    max_updates: int = option(0, "trainer: end after this many updates; 0 = when no more trajectories come")
    keep_segments: int = option(16, "trainer: settled segments kept for inspection")
    epochs: int = option(4, "trainer: passes over a batch")
    minibatches: int = option(2, "trainer: gradient steps a pass")
    learning_rate: float = option(4e-3, "trainer: Adam's step size at the start; falls linearly over the run")
    gamma: float = option(0.99, "trainer: discount")
    gae_lambda: float = option(0.95, "trainer: trace decay of generalised advantage estimation")
    clip: float = option(0.2, "trainer: the ratio's clip range")
    value_coef: float = option(0.5, "trainer: weight of the value loss")
    entropy_coef: float = option(0.0, "trainer: weight of the entropy bonus")
    max_grad_norm: float = option(0.5, "trainer: gradient norm clip")
    fault: str = option("", "switch one known fault on; --list-faults names them")
    quiet: bool = option(False, "no lines on standard error; the log files are always written")

    @property
    def name(self) -> str:
        """The run id, never empty."""
        return self.run_id or self.run_dir.resolve().name

    @property
    def needed(self) -> int:
        """Trajectories that make a batch; a rollout of two ticks or more has at least one for each environment."""
        return self.batch_trajectories or self.num_envs

    @property
    def planned_updates(self) -> int:
        """Updates that `total_steps` will give when every rollout makes one batch; the learning rate ends there."""
        return max(1, round(self.total_steps / (self.num_envs * self.rollout_steps)))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give `parser` one option for each setting."""
    for field in dataclasses.fields(Settings):
        flag = "--" + field.name.replace("_", "-")
        text = f"{field.metadata['help']} (default: {field.default})".replace("%", "%%")
        if isinstance(field.default, bool):
            parser.add_argument(flag, action="store_true", help=text)
        else:
            parser.add_argument(flag, type=type(field.default), default=field.default, help=text, choices=field.metadata.get("choices"))
    parser.add_argument("--list-faults", action="store_true", help="name every fault and what sees it, then end")


def from_arguments(namespace: argparse.Namespace) -> Settings:
    """Turn parsed options into settings."""
    return Settings(**{field.name: getattr(namespace, field.name) for field in dataclasses.fields(Settings)})


def as_arguments(settings: Settings) -> list[str]:
    """Turn settings back into command-line words, for starting the other program with the same ones."""
    words: list[str] = []
    for field in dataclasses.fields(Settings):
        value = getattr(settings, field.name)
        if isinstance(value, bool):
            words += ["--" + field.name.replace("_", "-")] if value else []
        elif value != field.default:
            words += ["--" + field.name.replace("_", "-"), str(value)]
    return words


def write_run_json(settings: Settings) -> None:
    """Write `run.json`, the run folder's description of itself, unless an earlier start already did."""
    path = settings.run_dir / "run.json"
    if path.exists():
        return
    settings.run_dir.mkdir(parents=True, exist_ok=True)
    plain = {key: str(value) if isinstance(value, Path) else value for key, value in dataclasses.asdict(settings).items()}
    plain.pop("run_dir")
    document = {
        "format": "reference_loop",
        "schema": 1,
        "run_id": settings.name,
        "seed": settings.seed,
        "unit": UNIT,
        "max_age": {"limit": settings.max_age, "unit": "version", "drop_when": "age > limit"},
        "obs_dim": OBS_DIM,
        "num_actions": NUM_ACTIONS,
        "settings": plain,
    }
    temporary = path.with_name(f".run.json.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)
