"""Is the part that both heads look through in an optimizer? (GYR224).

`self.head(self.trunk(x))` inside a network, optimizers over the heads alone: both losses fall, and the trunk stays as it was made. Asked
only where every optimizer of the tree is given parts of this one network in plain sight, and where the part is made with weights of its
own, is only ever called, and nothing in the tree freezes parameters or loads them.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Bind
from gyrecheck.program.flow import Reached, prefixes, reach
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.program.tree import Cls
from gyrecheck.verdict.shapes.optimizer_reach import given_to
from gyrecheck.verdict.shapes.steps import BACK
from gyrecheck.verdict.shapes.suspect import Suspect, at_call, in_tests


def shared_part(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Parts of a network that a loss goes through on its way from a held part, and that no optimizer holds."""
    made = [(fn.number, at) for fn in program.functions for at, _ in program.own(fn.number, "optimizer.make")]
    given = [given_to(program, *place) for place in made]
    paths = [p for found in given if found is not None for p in found]
    if not made or any(found is None for found in given) or not all("." in p for p in paths) or _fixed_or_loaded(program):
        return
    owners, held = {p.split(".")[-2] for p in paths}, {p.rpartition(".")[2] for p in paths}
    homes = [(cls, parts) for cls in program.tree.classes if held <= (parts := _parts(program, cls)).keys()]
    if len(owners) != 1 or len(homes) != 1:
        return
    (cls, parts), owner = homes[0], next(iter(owners))
    for name, bind in parts.items():
        if name in held or not _has_weights(program, cls.methods["__init__"], bind.value, 0) or not _only_called(program, name):
            continue
        methods = _looks_through(program, cls, name, held)
        used = next(((n, at) for n, at in _in_loss(program, owner, methods)), None)
        if used is None or in_tests(program, made[0][0]):
            continue
        start, call = cls.methods["__init__"], program.call(*used)
        yield at_call(
            program, *made[0], "GYR224", f"no optimizer holds `{name}` of this network, through which the loss goes: it never changes",
            evidence=(program.place(start, bind.line, f"the part is made here: {bind.target}", "because", bind.column + 1),
                      program.place(used[0], call.line, f"in the loss: {readable(call)}", "because", call.column + 1)),
            side="training", hint=f"give an optimizer {owner}.{name}.parameters() as well", key=name,
        )  # fmt: skip


def _fixed_or_loaded(program: Program) -> bool:
    """Something in the tree freezes parameters, moves them by hand or puts weights in from elsewhere: a part may be as it is on purpose."""
    for fn in program.tree.functions:
        for call in fn.fact.calls:
            head, _, last = call.name.rpartition(".")
            if last in program.words["fixes_or_loads"] and not ("opt" in head.lower() or "sched" in head.lower()):
                return True
        if any(b.target.endswith((".requires_grad", ".data")) for b in fn.fact.binds):
            return True
    return False


def _parts(program: Program, cls: Cls) -> dict[str, Bind]:
    """The networks a class makes in its constructor, each bound once: name and binding."""
    start = cls.methods.get("__init__")
    if start is None:
        return {}
    binds = [b for b in program.tree.functions[start].fact.binds if b.target.startswith("self.") and b.target.count(".") == 1]
    names = [b.target for b in binds]
    return {
        b.target[5:]: b
        for b in binds
        if b.form == "=" and names.count(b.target) == 1 and "[" not in b.target and len(b.value) == 1 and isinstance(b.value[0], int)
        and program.calls.kind_of(program.resolver.result(start, b.value[0])) == "module"
    }  # fmt: skip


def _has_weights(program: Program, number: int, atoms: tuple[str | int, ...], depth: int) -> bool:
    """A layer with weights is made among the atoms, drawn at random: no keyword speaks of weights that were trained before."""
    calls = [(at, program.call(number, at)) for at in atoms if isinstance(at, int)]
    if any(k.startswith(("pretrained", "weight")) for _, c in calls for k, _ in c.keywords):
        return False
    for at, call in calls:
        if call.name.rpartition(".")[2] in program.words["weight_layers"]:
            return True
        if any(_has_weights(program, number, arg, depth) for arg in call.args):
            return True
        target = program.resolver.callee(number, at)
        if depth < 3 and target is not None and target.kind in {"class", "func"}:
            inner = int(target.ref) if target.kind == "func" else program.tree.classes[int(target.ref)].methods.get("__init__", -1)
            if inner >= 0 and _has_weights(program, inner, tuple(range(len(program.tree.functions[inner].fact.calls))), depth + 1):
                return True
    return False


def _only_called(program: Program, name: str) -> bool:
    """Nobody hands the part on, reads an attribute or calls a method of it: its parameters are in no other hands."""
    suffix = f".{name}"
    for fn in program.tree.functions:
        fact = fn.fact
        read = [a for b in fact.binds for a in b.value]
        read += [a for c in fact.calls for atoms in (*c.args, *(v for _, v in c.keywords), c.receiver) for a in atoms]
        read += [a for e in fact.exits for item in e.items for a in item] + [a for block in fact.blocks for a in block.detail]
        if any(isinstance(a, str) and (a == f"='{name}'" or any(p.endswith(suffix) for p in prefixes(a))) for a in read):
            return False
        if any(p.endswith(suffix) for c in fact.calls for p in prefixes(c.name)[:-1]):
            return False
        if sum(b.target.endswith(suffix) for b in fact.binds) > (fact.name == "__init__"):
            return False
    return True


def _flow(program: Program, number: int, seeds: list[int]) -> Reached:
    return reach(program.tree.functions[number].fact, seeds, cut=lambda at: program.role(number, at) == "grad.cut")


def _looks_through(program: Program, cls: Cls, name: str, held: set[str]) -> set[str]:
    """The methods whose result comes from a held part that was given what the part made, with its graph."""
    features: set[str] = set()
    heads: set[str] = set()
    for _ in range(2):  # a method may take its features from another
        for method, number in cls.methods.items():
            fact = program.tree.functions[number].fact
            starts = {f"self.{m}" for m in (name, *features) if m != method}
            seeds = [at for at, c in enumerate(fact.calls) if c.name in starts and not program.unrecorded(number, c.block)]
            flow = _flow(program, number, seeds) if seeds else None
            if flow is None or not flow.returned:
                continue
            features.add(method)
            if any(fact.calls[at].name in {f"self.{h}" for h in held} for at in flow.taken & flow.calls):
                heads.add(method)
    return heads


def _in_loss(program: Program, owner: str, methods: set[str]) -> Iterator[tuple[int, int]]:
    """Recorded calls of such a method on the owner, whose result reaches a backward pass: of the same function, or of one that calls it."""
    for fn in program.functions:
        for at, call in enumerate(fn.fact.calls):
            parts = call.name.split(".")
            named = (parts[-1] in methods and parts[-2:-1] == [owner]) or (parts[-1] == owner and "forward" in methods)
            if named and not program.unrecorded(fn.number, call.block) and _learned(program, fn.number, at):
                yield fn.number, at


def _learned(program: Program, number: int, at: int) -> bool:
    flow = _flow(program, number, [at])
    if any(back in flow.calls for back, _ in program.own(number, BACK)):
        return True
    above = [e for e in program.callers[number] if e.kind == "call" and e.call >= 0] if flow.returned else []
    return any(
        not program.unrecorded(e.caller, program.call(e.caller, e.call).block)
        and any(back in _flow(program, e.caller, [e.call]).calls for back, _ in program.own(e.caller, BACK))
        for e in above
    )
