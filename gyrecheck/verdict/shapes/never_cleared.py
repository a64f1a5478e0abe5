"""Is an optimizer stepped twice with no clearing between, so that gradients of all passes add up? (GYR206).

Silent where the optimizer is handed to something unknown that may clear it, or its gradients are written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.finding import Confidence
from gyrecheck.program.flow import prefixes
from gyrecheck.program.program import Program, readable
from gyrecheck.verdict.shapes import steps
from gyrecheck.verdict.shapes.optimizer_pass import concerns, tail, way
from gyrecheck.verdict.shapes.steps import BACK, CLEAR, STEP, Event
from gyrecheck.verdict.shapes.suspect import Suspect, at_call


def never_cleared(program: Program, root: int, found: list[Event]) -> Iterator[Suspect]:
    """Every step of a function that follows another one, or is repeated, on gradients that nothing cleared."""
    clears = [e for e in found if e.role == CLEAR]
    backs = [e for e in found if e.role == BACK]
    taken = [e for e in found if e.role == STEP and e.optimizer]
    for step in taken:
        around = steps.loops(program, step)
        mine = [c for c in clears if concerns(c, step)]
        if around:
            loop = next((lp for lp in around if any(steps.inside(program, b, step, lp) for b in backs)), None)
            if loop is None or _handed_on(program, step, loop):
                continue
            others = [c for c in clears if c not in mine and steps.inside(program, c, step, loop)]
            owned = bool(others) and all(c.optimizer and any(s.who == c.who for s in taken if s is not step) for c in others)
            if not any(steps.inside(program, c, step, loop) for c in mine) and (owned or not _hidden_clear(program, step, loop)):
                back = next(b for b in backs if steps.inside(program, b, step, loop))
                yield _unclear(program, step, back)
                continue
        for other in taken:
            if (
                other is not step
                and other.who == step.who
                and steps.before(program, other, step)
                and steps.always_after(program, other, step)
            ):
                between = [c for c in mine if steps.before(program, other, c) and steps.before(program, c, step)]
                fed = [b for b in backs if steps.before(program, other, b) and steps.before(program, b, step)]
                same = _same_loop(program, other, step)
                if not between and fed and same:
                    yield at_call(
                        program, *step.place, "GYR206", f"second `{readable(program.call(*step.place))}` with no `zero_grad` between",
                        evidence=(steps.evidence(program, other, "first step"), *way(program, step)), side="training",
                        hint=f"call {step.who}.zero_grad() after the first step, or step once",
                    )  # fmt: skip
                    break
    yield from _engine_too(program, backs, taken)
    if taken and backs and not clears:
        yield from _never(program, root, taken[0], backs[0])
    elif all(e.confidence is Confidence.HINT for e in program.callers[root]):
        yield from _of_another(program, root, taken, backs, clears)


def _engine_too(program: Program, backs: list[Event], taken: list[Event]) -> Iterator[Suspect]:
    """`engine.backward(loss)`, `engine.step()`, and then the wrapped optimizer's own `step()` as well."""
    for first in taken:
        own = [b for b in backs if b.who and b.who == first.who and program.call(*b.place).args and steps.before(program, b, first)]
        if first.optimizer or not own:
            continue
        for second in taken:
            fed = [b for b in backs if steps.before(program, first, b) and steps.before(program, b, second)]
            if second.who == first.who or not second.optimizer or fed or not steps.before(program, own[-1], second) or len(backs) > 1:
                continue
            if steps.loops(program, first) == steps.loops(program, second):
                yield at_call(
                    program, *second.place, "GYR206", f"`{readable(program.call(*second.place))}` steps a second time on gradients that "
                        f"`{readable(program.call(*first.place))}` has used",
                    evidence=(steps.evidence(program, first, "the engine steps its optimizer"),), side="training",
                    hint="leave the step to the engine",
                )  # fmt: skip


