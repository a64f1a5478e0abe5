"""Which calls run a network, and which give a result without its graph: asked by every shape that follows gradients."""

from __future__ import annotations

from gyrecheck.model.facts import Call
from gyrecheck.model.finding import Confidence
from gyrecheck.program.flow import reach
from gyrecheck.program.program import Program


def forward(program: Program, number: int, at: int, call: Call) -> Confidence | None:
    """How surely a call runs a network, or None when it does not."""
    if call.name == "{}" or call.result == -2 or (not call.args and not call.keywords):
        return None
    last = call.name.rpartition(".")[2]
    if last.endswith(("_class", "_cls", "_type")):
        return None  # a class held by a variable: a constructor, no forward
    target = program.resolver.callee(number, at)
    if target is not None and target.kind == "inst":
        return Confidence.BOUND if program.calls.class_kind(int(target.ref)) == "module" else None
    if target is not None and target.kind == "type":
        return Confidence.BOUND if program.lexicon.kinds.get(str(target.ref)) == "module" else None
    if target is not None and target.kind in {"func", "class", "module", "ext"}:
        return None
    if last in program.words["no_forward"] or last in program.words["cuts"] or last in program.words["stores"]:
        return None
    base = program.resolver.receiver(number, call)
    if base is not None and base.kind == "type":
        known = last in program.lexicon.methods.get(str(base.ref), {}) or _ours_cut(program, number, last)
        return Confidence.BOUND if program.lexicon.kinds.get(str(base.ref)) == "module" and not known else None
    if base is not None and base.kind in {"module", "class", "func"}:
        return None
    if last[:1].isupper():
        return None  # a class held by a variable: a constructor, no forward
    if base is None and target is None and _into_distribution(program, number, at):
        return Confidence.BOUND
    named = program.lexicon.named(last)
    direct = named is not None and named.kind == "module"
    if not direct:
        role = program.known_role(number, at)
        if role is None or role[0] not in {"policy.forward", "policy.act"}:
            return None
        if program.all_unrecorded(last) or _ours_cut(program, number, last):
            return None  # whichever of our own it is, it records nothing
    if last == "forward" and call.name.rpartition(".")[0].rpartition(".")[2].strip("_").endswith("policy"):
        return Confidence.HINT  # a policy's own forward, which may take care of the graph itself
    return Confidence.BOUND if _tensors(program, number, at, call) else Confidence.HINT


def _into_distribution(program: Program, number: int, at: int) -> bool:
    """The result is at once the parameter of a distribution that records: only a network's output is that."""
    for index, call in enumerate(program.tree.functions[number].fact.calls):
        given = (*(a for arg in call.args for a in arg), *(a for _, v in call.keywords for a in v))
        if at in given and call.name[:1] != "." and call.name.rpartition(".")[2][:1].isupper():
            made = program.resolver.callee(number, index)
            if made is not None and made.kind == "ext" and ".distributions." in str(made.ref):
                return True
    return False


def _tensors(program: Program, number: int, at: int, call: Call) -> bool:
    """An argument is made a tensor, or the result is used as one."""
    fact = program.tree.functions[number].fact
    libraries = ("torch.", "th.")
    for atoms in call.args:
        for atom in atoms:
            paths = [b.value for b in fact.binds if b.target == atom] if isinstance(atom, str) else [(atom,)]
            for value in paths:
                for inner in value:
                    if isinstance(inner, int) and (_made_tensor(program, number, inner) or fact.calls[inner].name.startswith(libraries)):
                        return True
    flow = reach(fact, [at])
    return any(
        fact.calls[c].name.rpartition(".")[2] in program.words["tensor_methods"] or _made_tensor(program, number, c)
        for c in flow.calls
        if c != at
    )


def _made_tensor(program: Program, number: int, at: int) -> bool:
    target = program.resolver.callee(number, at)
    if target is None or target.kind != "ext":
        return False
    top = str(target.ref).partition(".")[0]
    return f"{top}.no_grad" in program.lexicon.symbols


def _ours_cut(program: Program, number: int, name: str) -> bool:
    """The file has methods of this name, and each of them records nothing or gives back numbers only."""
    ours = [f.number for f in program.tree.functions_of(program.tree.functions[number].module) if f.fact.name == name and f.cls >= 0]
    return bool(ours) and all(program.unrecorded_by_decorator(n) or gives_numbers(program, n) for n in ours)


def gives_numbers(program: Program, number: int) -> bool:
    """Everything that a function gives back has passed a call that cuts its graph: an action for an environment."""
    fact = program.tree.functions[number].fact
    given = [(item, e.order) for e in fact.exits if e.kind == "return" for item in e.items]
    return bool(given) and all(item and all(_is_cut(program, number, a, order) for a in item) for item, order in given)


def _is_cut(program: Program, number: int, atom: str | int, before: int) -> bool:
    """A name holds what was bound to it last before; one that is never bound here was given, and carries no graph of this function's."""
    fact = program.tree.functions[number].fact
    if isinstance(atom, int):
        call = fact.calls[atom]
        return cuts(program, number, atom) or (
            call.name[:1] == "." and bool(call.receiver) and all(_is_cut(program, number, a, before) for a in call.receiver)
        )
    last = max((b for b in fact.binds if b.target == atom and b.order < before), key=lambda b: b.order, default=None)
    if last is None:
        return True
    return last.form == "=" and bool(last.value) and all(_is_cut(program, number, a, last.order) for a in last.value)


def cuts(program: Program, number: int, at: int) -> bool:
    """Whether the result of a call carries no graph on."""
    call = program.call(number, at)
    last = call.name.rpartition(".")[2]
    return (
        call.name in program.words["numbers"]
        or last in program.words["cuts"]
        or program.role(number, at) == "grad.cut"
        or program.role(number, at).startswith("log.")
    )
