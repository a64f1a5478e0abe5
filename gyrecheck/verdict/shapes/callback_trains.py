"""Does a callback that runs with every environment step train? (GYR102).

What it is called tells when it runs: once a step, in the middle of a rollout, whose remaining rows then come from other weights than the
first ones. Hooks at the end of a rollout or of an update are the place for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gyrecheck.model.finding import Severity
from gyrecheck.program.effects import Hop
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.program.tree import Cls
from gyrecheck.verdict.shapes.suspect import Suspect, at_call

_HOOKS = frozenset(
    {"_on_step", "on_env_step", "after_env_step", "on_environment_step", "on_episode_step", "on_rollout_step", "on_sample_step"}
)
_OFF_POLICY = re.compile(r"(?:^|[._])(?:sac|td3|dqn|ddpg|qrdqn|tqc|crossq|redq|replay_buffer|replay)(?:$|[._])")
_ACTS_NOT = re.compile(r"disc|decod|recon|encod|dynamics|world|reward|predict|probe|embed|repr")
_BASES = ("Callback", "Callbacks", "Hook", "Listener", "Observer")


def callback_trains(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every optimizer step that a per-step hook of a callback reaches."""
    for cls in program.tree.classes:
        if not any(base.rpartition(".")[2].endswith(_BASES) for base in (*cls.fact.bases, cls.fact.name)):
            continue
        for name in sorted(_HOOKS & cls.methods.keys()):
            number = cls.methods[name]
            role = program.has(number, "optimizer.step", "update.run")
            hops = program.effects.chain(number, role) if role else ()
            if not hops or any(hop.call < 0 for hop in hops):
                continue
            step = program.call(hops[-1].function, hops[-1].call)
            if _own_affair(program, cls, hops):
                continue
            said = f" through `{readable(program.call(number, hops[0].call))}`" if len(hops) > 1 else ""
            yield at_call(
                program, number, hops[0].call, "GYR102", f"`{program.name(number)}` runs with every environment step, and reaches "
                    f"`{readable(step)}`{said}: the weights move in the middle of a rollout",
                evidence=program.hops(hops[1:]), side="sampling", pure=True, at_most=Severity.WARNING, key=f"{program.name(number)}>{step.name}",
                hint="keep the rows here, and train in the hook at the end of the rollout",
            )  # fmt: skip


def _own_affair(program: Program, cls: Cls, hops: tuple[Hop, ...]) -> bool:
    """Off-policy code trains at any step; a network of the callback's own that does not act may be trained at an interval."""
    near = [f.fact for f in program.tree.functions_of(program.functions[hops[0].function].module)]
    said = {c.name.lower() for f in near for c in f.calls} | {str(a).lower() for f in near for b in f.binds for a in b.value}
    if any(_OFF_POLICY.search(name) for name in said):
        return True
    step = program.call(hops[-1].function, hops[-1].call)
    owner = step.name.rpartition(".")[0]
    if not owner.startswith("self.") or owner.startswith("self.model"):
        return False
    binds = [b for m in cls.methods.values() for b in program.functions[m].fact.binds if b.target == owner]
    fields = [b.target for m in cls.methods.values() for b in program.functions[m].fact.binds] + [f.name for f in near]
    blocks = program.functions[hops[0].function].fact.blocks
    up = [b for hop in hops for b in program.blocks_up(hop.function, program.call(hop.function, hop.call).block)]
    waits = any(blocks[b].kind == "then" for b in program.blocks_up(hops[0].function, program.call(hops[0].function, hops[0].call).block))
    return bool(binds) and (waits or len(up) == 0 or any(_ACTS_NOT.search(name.lower()) for name in fields))
