"""Known faults, one small function each, so that gyrecheck can be shown to see what it claims to see.

The healthy loop has a few seams (`Seams`), each of which does nothing; a fault replaces one or two of them. Nothing here
runs unless `--fault NAME` names it, and with any of them on a run still comes to its end by itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from reference_loop.config import Settings
from reference_loop.trajectory import Flags, Integers
from reference_loop.weights import Weights

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Seams:
    """Where the healthy loop lets a fault in; the defaults are what the loop does when healthy."""

    settings: Callable[[Settings], Settings] = lambda settings: settings
    """Both: the settings before anything starts."""
    record: Callable[[Record], Record] = lambda record: record
    """Sampler: each JSON record before it is written."""
    rollout_grad: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext
    """Sampler: entered for a rollout, inside its no_grad."""
    acted: Callable[[torch.nn.Module, torch.Tensor], None] = lambda _actor, _obs: None
    """Sampler: after each forward pass on observations [N, D]."""
    loaded: Callable[[Weights], Weights | None] = lambda weights: weights
    """Sampler: newly published weights before they are used; None leaves them unused."""
    line: Callable[[bytes], bytes] = lambda line: line
    """Trainer: each JSON line before it is decoded."""
    fresh: Callable[[Integers, int], Flags] = lambda age, max_age: age <= max_age
    """Trainer: which of these ages pass the limit."""
    unchecked: Callable[[int], bool] = lambda _seq: False
    """Trainer: whether a segment goes to the update beside the age check and the ledger."""
    counted: Callable[[list[str]], list[str]] = lambda ids: ids
    """Trainer: which of the trajectories used are booked as taken."""
    again: Callable[[int], bool] = lambda _seq: False
    """Trainer: whether a settled segment is put back to be read a second time."""
    publishes: bool = True
    """Trainer: whether new weights are handed back."""
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = lambda loss, _obs: loss
    """Trainer: a minibatch's loss, with its observations [M, D]."""
    scheduler_steps: Callable[[int], int] = lambda _trajectories: 1
    """Trainer: how often the learning-rate schedule moves for one update."""


HEALTHY = Seams()


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: what it does, which gyrecheck commands see it, and the seams it replaces."""

    name: str
    what: str
    seen_by: str
    build: Callable[[], Seams]


FAULTS: dict[str, Fault] = {}


def fault(seen_by: str) -> Callable[[Callable[[], Seams]], Callable[[], Seams]]:
    """Register a fault under its function's name, hyphenated; the docstring says what it does."""

    def register(build: Callable[[], Seams]) -> Callable[[], Seams]:
        name = build.__name__.replace("_", "-")
        FAULTS[name] = Fault(name, (build.__doc__ or "").strip(), seen_by, build)
        return build

    return register


def seams_for(name: str) -> Seams:
    """Return the seams of one fault, the healthy ones for the empty name.

    Raises:
        KeyError: there is no such fault.
    """
    return FAULTS[name].build() if name else HEALTHY


def listing() -> str:
    """Say of every fault what it does and what sees it."""
    return "".join(f"{fault.name}\n    {fault.what}\n    seen by: {fault.seen_by}\n" for fault in FAULTS.values())


# What the sampler writes.


@fault("ledger, run: GYR505 shape-rejected; handoff check: GYR303 missing-field")
def missing_field() -> Seams:
    """The sampler writes records without `logprob`; the trainer refuses them and ends with exit code 1."""
    return replace(HEALTHY, record=lambda record: {key: value for key, value in record.items() if key != "logprob"})


@fault("ledger, run: GYR402 version-logprob-mismatch; handoff check: GYR304 zero-filled-field")
def zero_filled_field() -> Seams:
    """The sampler fills `logprob` with zeros, so every ratio's denominator is wrong."""
    return replace(HEALTHY, record=lambda record: record | {"logprob": record["logprob"] - record["logprob"]})


@fault("ledger, run: GYR505 shape-rejected; handoff check: GYR307 field-none-or-jump")
def shape_jump() -> Seams:
    """Every tenth trajectory of a segment has observations of width 5; the trainer refuses them and ends with exit code 1."""

    def widen(record: Record) -> Record:
        obs = record["obs"]
        jump = record["trajectory_id"].endswith("9")
        return record | {"obs": np.concatenate([obs, obs[..., :1]], axis=-1)} if jump else record

    return replace(HEALTHY, record=widen)


@fault("handoff check and diff: GYR309 merged-done")
def done_merged() -> Seams:
    """Records have one `done` flag, and the trainer takes every end for a terminal state."""

    def merge(record: Record) -> Record:
        rest = {key: value for key, value in record.items() if key not in {"terminated", "truncated"}}
        return rest | {"done": record["terminated"] or record["truncated"]}

    def split(line: bytes) -> bytes:
        for flag in (b"true", b"false"):
            line = line.replace(b'"done":' + flag, b'"terminated":' + flag + b',"truncated":false')
        return line

    return replace(HEALTHY, record=merge, line=split)


