"""A loop that clears and takes gradients on every pass, in which nothing can use them: the update is never applied (GYR218).

Silent wherever a call might step, or might read the gradients: a method named like a step, an optimizer or a network given away, a
`.grad` that is read, a norm that is kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Atoms, Function
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes import steps
from gyrecheck.verdict.shapes.steps import BACK, CLEAR, CLIP, STEP, Event
from gyrecheck.verdict.shapes.suspect import Suspect, at_call

_USES = ("step", "apply", "update", "optimi", "advance", "grad", "reduce", "sync", "learn", "train", "fit")
"""Parts of a call's name that may say: it uses gradients."""
_HOOKS = frozenset({"register_post_accumulate_grad_hook", "register_hook", "register_full_backward_hook"})
"""Calls by which a step, or anything else, may run within the backward pass."""
_PLAIN = frozenset({BACK, CLEAR, CLIP})


def never_stepped(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every such loop, at its backward pass."""
    hooked = {program.tree.functions[n].module for n in program.calling(_HOOKS)}
    for number in program.doing(BACK):
        fn = program.tree.functions[number]
        table = program.full.of[number]
        if CLEAR not in table or STEP in table or "scaler.step" in table or "update.run" in table or fn.fact.name.startswith("test"):
            continue
        if "evaluation" in program.region(number) or fn.module in hooked:
            continue
        found = steps.events(program, number)
        for back in (e for e in found if e.role == BACK and len(e.way) == 1):
            around = steps.loops(program, back)
            clear = next((e for e in found if around and _pairs(program, e, back, around[0])), None)
            if clear is None or any(True for _ in steps.branches(program, back, around[0])) or _may_use(program, number, around[-1][1]):
                continue
            yield at_call(
                program, number, back.place[1], "GYR218", f"`{readable(program.call(*back.place))}` takes gradients that are cleared on the "
                    "next pass, and no optimizer steps between",
                evidence=(steps.evidence(program, clear, "they are cleared unused"),), side="training",
                hint=f"call {clear.who or 'optimizer'}.step() after the backward pass",
            )  # fmt: skip
            break


def _pairs(program: Program, event: Event, back: Event, loop: tuple[int, int]) -> bool:
    """An optimizer cleared on every pass of the loop."""
    if event.role != CLEAR or not event.optimizer or not steps.inside(program, event, back, loop):
        return False
    return next(steps.branches(program, event, loop), None) is None


def _may_use(program: Program, number: int, loop: int) -> bool:
    """Anything in the loop that may step or read the gradients."""
    fact = program.tree.functions[number].fact
    inside = [(at, c) for at, c in enumerate(fact.calls) if program.within(number, c.block, loop)]
    for at, call in inside:
        known = program.known_role(number, at)
        role = known[0] if known is not None else ""
        last = call.name.rpartition(".")[2].lower()
        if role == CLIP and (call.result != -1 or last == "unscale_"):
            return True  # a norm that is kept is measured, perhaps for its own sake
        if role in _PLAIN or role.startswith(("env.", "log.", "scheduler.")):
            continue
        if any(word in last for word in _USES) and not last.startswith("no_grad") and role != "guard.no_grad":
            return True
        if any(_given_away(program, number, atoms) for atoms in (*call.args, *(v for _, v in call.keywords))):
            return True
        if "parameters" in last and role != CLIP and not _into_clip(program, number, fact, at):
            return True
        if ".grad" in call.name:
            return True
    paths = [a for b in fact.binds for a in (b.target, *b.value) if isinstance(a, str)]
    paths += [a for e in fact.exits for item in e.items for a in item if isinstance(a, str)]
    return any(p.endswith(".grad") or ".grad." in p or ".grad[" in p for p in paths) or any(e.kind == "yield" for e in fact.exits)


def _given_away(program: Program, number: int, atoms: Atoms) -> bool:
    """An optimizer or a network is an argument: whoever gets it may do anything."""
    for atom in atoms:
        if not isinstance(atom, str) or atom.startswith(("=", "<")):
            continue
        kind = program.calls.kind_of(program.resolver.path(number, atom))
        named = program.lexicon.named(atom.rpartition(".")[2])
        if (kind or (named.kind if named is not None else "")) in {"optimizer", "module"}:
            return True
    return False


def _into_clip(program: Program, number: int, fact: Function, at: int) -> bool:
    return any(at in arg for i, c in enumerate(fact.calls) for arg in c.args if (program.known_role(number, i) or ("",))[0] == CLIP)