def _never(program: Program, root: int, step: Event, back: Event) -> Iterator[Suspect]:
    """A function that takes the gradient and steps, in a file in which nothing ever clears, called from nowhere that we see."""
    callers = program.callers[root]
    if (
        step.place[0] != root
        or back.place[0] != root
        or steps.loops(program, step)
        or any(e.confidence is not Confidence.HINT for e in callers)
    ):
        return
    modules = {program.tree.functions[n].module for n in (root, *(e.caller for e in callers))}
    near = [fn for module in modules for fn in program.tree.functions_of(module)]
    if any(program.own(fn.number, CLEAR, hints=True) for fn in near) or any(
        b.target.endswith(".grad") for fn in near for b in fn.fact.binds
    ):
        return
    name = program.tree.functions[root].fact.name
    if name == "<module>" or "evaluation" in program.region(root) or _handed_on(program, step, (0, 0)) or _fresh(program, root, step):
        return
    yield _unclear(program, step, back)


def _of_another(program: Program, root: int, taken: list[Event], backs: list[Event], clears: list[Event]) -> Iterator[Suspect]:
    """One optimizer of a function is cleared on every pass and the other nowhere in the file: the clearing names the wrong one."""
    if any(len(e.way) > 1 or steps.loops(program, e) or e.place[0] != root for e in (*taken, *backs, *clears)):
        return
    stepped = {s.who for s in taken}
    if len(stepped) < 2 or not all(c.optimizer and c.who in stepped for c in clears):
        return
    module = program.tree.functions[root].module
    cleared = {
        tail(fn.fact.calls[at].name.rpartition(".")[0]) for fn in program.tree.functions_of(module) for at, _ in program.own(fn.number, CLEAR, hints=True)
    }  # fmt: skip
    for step in taken:
        back = next((b for b in reversed(backs) if steps.before(program, b, step)), None)
        if back is not None and tail(step.who) not in cleared and not _handed_on(program, step, (0, 0)) and not _fresh(program, root, step):
            yield _unclear(program, step, back)


def _fresh(program: Program, root: int, step: Event) -> bool:
    """The optimizer is made in this very function: each call steps a new one once."""
    return any(
        bind.target == step.who and any(isinstance(a, int) and program.role(root, a) == "optimizer.make" for a in bind.value)
        for bind in program.tree.functions[root].fact.binds
    )


def _unclear(program: Program, step: Event, back: Event) -> Suspect:
    return at_call(
        program, *step.place, "GYR206", f"`{readable(program.call(*step.place))}` is repeated and no "
            "`zero_grad` lies between: gradients of all passes add up",
        evidence=(steps.evidence(program, back, "gradients are added by"), *way(program, step)), side="training",
        hint=f"call {step.who or 'the optimizer'}.zero_grad() before the backward pass",
    )  # fmt: skip


def _same_loop(program: Program, first: Event, second: Event) -> bool:
    a, b = steps.loops(program, first), steps.loops(program, second)
    return (a[0] if a else None) == (b[0] if b else None) or len(first.way) != len(second.way)


def _handed_on(program: Program, step: Event, loop: tuple[int, int]) -> bool:
    """The optimizer is given to something unknown in the loop, which may clear it; or its gradients are written by hand."""
    number = step.way[loop[0]][0]
    fact = program.tree.functions[number].fact
    roots = set(prefixes(step.who))
    for at, call in enumerate(fact.calls):
        if (number, at) in step.way or not program.within(number, call.block, loop[1]):
            continue
        last = call.name.rpartition(".")[2]
        if last in {"step", "zero_grad", "unscale_", "update", "append", "state_dict", "load_state_dict"}:
            continue
        given = [a for arg in (*call.args, *(v for _, v in call.keywords)) for a in arg if isinstance(a, str)]
        if step.who and step.who in given and program.resolver.callee(number, at) is None:
            return True
        if "zero" in last and "grad" in last:
            return True
    del roots
    return any(b.target.endswith(".grad") for b in fact.binds)


def _hidden_clear(program: Program, step: Event, loop: tuple[int, int]) -> bool:
    """A first-party call in the loop clears, known by name only."""
    number = step.way[loop[0]][0]
    fact = program.tree.functions[number].fact
    for edge in program.calls.edges[number]:
        if edge.call >= 0 and program.within(number, fact.calls[edge.call].block, loop[1]) and CLEAR in program.full.of[edge.callee]:
            return True
    return any(r.role == CLEAR and program.within(number, fact.calls[r.call].block, loop[1]) for r in program.calls.roles[number])
