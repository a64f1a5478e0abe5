"""Is the value beyond a time limit added to the reward before the two end flags are joined? Then the joined flag loses nothing."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Atom, Bind, Function
from gyrecheck.program.flow import Reached, reach
from gyrecheck.program.program import Program


def carried_into_reward(program: Program, number: int, at: int, limit: str) -> bool:
    """A reward of step call `at` is amended by a value, where and only where `limit` (the step's time-limit flag) or a final observation says."""
    fact = program.functions[number].fact
    step = [b for b in fact.binds if b.value == (at,)]
    names = {b.target for b in step if b.form.partition("/")[0] == "1"}
    flags = [b for b in step if b.target == limit]
    flow = reach(fact, binds=flags, cut=lambda c: c == at)  # the next step does not carry it on
    return any(
        bind.order > flags[0].order and _is_reward(program, bind, names) and _of_value(program, fact, bind, at) and _on_limit(program, fact, bind, flow, at)
        for bind in fact.binds
    )  # fmt: skip


def _is_reward(program: Program, bind: Bind, names: set[str]) -> bool:
    """The step's own reward, a column of rewards, or one element of either."""
    if bind.form not in {"=", "+="}:
        return False
    parts = bind.target.replace("]", "").split("[")
    return parts[0] in names or any(program.words.field(part.rpartition(".")[2]) == "reward" for part in parts)


def _of_value(program: Program, fact: Function, bind: Bind, step: int) -> bool:
    """What is added holds a value estimate, or is made of a final observation; a mere sum or cast of the reward is none."""
    return any(
        program.words.has("value_names", path)
        or program.words.has("final_observation", path)
        or program.words.field(path.rpartition(".")[2].partition("[")[0]) == "value"
        for atom in bind.value
        for path in _named(fact, atom, bind.order, step)
    )


def _on_limit(program: Program, fact: Function, bind: Bind, flow: Reached, step: int) -> bool:
    """The time-limit flag or the final observation is a factor of what is added, or decides whether and for whom it is."""
    atoms: list[Atom] = [*bind.value]
    block = bind.block
    while block >= 0:
        atoms += fact.blocks[block].detail
        block = fact.blocks[block].parent
    return flow.any(tuple(atoms)) or any(
        flow.any((path,)) or program.words.has("final_observation", path) for atom in atoms for path in _named(fact, atom, bind.order, step)
    )


def _named(fact: Function, atom: Atom, order: int, step: int, depth: int = 3) -> Iterator[str]:
    """Every name that goes into an atom, through calls and a few bindings, not through the step itself."""
    if isinstance(atom, int):
        if atom == step:
            return
        call = fact.calls[atom]
        yield call.name
        head = call.name.rpartition(".")[0]
        for inner in (
            *((head,) if head and depth else ()),
            *call.receiver,
            *(a for arg in call.args for a in arg),
            *(a for _, v in call.keywords for a in v),
        ):
            yield from _named(fact, inner, order, step, depth)
    elif not atom.startswith(("=", "<")):
        yield atom
        made = [b for b in fact.binds if b.target == atom and b.order < order and b.form != "+="] if depth else []
        for inner in made[-1].value if made else ():
            yield from _named(fact, inner, made[-1].order, step, depth - 1)
