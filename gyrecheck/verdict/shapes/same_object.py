"""Is a copy no copy: a target, old or acting network that is the trained object itself, weights handed over by reference? (GYR109)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Bind, Function
from gyrecheck.program.program import LEARNING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.live_snapshot import live_snapshot
from gyrecheck.verdict.shapes.suspect import Suspect, at_bind, at_call

_IN_PROCESS = ("queue", "threading", "torch.multiprocessing")
_REBOUND = frozenset({"to", "cuda", "cpu", "eval", "train", "requires_grad_"})


def same_object(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Bindings that give a second name to the network that is trained, and live weights put into a queue of the same process."""
    trained = _trained(program)
    copies = program.words["copies_of_policy"]
    named: dict[str, bool] = {}
    for fn in program.functions:
        for bind in fn.fact.binds:
            if bind.op or bind.form != "=":
                continue
            said = named.get(bind.target)
            if said is None:
                tail = bind.target.rpartition(".")[2].lower()
                named[bind.target] = said = tail in copies or not copies.isdisjoint(tail.split("_"))
            source = _second_name(program, fn.number, bind, trained) if said else ""
            if source and _used_apart(program, fn.number, bind, source):
                yield at_bind(
                    fn.number, bind, "GYR109", f"`{bind.target}` is `{source}` itself, not a copy: it changes with every step",
                    hint=f"copy it: copy.deepcopy({source}), or a network of its own and load_state_dict", side="training",
                )  # fmt: skip
        yield from _live_weights(program, fn.number)
    for number in program.calling(frozenset({"state_dict"})):
        yield from live_snapshot(program, number)


def _trained(program: Program) -> frozenset[str]:
    """The last names of what gives its parameters to an optimizer."""
    out = set()
    for fn in (program.functions[n] for n in program.doing("optimizer.make")):
        for at, _ in program.own(fn.number, "optimizer.make"):
            for atoms in (*fn.fact.calls[at].args, *(v for _, v in fn.fact.calls[at].keywords)):
                for atom in atoms:
                    if isinstance(atom, int) and fn.fact.calls[atom].name.endswith((".parameters", ".named_parameters")):
                        out.add(fn.fact.calls[atom].name.rpartition(".")[0].rpartition(".")[2])
    return frozenset(out - {""})


def _second_name(program: Program, number: int, bind: Bind, trained: frozenset[str]) -> str:
    """The network that a binding names again as its target or old self, or empty."""
    if len(bind.value) != 1:
        return ""
    fact = program.tree.functions[number].fact
    atom = bind.value[0]
    if isinstance(atom, int):  # `self.net.to(device)`, `self.net.eval()`: the same object
        call = fact.calls[atom]
        source = call.name.rpartition(".")[0]
        if call.name.rpartition(".")[2] not in _REBOUND:
            return ""
    else:
        source = atom
    leaf = source.rpartition(".")[2].lower()
    if not source or source.startswith(("=", "<")) or "[" in source or program.words["copies_of_policy"] & set(leaf.split("_")):
        return ""
    if any(fact.blocks[b].kind in {"then", "else", "except"} for b in program.blocks_up(number, bind.block)):
        return ""
    earlier = [b for b in fact.binds if b.target == source and b.order < bind.order]
    if earlier and earlier[-1].value == ("=None",):
        return ""  # neither is there yet
    params = {p.name for p in fact.params if p.name not in {"self", "cls"}}
    if source in params and not ({source} & trained) and "." in bind.target:
        return ""  # a constructor is given its target: whoever calls it may have made the copy
    named = program.lexicon.named(leaf)
    kind = program.calls.kind_of(program.resolver.path(number, source)) or (named.kind if named is not None else "")
    return source if leaf in trained or kind == "module" else ""


def _used_apart(program: Program, number: int, bind: Bind, source: str) -> bool:
    """Both names are used beside each other where something is learned."""
    fn = program.tree.functions[number]
    places: list[Function] = [fn.fact]
    if bind.target.startswith("self.") and fn.cls >= 0:
        places = [program.functions[m].fact for m in program.tree.classes[fn.cls].methods.values()]
        learns = any(program.has(m, *LEARNING, full=True) for m in program.tree.classes[fn.cls].methods.values())
    else:
        learns = bool(program.has(number, *LEARNING, full=True))
    later = bind.order if places == [fn.fact] else -1

    def called(path: str) -> bool:
        return any(
            (c.name == path or c.name.startswith(f"{path}.")) and c.order > later and c.name.rpartition(".")[2] not in _REBOUND
            for fact in places for c in fact.calls
        )  # fmt: skip

    rebound = any(b is not bind and b.target == bind.target and b.form == "=" for fact in places for b in fact.binds)
    return learns and called(bind.target) and called(source) and not rebound


def _live_weights(program: Program, number: int) -> Iterator[Suspect]:
    """`queue.put(net.state_dict())` inside one process: the reader holds the trainer's own tensors."""
    fn = program.tree.functions[number]
    fact = fn.fact
    for at, _ in program.own(number, "carrier.write"):
        call = fact.calls[at]
        if call.name.rpartition(".")[2] not in {"put", "put_nowait", "put_many", "send"}:
            continue  # what publishes may copy
        for atom in (*(a for arg in call.args for a in arg), *(a for _, v in call.keywords for a in v)):
            found = _state(program, number, atom)
            if not found or not _one_process(program, fn.module):
                continue
            if not any(program.has(f.number, *LEARNING, full=True) for f in program.tree.functions_of(fn.module)):
                continue
            yield at_call(
                program, number, at, "GYR109", f"`{readable(call)}` hands over `{found}` by reference: "
                    "the next step changes the weights that were sent",
                hint="send copies: {k: v.detach().clone() for k, v in net.state_dict().items()}", side="training", key=found,
            )  # fmt: skip


def _state(program: Program, number: int, atom: str | int) -> str:
    fact = program.tree.functions[number].fact
    if isinstance(atom, int):
        call = fact.calls[atom]
        if call.name.endswith(".state_dict") and "optim" not in call.name and call.result != 1:
            return call.name
        if call.name == "{}":
            return next((s for _, v in call.keywords for a in v if (s := _state(program, number, a))), "")
        return ""
    made = [b for b in fact.binds if b.target == atom]
    if len(made) == 1 and len(made[0].value) == 1 and isinstance(made[0].value[0], int) and made[0].form == "=":
        call = fact.calls[made[0].value[0]]
        if call.name.endswith(".state_dict") and "optim" not in call.name:
            return call.name
    return ""


def _one_process(program: Program, module: int) -> bool:
    imports = {(i.module or i.name) for i in program.tree.modules[module].imports}
    threads = bool(imports & set(_IN_PROCESS)) or any(
        i.kind == "from" and i.module == "torch" and i.name == "multiprocessing" for i in program.tree.modules[module].imports
    )
    return threads and not imports & {"multiprocessing", "ray", "zmq", "socket"}
