"""Does every episode begin with the same seed? (GYR318)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.handler_end import under
from gyrecheck.verdict.shapes.suspect import Suspect, at_call


def same_seed(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """`env.reset(seed=seed)` in the loop that samples, with a seed that nothing in the loop changes."""
    for number in program.doing("env.reset"):
        fact = program.functions[number].fact
        if "evaluation" in program.region(number) or fact.name.startswith("test") or not program.own(number, "env.step"):
            continue
        if fact.name == "reset" or _compares(program, number):
            continue
        for at, _ in program.own(number, "env.reset"):
            call = fact.calls[at]
            loops = program.loops_of(number, call.block)
            seed = next((v for k, v in call.keywords if k == "seed"), ())
            if any(fact.blocks[b].kind == "main" for b in program.blocks_up(number, call.block)):
                continue  # a file that is run to look at its environment
            if not loops or len(seed) != 1 or not isinstance(seed[0], str) or seed[0] == "=None":
                continue
            root = seed[0].split(".")[0].split("[")[0]
            moved = [
                b
                for b in fact.binds
                if (b.target == seed[0] or b.target == root or b.target.startswith(f"{root}[")) and under(fact, b.block, loops[-1])
            ]
            stepped = [i for i, _ in program.own(number, "env.step") if under(fact, fact.calls[i].block, loops[-1])]
            if moved or "[" in seed[0] or not stepped:
                continue
            step = fact.calls[stepped[0]]
            yield at_call(
                program, number, at, "GYR318", f"`{readable(call)}` begins every episode with the seed `{seed[0].removeprefix('=')}`: they all start alike",
                evidence=(program.place(number, step.line, f"sampled in the same loop: {readable(step)}", "because", step.column + 1),),
                hint="seed the first reset only", side="sampling",
            )  # fmt: skip


def _compares(program: Program, number: int) -> bool:
    """Two environments are stepped side by side and asserted to be alike."""
    fact = program.functions[number].fact
    owners = {fact.calls[at].name.rpartition(".")[0] for at, _ in program.own(number, "env.step")}
    return len(owners) > 1 and any(block.kind == "assert" for block in fact.blocks)
