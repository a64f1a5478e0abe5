"""Is an environment stepped on after its time limit, because only `terminated` resets it? (GYR319).

`step` gives two ends. A loop that resets on the one and never reads the other goes on in an episode that is over: gymnasium leaves what
then comes back undefined, and the time limit never cuts anything off.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Function
from gyrecheck.program.flow import prefixes
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, at_call, in_tests

_FIVE = 5
_MANY = ("envs", "venv", "vec", "pool")


def limit_unheeded(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every reset behind `terminated` alone, in a loop that never looks at `truncated`."""
    for number in program.doing("env.reset"):
        fact = program.functions[number].fact
        if in_tests(program, number):
            continue
        for at, _ in program.own(number, "env.step"):
            step = fact.calls[at]
            gives = {int(b.form.partition("/")[0]): b.target for b in fact.binds if at in b.value and b.form.endswith("/5")}
            owner, loop = step.name.rpartition(".")[0], program.loop_of(number, step.block)
            ended, cut = gives.get(2, "_"), gives.get(3, "")
            single = not any(word in owner.rpartition(".")[2].lower() for word in _MANY)
            if _cuts_nothing(program) or _resets_otherwise(program, number, owner, loop, ended):
                continue
            if loop < 0 or ended == "_" or not cut or cut == "_" or not single or _reads(fact, cut):
                continue
            for reset, _ in program.own(number, "env.reset"):
                call = fact.calls[reset]
                block = fact.blocks[call.block]
                asked = block.kind == "then" and block.detail == (ended,) and block.op == ""
                if call.name.rpartition(".")[0] == owner and asked and program.within(number, call.block, loop):
                    yield at_call(
                        program, number, reset, "GYR319", f"`{readable(call)}` waits for `{ended}` alone, and nothing reads `{cut}`: after a time "
                            "limit the environment is stepped on in an episode that is over",
                        evidence=(program.place(number, step.line, f"both ends come from here: {readable(step)}", "because", step.column + 1),),
                        hint=f"reset on `{ended} or {cut}`, and store the two apart", side="sampling", key=cut,
                    )  # fmt: skip
                    break


def _resets_otherwise(program: Program, number: int, owner: str, loop: int, ended: str) -> bool:
    """The loop has a horizon of its own: another reset in it waits for something else."""
    fact = program.functions[number].fact
    resets = [fact.calls[at] for at, _ in program.own(number, "env.reset")]
    return any(
        c.name.rpartition(".")[0] == owner and program.within(number, c.block, loop) and ended not in fact.blocks[c.block].detail
        for c in resets
    )


def _cuts_nothing(program: Program) -> bool:
    """An environment or a wrapper of the tree never says that an episode was cut off, or one is made without a time limit."""
    for fn in program.functions:
        if fn.fact.name == "step" and fn.cls >= 0:
            given = [e.items[3] for e in fn.fact.exits if e.kind == "return" and len(e.items) == _FIVE]
            if given and all(item == ("=False",) for item in given):
                return True
        if any(k == "max_episode_steps" and v == ("=-1",) for c in fn.fact.calls for k, v in c.keywords):
            return True
    return False


def _reads(fact: Function, name: str) -> bool:
    """Anything in the function takes the value."""
    atoms = [a for b in fact.binds for a in b.value] + [a for b in fact.blocks for a in b.detail]
    atoms += [a for c in fact.calls for arg in (*c.args, c.receiver, *(v for _, v in c.keywords)) for a in arg]
    atoms += [a for e in fact.exits for item in e.items for a in item]
    heads = {c.name.partition(".")[0] for c in fact.calls}
    return name in heads or any(isinstance(a, str) and name in prefixes(a) for a in atoms)
