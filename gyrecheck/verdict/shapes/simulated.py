"""Is an environment stepped on purpose inside what is differentiated: a differentiable simulation, a transformed pure function."""

from __future__ import annotations

from gyrecheck.program.flow import reach
from gyrecheck.program.program import Program


def differentiable(program: Program, number: int) -> bool:
    """The gradient is meant to flow through the step: its action still carries a network's graph, and its result is given back."""
    fact = program.functions[number].fact
    taken = [at for at, _ in program.own(number, "env.step")]
    if not taken:
        return False
    cuts = {
        at
        for at, call in enumerate(fact.calls)
        if call.name.rpartition(".")[2] in program.words["cuts"] or call.name in program.words["numbers"]
    }
    cuts |= {at for at, _ in program.own(number, "grad.cut")}
    networks = [
        at for at, call in enumerate(fact.calls)
        if call.args and at not in taken and not program.unrecorded(number, call.block) and _is_network(program, number, at)
    ]  # fmt: skip
    forward = reach(fact, networks, cut=lambda c: c in cuts)
    given_back = reach(fact, taken, cut=lambda c: c in cuts)
    return bool(set(taken) & forward.taken) and bool(given_back.returned)


def _is_network(program: Program, number: int, at: int) -> bool:
    call = program.call(number, at)
    target = program.resolver.callee(number, at)
    if program.calls.kind_of(target) == "module":
        return True
    named = program.lexicon.named(call.name)
    if target is None and named is not None and named.kind == "module":
        return True
    role = program.known_role(number, at)
    return (
        role is not None and role[0] in {"policy.forward", "policy.act"} and call.name.rpartition(".")[2] not in program.words["no_forward"]
    )


def transformed(program: Program, number: int) -> bool:
    """The function is given to a transform that differentiates it, so that whatever it calls is pure by construction."""
    for edge in program.callers[number]:
        if edge.kind == "passed" and edge.call >= 0 and program.role(edge.caller, edge.call) == "loss.backward":
            return True
    return False
