"""A subclass empties the step or the clearing of its base, and its own update goes through that very name (GYR218, GYR206).

Backward, step and clear all stand on the page in the right order; only method resolution shows that one of them does nothing. Silent
where the step is reached on any other way: in the update itself, or in a function that calls it.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.finding import Confidence
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.steps import BACK, CLEAR, STEP
from gyrecheck.verdict.shapes.suspect import Suspect, at_call

_STEPS = (STEP, "scaler.step", "update.run")


def emptied_hook(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every call after a backward pass that should step or clear, and resolves to an empty override of a method that does."""
    for cls in program.tree.classes:
        if len(program.resolver.bases(cls.number)[0]) < 2:
            continue
        for name, hook in cls.methods.items():
            if not _is_empty(program, hook):
                continue
            base = next(
                (m for c in program.resolver.bases(cls.number)[0][1:] if (m := program.tree.classes[c].methods.get(name)) is not None), -1
            )
            role = next((r for r in (STEP, "scaler.step", CLEAR) if base >= 0 and program.has(base, r)), "")
            if role and not (role != CLEAR and program.has(base, BACK)):
                yield from _calls(program, hook, base, role)


def _is_empty(program: Program, number: int) -> bool:
    """No call, no binding, no decorator, and nothing given back but a constant."""
    fact = program.tree.functions[number].fact
    given = [a for e in fact.exits for item in e.items for a in item if isinstance(a, str)]
    plain = all(e.kind == "return" for e in fact.exits) and all(a.startswith("=") for a in given)
    return plain and not fact.binds and not fact.decorators and all(c.name == "{}" and not c.keywords for c in fact.calls)


def _calls(program: Program, hook: int, base: int, role: str) -> Iterator[Suspect]:
    """The updates that go through the emptied hook and have no other way to what it should do."""
    name = program.tree.functions[hook].fact.name
    wanted = (CLEAR,) if role == CLEAR else _STEPS
    for edge in program.callers[hook]:
        if edge.kind != "call" or edge.confidence is Confidence.HINT or edge.call < 0 or not program.has(edge.caller, BACK, full=True):
            continue
        call = program.call(edge.caller, edge.call)
        back = _backward_before(program, edge.caller, edge.call)
        if back < 0 or (role == CLEAR and not program.has(edge.caller, *_STEPS, full=True)):
            continue
        if any(_does(program, n, wanted, name) for n in (edge.caller, *_above(program, edge.caller))):
            continue
        learn, empty, meant = program.call(edge.caller, back), program.tree.functions[hook].fact, program.tree.functions[base].fact
        evidence = (
            program.place(hook, empty.line, f"it resolves to {program.name(hook)}, which does nothing", "because", empty.column + 1),
            program.place(base, meant.line, f"the one that does it is {program.name(base)}", "because", meant.column + 1),
            program.place(edge.caller, learn.line, f"gradients are added by {readable(learn)}", "because", learn.column + 1),
        )
        if role != CLEAR:
            yield at_call(
                program, edge.caller, edge.call, "GYR218", f"`{readable(call)}` after the backward pass resolves to an empty override: no "
                    "optimizer step is ever made",
                evidence=evidence, hint=f"call super().{name}() in the update, or step the optimizer there", side="training",
            )  # fmt: skip
        else:
            yield at_call(
                program, edge.caller, edge.call, "GYR206", f"`{readable(call)}` resolves to an empty override: nothing clears, and gradients "
                    "of all passes add up",
                evidence=evidence, hint=f"call super().{name}() in the update, or clear the optimizer there", side="training",
            )  # fmt: skip


def _backward_before(program: Program, number: int, at: int) -> int:
    """The last call of the function before `at` that takes gradients, by itself or below; -1 for none."""
    order = program.call(number, at).order
    found = [a for a, _ in program.own(number, BACK)]
    found += [e.call for e in program.calls.edges[number] if e.call >= 0 and e.kind == "call" and program.has(e.callee, BACK, full=True)]
    return max((a for a in found if program.call(number, a).order < order), default=-1)


def _does(program: Program, number: int, roles: tuple[str, ...], name: str) -> bool:
    """The function does it by itself or below, perhaps, on another way than through a call of that name."""
    for at, call in enumerate(program.tree.functions[number].fact.calls):
        head, _, last = call.name.rpartition(".")
        if last == name and (head == "self" or name != "step"):
            continue
        known = program.known_role(number, at)
        if (known is not None and known[0] in roles) or (STEP in roles and last == "step" and head):
            return True
    return any(
        program.has(e.callee, *roles, full=True) and (e.call < 0 or program.call(number, e.call).name.rpartition(".")[2] != name)
        for e in program.calls.edges[number]
    )


def _above(program: Program, number: int) -> list[int]:
    """The functions that call it, and theirs."""
    near = [e.caller for e in program.callers[number]]
    return [*near, *(e.caller for n in near for e in program.callers[n])]
