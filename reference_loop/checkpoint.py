"""The trainer's state after its last update, and the moment at which that update becomes real.

The file holds actor, critic, Adam's moments, the counters, and the ledger lines of the batch that made it. It is replaced
whole, so after any death either the update and its ledger lines both exist or neither does: a batch is never trained on
twice and never counted without having been trained on.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save

from reference_loop.store import replace_with


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything a trainer needs to go on as if it had never stopped."""

    policy_version: int
    train_step: int
    optimizer_steps: int
    owed: list[dict[str, Any]]
    tensors: dict[str, torch.Tensor]


def path_in(folder: Path) -> Path:
    """Say where the checkpoint lies."""
    return folder / "state" / "trainer.safetensors"


def write(folder: Path, checkpoint: Checkpoint, *, fsync: bool) -> None:
    """Replace the checkpoint whole."""
    path = path_in(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    counters = {
        "policy_version": checkpoint.policy_version,
        "train_step": checkpoint.train_step,
        "optimizer_steps": checkpoint.optimizer_steps,
        "owed": checkpoint.owed,
    }
    replace_with(path, save(checkpoint.tensors, {"trainer": json.dumps(counters)}), fsync=fsync)


def read(folder: Path) -> Checkpoint | None:
    """Read the checkpoint; None before the first update."""
    try:
        content = path_in(folder).read_bytes()
    except FileNotFoundError:
        return None
    metadata = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]
    return Checkpoint(**json.loads(metadata["trainer"]), tensors=load(content))
