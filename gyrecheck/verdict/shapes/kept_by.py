"""Which call keeps a value that it is given: in a field of its object, or in a store that is not its own.

Followed through at most three calls, each only when it is surely known; a value that is cut on the way is not kept.
"""

from __future__ import annotations

from gyrecheck.model.facts import Atoms, Function
from gyrecheck.model.finding import Confidence
from gyrecheck.program.calls import Edge
from gyrecheck.program.flow import Reached, reach
from gyrecheck.program.program import Program
from gyrecheck.verdict.shapes.forwards import cuts

_DEEP = 3
_FORM = frozenset({"shape", "dtype", "device", "ndim", "requires_grad"})


def keeper(program: Program, number: int, flow: Reached) -> Edge | None:
    """The first call of one of our own functions that is given the value and keeps it, or None."""
    return _keeper(program, number, flow, frozenset({number}))


def _keeper(program: Program, number: int, flow: Reached, seen: frozenset[int]) -> Edge | None:
    for edge in program.calls.edges[number]:
        if edge.kind != "call" or edge.confidence is Confidence.HINT or edge.call not in flow.taken or edge.callee in seen:
            continue
        cls = program.tree.functions[edge.callee].cls
        if cls >= 0 and program.calls.class_kind(cls) in {"env", "module"}:
            continue  # a layer's own state, or an action that the environment remembers
        taken = given_to(program, number, edge, flow)
        if taken and _keeps(program, edge.callee, taken, seen | {edge.callee}):
            return edge
    return None


def given_to(program: Program, number: int, edge: Edge, flow: Reached) -> tuple[str, ...]:
    """The callee's parameters that are given what `flow` carries."""
    call, fn = program.call(number, edge.call), program.tree.functions[edge.callee]
    plain = [p.name for p in fn.fact.params if not p.kind]
    if fn.cls >= 0 and not any(d.name.rpartition(".")[2] == "staticmethod" for d in fn.fact.decorators):
        plain = plain[1:]
    rest = next((p.name for p in fn.fact.params if p.kind == "*"), "")
    named = next((p.name for p in fn.fact.params if p.kind == "**"), "")
    out = [plain[i] if i < len(plain) else rest for i, atoms in enumerate(call.args) if flow.any(atoms)]
    every = {p.name for p in fn.fact.params}
    out += [key if key in every else named for key, atoms in call.keywords if flow.any(atoms)]
    return tuple(name for name in out if name)


def _keeps(program: Program, number: int, params: tuple[str, ...], seen: frozenset[int]) -> bool:
    if program.unrecorded_by_decorator(number):
        return False
    fact = program.tree.functions[number].fact
    flow = reach(fact, paths=params, cut=lambda c: cuts(program, number, c))
    if any(b.target.startswith("self.") and b.form not in {"with", "for"} and _graph_in(flow, b.value) for b in flow.kept):
        return True
    outside = _outside(fact)
    for at in flow.taken:
        head, _, last = fact.calls[at].name.rpartition(".")
        if head and last in program.words["stores"] and (head.startswith("self.") or head in outside):
            return True
    return len(seen) <= _DEEP and _keeper(program, number, flow, seen) is not None


def _graph_in(flow: Reached, atoms: Atoms) -> bool:
    """The value itself is among the atoms, not only its form."""
    return any(flow.holds(a) and not (isinstance(a, str) and a.rpartition(".")[2] in _FORM) for a in atoms)


def _outside(fact: Function) -> frozenset[str]:
    """Names that may stand for a part of the object itself: bound from its fields."""
    me = fact.params[0].name if fact.params else ""
    return reach(fact, paths=[me]).paths if me in {"self", "cls"} else frozenset()
