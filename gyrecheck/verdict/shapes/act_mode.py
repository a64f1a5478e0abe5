"""Does a network with layers that behave otherwise in training act in training mode? (GYR107)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.program.tree import Thing
from gyrecheck.verdict.shapes.suspect import Suspect, at_call


def act_mode(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Sampling functions that run a network with dropout or batch norm after `train()`, or with no `eval()` anywhere."""
    modal: dict[int, str] = {}
    for cls in program.tree.classes:
        if program.calls.class_kind(cls.number) == "module":
            layer = _layer(program, cls.number)
            if layer:
                modal[cls.number] = layer
    if not modal:
        return
    for fn in program.functions:
        if not program.own(fn.number, "env.step", "policy.generate") or program.region(fn.number) & {"evaluation"}:
            continue
        yield from _acting(program, fn.number, modal)


def _layer(program: Program, cls: int) -> str:
    """The first layer of a class, or of one of its parts, whose behaviour depends on the mode."""
    layers = program.words["modal_layers"]
    for owner in program.resolver.bases(cls)[0]:
        for number in program.tree.classes[owner].methods.values():
            for call in program.functions[number].fact.calls:
                if call.name.rpartition(".")[2] in layers:
                    return call.name.rpartition(".")[2]
    return ""


def _acting(program: Program, number: int, modal: dict[int, str]) -> Iterator[Suspect]:
    fact = program.functions[number].fact
    done: set[str] = set()
    for at, call in enumerate(fact.calls):
        target = program.resolver.callee(number, at) or _by_name(program, number, call.name, modal)
        base = target if target is not None and target.kind == "inst" else program.resolver.receiver(number, call)
        if base is None or base.kind != "inst" or int(base.ref) not in modal:
            continue
        who = call.name if target is not None and target.kind == "inst" else call.name.rpartition(".")[0]
        last = call.name.rpartition(".")[2]
        if last in program.words["no_forward"] or who in done or program.loop_of(number, call.block) < 0:
            continue
        toggles = [
            (c.order, c.name.rpartition(".")[2], i)
            for i, c in enumerate(fact.calls)
            if c.name in {f"{who}.train", f"{who}.eval"} and c.order < call.order
        ]
        toggles = [
            (o, "eval" if n == "eval" or "=False" in [a for arg in fact.calls[i].args for a in arg] else "train", i) for o, n, i in toggles
        ]
        if toggles and max(toggles)[1] == "eval":
            continue
        done.add(who)
        layer = modal[int(base.ref)]
        if toggles:
            switch = program.call(number, max(toggles)[2])
            yield at_call(
                program, number, at, "GYR107", f"`{readable(call)}` acts in training mode: it has {layer}",
                evidence=(program.place(number, switch.line,
                f"{readable(switch)} puts it into training mode", "because", switch.column + 1),),
                hint=f"call {who}.eval() before acting, and {who}.train() before the update", side="sampling",
            )  # fmt: skip
            continue
        switched = _anywhere(program, int(base.ref), who)
        if "eval" not in switched:
            how = (
                "an update leaves it in training mode"
                if "train" in switched
                else "a network is made in training mode, and nothing calls eval()"
            )
            yield at_call(
                program, number, at, "GYR107", f"`{readable(call)}` acts in training mode: it has {layer}, and {how}",
                hint=f"call {who}.eval() before acting, and {who}.train() before the update", side="sampling",
            )  # fmt: skip


def _by_name(program: Program, number: int, path: str, modal: dict[int, str]) -> Thing | None:
    """A parameter that nobody passes here, named as the one class of the file that it can be: `actor` for `class Actor`."""
    fn = program.tree.functions[number]
    if path not in {p.name for p in fn.fact.params}:
        return None
    folded = path.replace("_", "").lower()
    own = [c for c in program.tree.classes if c.module == fn.module and c.fact.name.lower() == folded]
    return Thing("inst", own[0].number) if len(own) == 1 and own[0].number in modal else None


def _anywhere(program: Program, cls: int, who: str) -> set[str]:
    """The mode calls on such an object in all files, by type or by the same name."""
    tail = who.rpartition(".")[2]
    out: set[str] = set()
    for fn in program.functions:
        for call in fn.fact.calls:
            head, _, last = call.name.rpartition(".")
            if (
                last in {"train", "eval"}
                and head
                and (head.rpartition(".")[2] == tail or _same(program, fn.number, head, cls) or head == "self")
            ):
                out.add("eval" if last == "eval" or (call.args and "=False" in call.args[0]) else "train")
            if last in {"set_training_mode", "train_mode", "eval_mode"}:
                out.add("eval")
    return out


def _same(program: Program, number: int, path: str, cls: int) -> bool:
    found = program.resolver.path(number, path)
    return found is not None and found.kind == "inst" and int(found.ref) == cls
