"""Whether the graph that sampling records is meant (trained on as it is, or part of a loss), and whether a function only samples.

Both answers lean to the careful side: where a loss may be computed there is no oversight, and where a caller is unknown nothing is pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from gyrecheck.model.finding import Confidence
from gyrecheck.program.calls import Edge
from gyrecheck.program.duties import duty_of
from gyrecheck.program.flow import reach
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
    A forward that records nothing (the value after the last step) is no run of the network: no loss goes through it.
    """
    trainers = _trainers_beside(program, number) or set(program.doing("loss.backward"))
    return not trainers or any(_runs(program, inner) for inner in _reached(program, trainers))


def is_trained_on(program: Program, sampler: int, number: int, at: int) -> bool:
    """The stored log-prob of call `at` is what training differentiates: it takes a loss, and no log-prob is computed there anew."""
    fact = program.tree.functions[number].fact
    flow = reach(fact, [at])
    if not any(program.words.has("logprob_names", fact.calls[c].name.rpartition(".")[2]) for c in flow.calls if c != at):
        return False
    trainers = _trainers_beside(program, sampler) or set(program.doing("loss.backward"))
    network = fact.calls[at].name.rpartition(".")[2]
    return bool(trainers) and not any(_scores(program, inner, network) for inner in _reached(program, trainers))


def _reached(program: Program, trainers: set[int]) -> set[int]:
    """The training functions and what they open, two calls deep."""
    out: set[int] = set()
    for trainer in trainers:
        reached = {trainer} | _opened(program, {trainer})
        out |= reached | _opened(program, reached)
    return out


def _runs(program: Program, number: int) -> bool:
    """The function runs a network with recording on, or calls something unknown that is named as if it did."""
    for at, call in enumerate(program.tree.functions[number].fact.calls):
        if forward(program, number, at, call) is not None and not program.unrecorded(number, call.block):
            return True
        if program.words.has("refers_to_forward", call.name.rpartition(".")[2]) and not _library(program, number, at):
            return True
    return False


def _scores(program: Program, number: int, network: str) -> bool:
    """The function computes a log-prob with its graph, runs the very network, or calls something unknown named as if it did."""
    for at, call in enumerate(program.tree.functions[number].fact.calls):
        last = call.name.rpartition(".")[2]
        if program.unrecorded(number, call.block):
            continue
        if program.words.has("logprob_names", last) or last in program.words["log_likelihoods"]:
            return True
        if last == network and forward(program, number, at, call) is not None:
            return True
        if program.words.has("refers_to_forward", last) and not _library(program, number, at):
            return True
    return False


def _library(program: Program, number: int, at: int) -> bool:
    """A function of a library, e.g. `F.mse_loss`, or one of its loss objects: it runs no network."""
    target = program.resolver.callee(number, at)
    return target is not None and (target.kind == "ext" or (target.kind == "type" and program.calls.kind_of(target) != "module"))


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
