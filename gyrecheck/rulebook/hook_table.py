"""What the hook touches in a running program: `rules/hooks.toml`, compiled to JSON for the hooked process, which reads no TOML."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from functools import cache
from typing import Literal

from gyrecheck.rulebook.locate_rules import rule_file
from gyrecheck.rulebook.toml_table import load_table

Role = Literal[
    "optimizer.make", "optimizer.load", "optimizer.zero_grad", "module.zero_grad", "module.eval", "weights.load", "loss.backward", "grad.clip", "scheduler.step",
    "policy.act", "optimizer.step.before", "optimizer.step.after", "policy.forward", "model.make", "batch.fetch", "env.step",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Target:
    """A thing inside a module, and what it does."""

    module: str
    target: str
    role: Role


@dataclass(frozen=True, slots=True)
class Environments:
    """What makes a class an environment: one method of each list, and no base of `never`. `copies`: attributes that count envs."""

    step: tuple[str, ...]
    reset: tuple[str, ...]
    never: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HookLimits:
    """Where the verdicts over a hooked run turn; one field a line of the file, where each is explained."""

    phases: int
    phases_after_load: int
    cleared_share: float
    cleared_least: int
    clip_share: float
    horizon_over: float
    schedule_fit: float
    schedule_gaps: int
    schedule_repeats: float
    rate_share: float
    rate_idle: float
    rate_jump: float
    rate_changes: int
    same_pace: float
    pace_least: int
    graphs: int
    env_taken: int
    mode_on: int
    mode_off: int
    samples: int


Phrase = tuple[str, ...]
"""A word for each entry: `a|b` is one or the other, `a*` a word that begins so."""


@dataclass(frozen=True, slots=True)
class SelfChecks:
    """Phrases behind which a program prints what must be 0, what must be 1, and whose first value on a line must be 0."""

    most: float
    zero: tuple[Phrase, ...]
    one: tuple[Phrase, ...]
    zero_first: tuple[Phrase, ...]
    never: Phrase


@dataclass(frozen=True, slots=True)
class HookTable:
    """All of `rules/hooks.toml`."""

    wraps: tuple[Target, ...]
    registers: tuple[Target, ...]
    fetches: tuple[Target, ...]
    bases: tuple[Target, ...]
    environments: Environments
    limits: HookLimits
    self_checks: SelfChecks
    horizons: dict[str, str]
    libraries: tuple[str, ...]
    moody: tuple[str, ...]
    unhooked: dict[str, str]


@cache
def load_hook_table() -> HookTable:
    """The table.

    Raises:
        RuleError: the file does not load.
    """
    return load_table(rule_file("hooks.toml"), HookTable)


def compiled() -> str:
    """The table as JSON."""
    return json.dumps(dataclasses.asdict(load_hook_table()))
