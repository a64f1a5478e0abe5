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
    given = {place: given_to(program, *place) for place in made}
    if all(paths is not None for paths in given.values()):
        yield from _left_out(program, {place: paths for place, paths in given.items() if paths is not None})
    yield from _twice(program, {place: paths for place, paths in given.items() if paths is not None})
    for number in sorted({n for n, _ in made}):
        yield from _grown(program, number, made)
    for fn in program.functions:
        yield from _put_in_later(program, fn.number, made)
        yield from _replaced(program, fn.number, made)


def given_to(program: Program, number: int, at: int) -> tuple[str, ...] | None:
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
            sibling = _sibling({p: g for p, g in given.items() if _one_object(program, p[0], fn.number, owner)}, owner, part)
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


def _one_object(program: Program, maker: int, user: int, owner: str) -> bool:
    """Whether `self` of two functions can be one object: methods of one class, or of a class and one that inherits from it."""
    if owner.partition(".")[0] != "self":
        return True
    one, other = program.tree.functions[maker].cls, program.tree.functions[user].cls
    if one < 0 or other < 0 or one == other:
        return True
    return other in program.resolver.subclasses(one) or one in program.resolver.subclasses(other)


def _twice(program: Program, given: dict[tuple[int, int], tuple[str, ...]]) -> Iterator[Suspect]:
    """Two optimizers over one and the same network, each stepped in one update after a backward pass of its own."""
    for (number, at), paths in given.items():
        earlier = next((a for (n, a), p in given.items() if n == number and a < at and p == paths), None)
        if earlier is None:
            continue
        names = [next((b.target for b in program.tree.functions[number].fact.binds if a in b.value), "") for a in (earlier, at)]
        stepped = [
            n
            for n in program.doing(STEP)
            if all(any(c.name == f"{name}.step" for c in program.tree.functions[n].fact.calls) for name in names)
        ]
        if not all(names) or names[0] == names[1] or not stepped:  # one name: an alternative, or a new one in its place
            continue
        first = program.call(number, earlier)
        yield at_call(
            program, number, at, "GYR224", f"`{names[1]}` holds `{paths[0]}`, which `{names[0]}` holds already: what it was meant for is in none",
            evidence=(program.place(number, first.line, f"the other optimizer: {readable(first)}", "because", first.column + 1),),
            side="training", hint="give it the parameters that its own loss is about", key=names[1],
        )  # fmt: skip