# How the sampler samples.


@fault("lint, run: GYR103 forward-without-no-grad")
def grad_in_sampling() -> Seams:
    """The sampler's forward passes record gradients that nobody needs."""
    return replace(HEALTHY, rollout_grad=torch.enable_grad)


@fault("lint, run: GYR101 backward-in-sampling")
def backward_in_sampling() -> Seams:
    """The sampler calls backward on its own policy after each forward pass."""

    def backward(actor: torch.nn.Module, obs: torch.Tensor) -> None:
        with torch.enable_grad():
            actor(obs).square().mean().backward()

    return replace(HEALTHY, acted=backward)


@fault("ledger, run of two processes: GYR501 coupled-counters")
def update_per_sample() -> Seams:
    """One tick makes one segment and one gradient step, in strict turns; the run is cut to 20,000 steps."""

    def coupled(settings: Settings) -> Settings:
        return replace(
            settings, rollout_steps=1, epochs=1, minibatches=1, batch_trajectories=1, max_unread=1,
            total_steps=min(settings.total_steps, 20_000),
        )  # fmt: skip

    return replace(HEALTHY, settings=coupled)


# How weights travel back.


@fault("ledger, run: GYR403 frozen-policy-version, in one process GYR420 sync-not-reaching-sampler too")
def weights_never_published() -> Seams:
    """The trainer counts versions up and hands none back: all it gets is soon too old."""
    return replace(HEALTHY, publishes=False)


@fault("ledger, run: GYR406 no-weight-sync, in one process GYR420 sync-not-reaching-sampler too")
def weights_not_loaded() -> Seams:
    """The trainer publishes and the sampler never loads: all it writes is soon too old."""
    return replace(HEALTHY, loaded=lambda _weights: None)


@fault("ledger, run: GYR408 version-from-the-future; handoff replay: GYR402 version-logprob-mismatch")
def version_label_ahead() -> Seams:
    """The sampler labels its trajectories two versions ahead of the weights it used."""
    return replace(HEALTHY, loaded=lambda weights: Weights(weights.policy_version + 2, weights.parameters))


# What the trainer uses, and how it counts.


@fault("ledger, run: GYR507 conservation-gap")
def stale_bypass() -> Seams:
    """Every fourth segment is trained on beside the age check and the ledger."""
    return replace(HEALTHY, unchecked=lambda seq: seq % 4 == 3)


@fault("ledger, run: GYR404 over-age-consumed")
def age_limit_ignored() -> Seams:
    """The trainer takes every age; so that old ones exist, the sampler loads only every eighth version."""
    newest = 0

    def every_eighth(weights: Weights) -> Weights | None:
        nonlocal newest
        if weights.policy_version < newest + 8:
            return None
        newest = weights.policy_version
        return weights

    def anything(age: Integers, _max_age: int) -> Flags:
        return np.ones_like(age, dtype=np.bool_)

    return replace(HEALTHY, loaded=every_eighth, fresh=anything)


@fault("ledger, run: GYR506 filter-rejects-all")
def filter_rejects_all() -> Seams:
    """The trainer's age check refuses every trajectory, fresh ones too."""

    def refuse(age: Integers, _max_age: int) -> Flags:
        return np.zeros_like(age, dtype=np.bool_)

    return replace(HEALTHY, fresh=refuse)


@fault("ledger, run: GYR507 conservation-gap")
def trajectories_lost() -> Seams:
    """Every fifth trajectory of a batch is used and booked nowhere."""
    return replace(HEALTHY, counted=lambda ids: [name for index, name in enumerate(ids) if index % 5 != 4])


@fault("ledger, run: GYR510 used-twice")
def consumed_twice() -> Seams:
    """Every third segment is put back after its use and read again, once."""
    seen: set[int] = set()

    def first_time(seq: int) -> bool:
        again = seq % 3 == 0 and seq not in seen
        seen.add(seq)
        return again

    return replace(HEALTHY, again=first_time)


@fault("ledger, run: GYR503 nothing-consumed")
def batch_too_large() -> Seams:
    """The trainer waits for a batch of a billion trajectories, which never comes."""
    return replace(HEALTHY, settings=lambda settings: replace(settings, batch_trajectories=1_000_000_000))


# How the trainer updates.


@fault("lint: GYR203 reward-model-in-loss")
def reward_in_loss() -> Seams:
    """The trainer scores observations with a reward model while it computes the loss."""

    def reward_model(obs: torch.Tensor) -> torch.Tensor:
        return 1.0 - obs[:, 2].abs()

    return replace(HEALTHY, loss=lambda loss, obs: loss - 0.01 * reward_model(obs).mean())


@fault("lint, run: GYR205 scheduler-stepped-by-samples")
def scheduler_per_sample() -> Seams:
    """The learning-rate schedule moves once a trajectory instead of once an update."""
    return replace(HEALTHY, scheduler_steps=lambda trajectories: trajectories)
