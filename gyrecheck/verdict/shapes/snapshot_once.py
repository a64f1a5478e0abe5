"""Is one snapshot of the weights, made before the loop that trains, sent out again after every update? (GYR406)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Bind, Function
from gyrecheck.model.finding import Confidence, Severity
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.steps import STEP
from gyrecheck.verdict.shapes.suspect import Suspect, at_call, in_tests
from gyrecheck.verdict.shapes.weight_delivery import brings

_WEIGHTS = frozenset({"state_dict", "named_parameters", "parameters", "get_weights", "parameters_to_vector"})
_COPIES = frozenset({"put", "clone", "cpu", "numpy", "deepcopy", "copy", "save", "dumps", "tobytes", "half", "bfloat16", "get_weights"})
_MEANT = ("init", "start", "base", "ref", "sft", "best", "orig", "frozen", "warm", "teacher", "target", "expert", "old", "opponent", "reset", "restore",
          "optim", "sched", "ema")  # fmt: skip
"""Parts of a name that say: these weights are meant to stay what they were."""


def snapshot_once(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Deliveries in a training loop of a copy that only exists from before it."""
    for number in program.calling(_WEIGHTS):
        fact = program.functions[number].fact
        if in_tests(program, number):
            continue
        for bind in fact.binds:
            if bind.form != "=" or not bind.target.isidentifier() or not _copy_of_weights(fact, bind):
                continue
            others = [b for b in fact.binds if b.target.partition("[")[0] == bind.target and b is not bind]
            for at, call in enumerate(fact.calls):
                given = {a for arg in (*call.args, *(v for _, v in call.keywords)) for a in arg}
                loop = _training_loop(program, number, call.block, bind)
                if bind.target not in given or loop < 0 or any(program.within(number, b.block, loop) for b in others):
                    continue
                name = "" if bind.target in {"ref", "refs", "obj_ref"} else bind.target  # a handle of an object store
                words = f"{name} {call.name} {' '.join(str(a) for a in bind.value)}".lower()
                if not brings(program, number, at) or any(word in words for word in _MEANT):
                    continue
                yield at_call(
                    program, number, at, "GYR406", f"`{readable(call)}` sends `{bind.target}` after every update, and that is a copy of the weights from "
                        "before the loop: what is trained never arrives",
                    evidence=(program.place(number, bind.line, "the copy is made once, here", "because", bind.column + 1),
                              program.place(number, fact.blocks[loop].line, "the weights change in this loop", "because")),
                    hint="take the weights anew for each delivery", side="training", at_most=Severity.WARNING, key=bind.target,
                )  # fmt: skip
                break


def _copy_of_weights(fact: Function, bind: Bind) -> bool:
    """The value reads a network's weights, and holds them apart from the network."""
    names = set(_calls(fact, bind.value, 5)) | {
        fact.calls[i].name.rpartition(".")[2] for i, c in enumerate(fact.calls) if bind.line <= c.line and c.order < bind.order and c.end_line <= _end(fact, bind)
    }  # fmt: skip
    return bool(names & _WEIGHTS) and bool(names & _COPIES)


def _end(fact: Function, bind: Bind) -> int:
    """The last line of the calls in the value."""
    return max((fact.calls[a].end_line for a in bind.value if isinstance(a, int)), default=bind.line)


def _calls(fact: Function, atoms: tuple[str | int, ...], depth: int) -> Iterator[str]:
    for atom in atoms if depth > 0 else ():
        if isinstance(atom, int):
            call = fact.calls[atom]
            yield call.name.rpartition(".")[2]
            yield from _calls(fact, (*call.receiver, *(a for arg in call.args for a in arg)), depth - 1)


def _training_loop(program: Program, number: int, block: int, made: Bind) -> int:
    """A loop around the delivery, not around the copy, in which an optimizer steps; -1 for none."""
    fact = program.functions[number].fact
    for loop in program.loops_of(number, block):
        if program.within(number, made.block, loop):
            return -1
        if any(program.within(number, fact.calls[a].block, loop) for a, _ in program.own(number, STEP, "scaler.step", "update.run")):
            return loop
        for edge in program.calls.edges[number]:
            sure = edge.call >= 0 and edge.confidence is not Confidence.HINT and STEP in program.full.of[edge.callee]
            if sure and program.within(number, fact.calls[edge.call].block, loop):
                return loop
    return -1
