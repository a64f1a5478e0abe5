"""What a symbol means: `rules/roles.toml` and `rules/vocabulary/<framework>.toml` as one typed, compiled table.

A role file (the closed list of roles):

    [roles."env.step"]
    side = "sampling"            # sampling | training | handoff | neutral
    summary = "advances the environment by one step"
    gradient = false             # true: needs or changes gradients (loss.backward, optimizer.step, ...)

A vocabulary file; every table is optional, names are fully qualified as a caller may import them:

    framework = "torch"
    summary = "PyTorch: optimizers, schedulers, autograd, data"
    modules = ["torch"]                     # top-level modules of the framework

    [symbols]                               # function, constructor or Class.method -> role
    "torch.autograd.backward" = "loss.backward"
    "torch.nn.utils.clip_grad_norm_" = "grad.clip"
    "torch.no_grad" = "guard.no_grad"

    [imports]                               # importing this module or symbol (longest prefix wins) means this role
    "torch.optim" = "optimizer.make"        # GYR106 in a sampling module
    "gymnasium" = "env.make"                # GYR201 in a training module
    "gymnasium.spaces" = ""                 # "" = importing it means nothing

    [types."torch.optim.Optimizer"]         # what a receiver is; methods by bare name
    kind = "optimizer"                      # see KINDS
    make = "optimizer.make"                 # role of calling the constructor, a subclass's or a factory; "" = none
    aliases = ["torch.optim.optimizer.Optimizer"]          # other qualified names of this same type
    bases = []                                             # types whose methods it inherits (qualified, any file)
    subclasses = ["torch.optim.Adam", "torch.optim.*"]     # names that are constructors of it; `.*` = every CapWord there
    made_by = ["my.lib.make_optimizer"]                    # functions that return an instance
    methods = { step = "optimizer.step", zero_grad = "optimizer.zero_grad", state_dict = "" }   # "" = known, no role
    returns = { spawn = "gymnasium.Env" }                  # method -> qualified type of what it returns
    attributes = { policy = "torch.nn.Module" }            # attribute -> qualified type

    [names]                                 # bare method or function names: by name only, never above a note
    generate_sequences = "policy.generate"

    [[calls]]                               # evidence from a call's shape when the receiver's type is unknown; first match wins
    methods = ["step"]                      # last name component
    receivers = ["env", "envs", "venv"]     # last part of the receiver, lower case, `_` at the ends and digits cut; [] = any
    unpack = [4, 5]                         # number of targets the result is unpacked into; [] = any
    arguments = [1, 2]                      # least and most positional + keyword arguments; [] = any
    keywords = []                           # at least one of these keywords is given; [] = any
    role = "env.step"
    confidence = "bound"                    # bound | hint

    [[receivers]]                           # what a variable of this name is, when nothing better is known
    names = ["env", "envs", "*_env"]        # fnmatch, same folding as above
    kind = "env"                            # weak by itself: together with `methods` below it is bound
    methods = { step = "env.step", reset = "env.reset" }
    confidence = "hint"                     # bound: a method of `methods` on such a name is enough | hint

    drivers = ["verl.trainer.ppo.ray_trainer.RayPPOTrainer.fit"]    # composition roots: may touch both sides on purpose

`drivers` and other plain keys must stand above the first table, as TOML wants. A symbol given two different roles by two files is
an error naming both files. Files of one folder are read in name order; `generic.toml` holds what belongs to no framework: the
shapes of calls, the names of receivers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from gyrecheck.model.errors import did_you_mean
from gyrecheck.model.roles import Side

KINDS = (
    "env", "optimizer", "scheduler", "scaler", "module", "dataset", "buffer", "queue", "space", "distribution", "reward",
    "collector", "trainer", "generator", "strategy", "normaliser", "logger", "world_model", "target", "neutral",
)  # fmt: skip
"""What a value can be. `strategy`: backward and step through a wrapper (accelerate, deepspeed); `generator`: a text engine."""

ROLES = (
    # sampling
    "env.make", "env.reset", "env.step", "env.read", "space.sample", "reward.score", "policy.act", "policy.generate", "rollout.run",
    # training
    "loss.backward", "loss.compute", "optimizer.make", "optimizer.step", "optimizer.zero_grad", "grad.clip", "scheduler.make",
    "scheduler.step", "scaler.step", "scaler.update", "update.run",
    # handoff
    "buffer.make", "buffer.put", "buffer.take", "carrier.make", "carrier.write", "carrier.read", "weights.publish", "weights.load",
    # neutral
    "policy.forward", "target.update", "log.metric", "guard.no_grad", "guard.grad", "mode.eval", "mode.train", "grad.cut", "thread.start",
    "wrap.first", "wrap.self",
)  # fmt: skip
"""The roles that rules ask for; `rules/roles.toml` must define each. `env.read`: observation without advancing (AEC `last`);
`rollout.run`: a whole collection (collector, generate_sequences); `update.run`: a whole update (SB3 `train`, a learner's `update`);
`guard.grad`: switches recording on again; `grad.cut`: the result carries no graph (detach, item, numpy)."""


@dataclass(frozen=True, slots=True)
class RoleEntry:
    """One role as written in `rules/roles.toml`."""

    side: Side
    summary: str = ""
    gradient: bool = False


@dataclass(frozen=True, slots=True)
class RoleFile:
    """`rules/roles.toml` as it is written."""

    roles: dict[str, RoleEntry]


@dataclass(frozen=True, slots=True)
class TypeEntry:
    """What a receiver of this type can do."""

    kind: str
    make: str = ""
    aliases: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    subclasses: tuple[str, ...] = ()
    made_by: tuple[str, ...] = ()
    methods: dict[str, str] = field(default_factory=dict)
    returns: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallShape:
    """Evidence from the shape of a call; empty tuples say nothing."""

    methods: tuple[str, ...]
    role: str
    receivers: tuple[str, ...] = ()
    unpack: tuple[int, ...] = ()
    arguments: tuple[int, ...] = ()
    keywords: tuple[str, ...] = ()
    confidence: Literal["bound", "hint"] = "bound"


@dataclass(frozen=True, slots=True)
class ReceiverName:
    """What a variable of such a name is, when nothing better is known."""

    names: tuple[str, ...]
    kind: str
    methods: dict[str, str] = field(default_factory=dict)
    confidence: Literal["bound", "hint"] = "hint"


@dataclass(frozen=True, slots=True)
class VocabularyFile:
    """One `rules/vocabulary/<framework>.toml` as it is written."""

    framework: str
    summary: str = ""
    modules: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    symbols: dict[str, str] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    types: dict[str, TypeEntry] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    calls: tuple[CallShape, ...] = ()
    receivers: tuple[ReceiverName, ...] = ()

    def problems(self) -> tuple[str, ...]:
        """Kinds that do not exist; roles are checked against `roles.toml` when files are joined."""
        kinds = [(f"types.{name}", t.kind) for name, t in self.types.items()] + [("receivers", r.kind) for r in self.receivers]
        return tuple(
            f"{where}: kind `{kind}` is not known{'; ' + near if (near := did_you_mean(kind, KINDS)) else ''}"
            for where, kind in kinds
            if kind not in KINDS
        )
