"""Whether the graph that sampling records is meant (trained on as it is, or part of a loss), and whether a function only samples.

Both answers lean to the careful side: where a loss may be computed there is no oversight, and where a caller is unknown nothing is pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from gyrecheck.model.finding import Confidence
from gyrecheck.program.calls import Edge
from gyrecheck.program.duties import duty_of
from gyrecheck.program.program import LEARNING, Program
from gyrecheck.verdict.shapes.forwards import forward


def is_meant(program: Program, number: int) -> bool:
    """A loss is computed here or in a caller, the result is differentiated as it is, or its learner runs no network of its own."""
    if any("loss" in program.region(n) for n in (number, *_above(program, number))):
        return True
    return _is_differentiated(program, number, frozenset()) or not _learner_runs_network(program, number)


def only_samples(program: Program, number: int) -> bool:
    """A sampler whose callers are all known, and neither it nor one of them computes a loss or reaches the learning side."""
    duty = duty_of(program, number)
    if duty is None or duty.duty != "sampler":
        return False
    for at in (number, *_above(program, number)):
        if program.region(at) & {"loss", "update"} or program.has(at, *LEARNING, full=True):
            return False
        if program.tree.functions[at].fact.name != "<module>" and not _callers_known(program, at):
            return False
    return True


def _callers_known(program: Program, number: int) -> bool:
    """Something calls it or starts it as a thread, and nothing calls the same name without being known to mean it, or not to."""
    edges = program.callers[number]
    if not edges or any(e.confidence is Confidence.HINT or not _is_plain(program, e) for e in edges):
        return False
    known = {(e.caller, e.call) for e in edges}
    name = program.tree.functions[number].fact.name
    for caller in program.calling(frozenset({name})):
        for at, call in enumerate(program.tree.functions[caller].fact.calls):
            if call.name.rpartition(".")[2] == name and (caller, at) not in known and program.resolver.callee(caller, at) is None:
                return False
    return True


def _is_plain(program: Program, edge: Edge) -> bool:
    return edge.kind in {"call", "override"} or (
        edge.kind == "passed" and edge.call >= 0 and program.role(edge.caller, edge.call) == "thread.start"
    )


def _above(program: Program, number: int) -> list[int]:
    """All callers of a function, and theirs, nearest first."""
    found = [number]
    seen = {number}
    for at in found:
        for edge in program.callers[at]:
            if edge.confidence is not Confidence.HINT and edge.caller not in seen:
                seen.add(edge.caller)
                found.append(edge.caller)
    return found[1:]


def _is_differentiated(program: Program, number: int, seen: frozenset[int]) -> bool:
    """A caller runs backward on the result itself, under the name it is bound to; or hands it up to one that does."""
    for edge in program.callers[number]:
        if edge.call < 0 or edge.confidence is Confidence.HINT:
            continue
        fact = program.tree.functions[edge.caller].fact
        names = {b.target for b in fact.binds if edge.call in b.value}
        for at, _ in program.own(edge.caller, "loss.backward"):
            call = fact.calls[at]
            given = {atom for atoms in (*call.args, call.receiver) for atom in atoms}
            if call.name.rpartition(".")[0] in names or edge.call in given or names & given:
                return True
        handed = any(edge.call in item or names & set(item) for e in fact.exits for item in e.items)
        if handed and edge.caller not in seen and _is_differentiated(program, edge.caller, seen | {number}):
            return True
    return False


def _learner_runs_network(program: Program, number: int) -> bool:
    """False when training uses the very graph that sampling made: it takes a loss and no training function runs the network.

    Asked are the training functions that the nearest common caller reaches; all of the tree where the sides have none in common.
    """
    trainers = _trainers_beside(program, number) or set(program.doing("loss.backward"))
    if not trainers:
        return True
    for trainer in trainers:
        reached = {trainer} | _opened(program, {trainer})
        for inner in reached | _opened(program, reached):
            fact = program.tree.functions[inner].fact
            if any(forward(program, inner, at, call) is not None for at, call in enumerate(fact.calls)):
                return True
            if any(program.words.has("refers_to_forward", c.name.rpartition(".")[2]) for c in fact.calls):
                return True
    return False


def _trainers_beside(program: Program, number: int) -> set[int]:
    """The functions with a backward of their own that the nearest caller reaching any reaches."""
    for at in (number, *_above(program, number)):
        if program.has(at, "loss.backward", full=True):
            below = [at]
            for inner in below:
                below += [c for c in _called(program, [inner]) if c not in below and program.has(c, "loss.backward", full=True)]
            return {n for n in below if program.own(n, "loss.backward")}
    return set()


def _opened(program: Program, numbers: set[int]) -> set[int]:
    """What functions call, those left out that only sample: a forward in there is no second one."""
    called = _called(program, numbers)
    return {n for n in called if program.has(n, *LEARNING, full=True) or not program.has(n, "env.step", "policy.generate", full=True)}


def _called(program: Program, numbers: Iterable[int]) -> set[int]:
    return {e.callee for n in numbers for e in program.calls.edges[n]}