def _grown(program: Program, number: int, made: list[tuple[int, int]]) -> Iterator[Suspect]:
    """Adapters or heads added to a network after its optimizer was made, in one function."""
    fact = program.tree.functions[number].fact
    mine = [(fact.calls[at], given_to(program, n, at) or ()) for n, at in made if n == number]
    for at, call in enumerate(fact.calls):
        head, _, last = call.name.rpartition(".")
        if last not in program.words["adds_parameters"]:
            continue
        network = head if head and not call.args[:1] else next((a for arg in call.args[:1] for a in arg if isinstance(a, str)), head)
        before = [c for c, paths in mine if c.order < call.order and {network, head} & set(paths)]
        if not before or any(c.order > call.order for c, _ in mine):
            continue
        yield at_call(
            program, number, at, "GYR224", f"`{readable(call)}` adds parameters after the optimizer over `{network}` was made: they are in none",
            evidence=(program.place(number, before[0].line, f"the optimizer is made here: {readable(before[0])}", "because", before[0].column + 1),),
            side="training", hint="make the optimizer after the network is complete",
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
        if n == number and call.order < order and root in (given_to(program, n, at) or ()):
            return program.place(n, call.line, f"the optimizer is made here: {readable(call)}", "because", call.column + 1)
    births: list[Bind] = [b for b in fact.binds if b.target == root and b.order < order]
    if len(births) != 1 or len(births[0].value) != 1 or not isinstance(births[0].value[0], int):
        return None
    target = program.resolver.callee(number, births[0].value[0])
    if target is None or target.kind != "class":
        return None
    start = program.resolver.method(int(target.ref), "__init__")
    for n, at in made:
        if n == start and "self" in (given_to(program, n, at) or ()):
            call = program.call(n, at)
            return program.place(n, call.line, f"the optimizer is made here: {readable(call)}", "because", call.column + 1)
    return None


def _replaced(program: Program, number: int, made: list[tuple[int, int]]) -> Iterator[Suspect]:
    """`self.net = Net()` in a method, or after the optimizer in the same function: the optimizer still holds the parameters of the old one."""
    fn = program.tree.functions[number]
    fact = fn.fact
    for bind in fact.binds:
        if bind.form != "=" or len(bind.value) != 1 or not isinstance(bind.value[0], int) or "[" in bind.target:
            continue
        holders = [(n, at) for n, at in made if bind.target in (given_to(program, n, at) or ())]
        holders = [(n, at) for n, at in holders if _outlives(program, number, bind, n, at)]
        if not holders or not _new_network(program, number, bind.value[0], 0):
            continue
        again = [e.callee for e in program.calls.edges[number] if e.call >= 0 and program.call(number, e.call).order > bind.order]
        if any("optimizer.make" in program.full.of[c] for c in again) or _made_after(program, number, bind, made):
            continue
        call = program.call(*holders[0])
        yield at_bind(
            number, bind, "GYR224", f"`{bind.target}` is a new network here, and the optimizer still holds the parameters of the one before",
            evidence=(program.place(holders[0][0], call.line, f"the optimizer is made here: {readable(call)}", "because", call.column + 1),),
            side="training", hint="make the optimizer anew with it, or load the weights into the old network",
        )  # fmt: skip


def _outlives(program: Program, number: int, bind: Bind, owner: int, at: int) -> bool:
    """The optimizer was made before, and goes on: earlier in this function, or in the constructor for a method."""
    fn = program.tree.functions[number]
    if owner == number:
        call = program.call(owner, at)
        same = program.loops_of(number, bind.block) == program.loops_of(number, call.block)
        return call.order < bind.order and same and not bind.target.startswith("self.") and _trained_after(program, number, bind)
    same_class = fn.cls >= 0 and fn.cls == program.tree.functions[owner].cls and bind.target.startswith("self.")
    if not same_class or fn.fact.name == "__init__" or program.tree.functions[owner].fact.name != "__init__":
        return False
    start = program.tree.functions[owner]
    born = [b for b in start.fact.binds if b.target == bind.target and b.order < program.call(owner, at).order]
    return bool(born)


def _trained_after(program: Program, number: int, bind: Bind) -> bool:
    """Something learns once the new network is there; else it was made to look at what was saved."""
    fact = program.tree.functions[number].fact
    late = [c.order for at, c in enumerate(fact.calls) if program.role(number, at) in {BACK, STEP}]
    late += [fact.calls[e.call].order for e in program.calls.edges[number] if e.call >= 0 and BACK in program.full.of[e.callee]]
    return bool(program.loops_of(number, bind.block)) or any(order > bind.order for order in late)


def _made_after(program: Program, number: int, bind: Bind, made: list[tuple[int, int]]) -> bool:
    return any(n == number and program.call(n, at).order > bind.order for n, at in made)


def _new_network(program: Program, number: int, at: int, depth: int) -> bool:
    """The call makes a module that was not there before: a constructor, a builder of ours, a deep copy; a wrapper keeps the parameters."""
    call = program.call(number, at)
    last = call.name.rpartition(".")[2]
    if last in {"to", "cuda", "cpu", "eval", "train", "requires_grad_", "half", "float"} and depth < 4:
        inner = [a for a in call.receiver if isinstance(a, int)]
        return bool(inner) and _new_network(program, number, inner[0], depth + 1)
    if last == "deepcopy":
        return True
    target = program.resolver.callee(number, at)
    if (
        target is None
        or target.kind not in {"class", "func", "ext"}
        or program.calls.kind_of(program.resolver.result(number, at)) != "module"
    ):
        return False
    given = [a for arg in (*call.args, *(v for _, v in call.keywords)) for a in arg]
    if any(
        isinstance(a, str) and not a.startswith("=") and program.calls.kind_of(program.resolver.path(number, a)) == "module" for a in given
    ):
        return False  # wrapped: the parameters are the same
    if target.kind == "func":
        inner_fact = program.tree.functions[int(target.ref)].fact
        return any(
            isinstance(a, int) and _new_network(program, int(target.ref), a, depth + 1)
            for e in inner_fact.exits if e.kind == "return" for item in e.items for a in item
        ) if depth < 4 else False  # fmt: skip
    return True
