"""Does the optimizer hold what the loss goes through? (GYR224).

Asked only where every optimizer of the tree is made from `X.parameters()` in plain sight. A network `owner.part` whose loss feeds a
step, while only its sibling `owner.other` was given to an optimizer, never changes; nor does a layer put in after the optimizer was made.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Bind, Function
from gyrecheck.model.finding import Evidence
from gyrecheck.program.flow import reach
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.steps import BACK, STEP
from gyrecheck.verdict.shapes.suspect import Suspect, at_bind, at_call

_LISTS = (".parameters", ".named_parameters")


def optimizer_reach(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Networks in the loss and in no optimizer, and layers put in after the optimizer was made."""
    made = [(fn.number, at) for fn in program.functions for at, _ in program.own(fn.number, "optimizer.make")]
    if not made:
        return
    given = {place: _given(program, *place) for place in made}
    if all(paths is not None for paths in given.values()):
        yield from _left_out(program, {place: paths for place, paths in given.items() if paths is not None})
    for fn in program.functions:
        yield from _put_in_later(program, fn.number, made)


def _given(program: Program, number: int, at: int) -> tuple[str, ...] | None:
    """What an optimizer is made over: the paths before `.parameters()`; None when something else is given."""
    fact = program.tree.functions[number].fact
    call = fact.calls[at]
    atoms = call.args[0] if call.args else next((v for k, v in call.keywords if k == "params"), ())
    out: list[str] = []
    for atom in atoms:
        if not isinstance(atom, int) or not fact.calls[atom].name.endswith(_LISTS):
            return None
        out.append(fact.calls[atom].name.rpartition(".")[0])
    return tuple(out) or None


def _left_out(program: Program, given: dict[tuple[int, int], tuple[str, ...]]) -> Iterator[Suspect]:
    listed = {
        c.name.rpartition(".")[0] for fn in program.functions for c in fn.fact.calls if c.name.endswith((*_LISTS, ".add_param_group", ".state_dict", ".requires_grad_"))
    }  # fmt: skip
    tails = {p.rpartition(".")[2] for p in listed}
    done: set[str] = set()
    for fn in program.functions:
        backs = [at for at, _ in program.own(fn.number, BACK)]
        if not backs or not program.own(fn.number, STEP) or fn.fact.name.startswith("test"):
            continue
        for at, call in enumerate(fn.fact.calls):
            owner, dot, part = call.name.rpartition(".")
            if not dot or part in tails or owner.rpartition(".")[2] in tails or call.name in done or call.result == -2:
                continue
            if not _network(program, fn.number, at, part) or program.unrecorded(fn.number, call.block):
                continue
            flow = reach(fn.fact, [at], cut=lambda c, n=fn.number: program.role(n, c) == "grad.cut")  # type: ignore[misc]
            if not set(backs) & flow.calls:
                continue
            sibling = _sibling(given, owner, part)
            if sibling is None:
                continue
            done.add(call.name)
            place, path = sibling
            yield at_call(
                program, *place, "GYR224", f"`{readable(program.call(*place))}` holds `{path}` and no optimizer holds `{call.name}`, "
                    "through which the loss goes: it never changes",
                evidence=(program.place(fn.number, call.line, f"in the loss: {readable(call)}", "because", call.column + 1),),
                side="training", hint=f"give it {call.name}.parameters() as well, or an optimizer of its own", key=call.name,
            )  # fmt: skip


def _network(program: Program, number: int, at: int, part: str) -> bool:
    target = program.resolver.callee(number, at)
    if target is not None and target.kind in {"inst", "type"}:
        return program.calls.kind_of(target) == "module"
    named = program.lexicon.named(part)
    return target is None and named is not None and named.kind == "module"


def _sibling(given: dict[tuple[int, int], tuple[str, ...]], owner: str, part: str) -> tuple[tuple[int, int], str] | None:
    """The optimizer over another part of the same owner; of two over one part, the second, which was meant for this one."""
    same = [
        (place, path) for place, paths in given.items() for path in paths
        if path.rpartition(".")[0].rpartition(".")[2] == owner.rpartition(".")[2] and path.rpartition(".")[2] != part
    ]  # fmt: skip
    twice = [entry for i, entry in enumerate(same) if any(entry[1] == earlier[1] for earlier in same[:i])]
    found = twice or same
    return found[0] if found else None


def _put_in_later(program: Program, number: int, made: list[tuple[int, int]]) -> Iterator[Suspect]:
    """`player.head = nn.Linear(...)` after an optimizer was made over all of `player`."""
    fact = program.tree.functions[number].fact
    if fact.name in {"__init__", "<module>"} and not any(n == number for n, _ in made):
        return
    for bind in fact.binds:
        root, dot, _ = bind.target.rpartition(".")
        if (
            not dot
            or root == "self"
            or "[" in bind.target
            or bind.form != "="
            or len(bind.value) != 1
            or not isinstance(bind.value[0], int)
        ):
            continue
        layer = program.resolver.result(number, bind.value[0])
        if program.calls.kind_of(layer) != "module":
            continue
        held = _optimizer_before(program, number, root, bind.order, made)
        if held is None or any(n == number and program.call(n, at).order > bind.order for n, at in made):
            continue
        if any(c.name.endswith(".add_param_group") and c.order > bind.order for c in fact.calls):
            continue
        yield at_bind(
            number, bind, "GYR224", f"`{bind.target}` is put in after the optimizer over `{root}` was made: its parameters are in none",
            evidence=(held,), side="training", hint="make the optimizer after the network is complete",
        )  # fmt: skip


def _optimizer_before(program: Program, number: int, root: str, order: int, made: list[tuple[int, int]]) -> Evidence | None:
    """Where an optimizer over all of `root` was made before `order`: here, or in the constructor that made `root`."""
    fact: Function = program.tree.functions[number].fact
    for n, at in made:
        call = program.call(n, at)
        if n == number and call.order < order and root in (_given(program, n, at) or ()):
            return program.place(n, call.line, f"the optimizer is made here: {readable(call)}", "because", call.column + 1)
    births: list[Bind] = [b for b in fact.binds if b.target == root and b.order < order]
    if len(births) != 1 or len(births[0].value) != 1 or not isinstance(births[0].value[0], int):
        return None
    target = program.resolver.callee(number, births[0].value[0])
    if target is None or target.kind != "class":
        return None
    start = program.resolver.method(int(target.ref), "__init__")
    for n, at in made:
        if n == start and "self" in (_given(program, n, at) or ()):
            call = program.call(n, at)
            return program.place(n, call.line, f"the optimizer is made here: {readable(call)}", "because", call.column + 1)
    return None
