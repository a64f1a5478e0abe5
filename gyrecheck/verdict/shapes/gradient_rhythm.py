"""Do clear, backward and step keep one rhythm? (GYR206, GYR207).

GYR206: two steps of one optimizer with no clearing between. GYR207: gradients cleared on passes that do not step, or between
backward and the step it feeds.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Block
from gyrecheck.model.finding import Confidence
from gyrecheck.program.flow import prefixes
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes import steps
from gyrecheck.verdict.shapes.left_over import left_over
from gyrecheck.verdict.shapes.steps import BACK, CLEAR, STEP, Event
from gyrecheck.verdict.shapes.suspect import Suspect, at_call


def gradient_rhythm(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every break of rhythm, each place once, seen from the outermost function that shows it."""
    seen: set[tuple[str, int, int]] = set()
    for fn in program.functions:
        table = program.full.of[fn.number]
        if STEP not in table and "scaler.step" not in table:
            continue
        if fn.fact.name.startswith("test"):
            continue  # a test steps to see what one step does
        found = steps.events(program, fn.number)
        for suspect in (*_no_clear(program, fn.number, found), *_cleared(program, found), *left_over(program, fn.number, found)):
            key = (suspect.code, suspect.function, suspect.line)
            if key not in seen:
                seen.add(key)
                yield suspect


# ---- GYR206


def _no_clear(program: Program, root: int, found: list[Event]) -> Iterator[Suspect]:
    clears = [e for e in found if e.role == CLEAR]
    backs = [e for e in found if e.role == BACK]
    taken = [e for e in found if e.role == STEP and e.optimizer]
    for step in taken:
        around = steps.loops(program, step)
        mine = [c for c in clears if _concerns(c, step)]
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
                        evidence=(steps.evidence(program, other, "first step"), *_way(program, step)), side="training",
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
        _tail(fn.fact.calls[at].name.rpartition(".")[0]) for fn in program.tree.functions_of(module) for at, _ in program.own(fn.number, CLEAR, hints=True)
    }  # fmt: skip
    for step in taken:
        back = next((b for b in reversed(backs) if steps.before(program, b, step)), None)
        if (
            back is not None
            and _tail(step.who) not in cleared
            and not _handed_on(program, step, (0, 0))
            and not _fresh(program, root, step)
        ):
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
        evidence=(steps.evidence(program, back, "gradients are added by"), *_way(program, step)), side="training",
        hint=f"call {step.who or 'the optimizer'}.zero_grad() before the backward pass",
    )  # fmt: skip


def _concerns(clear: Event, step: Event) -> bool:
    """A clearing of the same optimizer, of a module (whose parameters may be the optimizer's), or of something unknown."""
    if not clear.optimizer or clear.who == step.who:
        return True
    plain = clear.who.count(".") + step.who.count(".") <= 2 and (clear.who.count(".") < 2 > step.who.count("."))
    return (plain and _tail(clear.who) == _tail(step.who)) or "[" in clear.who


def _tail(path: str) -> str:
    return path.rpartition(".")[2]


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


# ---- GYR207


def _cleared(program: Program, found: list[Event]) -> Iterator[Suspect]:
    clears = [e for e in found if e.role == CLEAR]
    backs = [e for e in found if e.role == BACK]
    taken = [e for e in found if e.role == STEP]
    for clear in clears:
        for step in taken:
            if not _concerns(clear, step):
                continue
            around = steps.loops(program, step)
            for loop in around[:1]:
                if not steps.inside(program, clear, step, loop):
                    continue
                branch = rhythm(program, step, loop)
                back = next((b for b in backs if steps.inside(program, b, step, loop) and rhythm(program, b, loop) is None), None)
                if branch is not None and back is not None and _unconditional(program, clear, loop) and not wrapped(program, clear):
                    number, block = branch
                    yield at_call(
                        program, *clear.place, "GYR207",
                        f"`{readable(program.call(*clear.place))}` clears on every pass, "
                            "the optimizer steps only on some: the other passes are lost",
                        evidence=(
                            program.place(number, block.line, "the step happens only when this holds", "because"),
                            steps.evidence(program, back, "these gradients are cleared"), steps.evidence(program, step, "the step"),
                        ), side="training", hint="clear on the same branch as the step, right after it",
                    )  # fmt: skip
            yield from _before_the_end(program, clear, step, backs, taken)
        yield from _between(program, clear, backs, taken, clears)


def _before_the_end(program: Program, clear: Event, step: Event, backs: list[Event], taken: list[Event]) -> Iterator[Suspect]:
    """Cleared and added up in a loop that never steps, and one step after the loop: only the last pass counts."""
    around = steps.loops(program, clear)
    if (
        not around
        or any(steps.inside(program, s, clear, around[0]) for s in taken)
        or any(True for _ in steps.branches(program, clear, around[0]))
    ):
        return
    loop = around[0]
    added = [
        b for b in backs if steps.inside(program, b, clear, loop) and steps.loops(program, b) == around and steps.before(program, clear, b)
    ]
    if not added or step.way[: loop[0]] != clear.way[: loop[0]] or step.way[loop[0]][0] != clear.way[loop[0]][0]:
        return
    number = clear.way[loop[0]][0]
    outside = program.tree.functions[number].fact.blocks[loop[1]].parent
    at = steps.block_at(program, step, loop[0])
    if at != outside or not steps.before(program, clear, step) or wrapped(program, clear):
        return
    yield at_call(
        program, *clear.place, "GYR207", f"`{readable(program.call(*clear.place))}` clears on every pass, and the step comes after the last one: "
            "the other passes are lost",
        evidence=(steps.evidence(program, added[0], "these gradients are cleared"), steps.evidence(program, step, "the step"), *_way(program, clear)),
        side="training", hint="clear once before the passes, or right after the step",
    )  # fmt: skip


def _between(program: Program, clear: Event, backs: list[Event], taken: list[Event], clears: list[Event]) -> Iterator[Suspect]:
    """`backward`, then `zero_grad`, then `step`, in one run of statements."""
    here = clear.way[:-1]
    back = [b for b in backs if b.way[:-1] == here and _block(program, b) == _block(program, clear) and steps.before(program, b, clear)]
    step = [s for s in taken if s.way[:-1] == here and _block(program, s) == _block(program, clear) and steps.before(program, clear, s)]
    step = [s for s in step if s.who == clear.who or (not clear.optimizer and len({t.who for t in taken}) == 1)]
    if not back or not step:
        return
    last, first = back[-1], step[0]
    if any(steps.before(program, last, s) and steps.before(program, s, clear) for s in taken if s.way[:-1] == here):
        return
    again = [b for b in backs if steps.before(program, clear, b) and steps.before(program, b, first)]
    if again and len({(e.who, e.role) for e in (*taken, *clears)}) != 2:
        return  # more than one optimizer: the first pass may feed another one
    if not _feeds(program, last, clear, taken):
        return
    yield at_call(
        program, *clear.place, "GYR207", f"`{readable(program.call(*clear.place))}` clears the "
            "gradients between the backward pass and the step they feed",
        evidence=(steps.evidence(program, last, "these gradients are cleared"), steps.evidence(program, first, "the step finds none")),
        side="training", hint="clear before the backward pass, or after the step",
    )  # fmt: skip


def _feeds(program: Program, back: Event, clear: Event, taken: list[Event]) -> bool:
    """With several optimizers in a function a clearing of another one is no fault."""
    del program, back
    return len({s.who for s in taken}) <= 1 or clear.optimizer


def _block(program: Program, event: Event) -> int:
    return program.call(*event.place).block


def rhythm(program: Program, event: Event, loop: tuple[int, int]) -> tuple[int, Block] | None:
    """The branch that lets an event happen only on some passes of the loop: a counter, or the engine's own signal."""
    for number, _, block in steps.branches(program, event, loop):
        words = [str(a).rpartition(".")[2].lower() for a in block.detail if isinstance(a, str) and not a.startswith("=")]
        calls = [program.call(number, a).name.rpartition(".")[2].lower() for a in block.detail if isinstance(a, int)]
        if block.kind == "then" and ("%" in block.op or any(program.words.has("cadence", w) for w in (*words, *calls))):
            return number, block
    return None


def _unconditional(program: Program, event: Event, loop: tuple[int, int]) -> bool:
    return next(steps.branches(program, event, loop), None) is None and steps.loops(program, event)[:1] == [loop]


def wrapped(program: Program, clear: Event) -> bool:
    """An optimizer wrapped by its library clears only when it steps."""
    if not clear.optimizer and clear.role == CLEAR:
        return False
    number = clear.place[0]
    who = program.call(*clear.place).name.rpartition(".")[0]
    names = (number, *(e.caller for e in program.callers[number]))
    for at in names:
        for bind in program.tree.functions[at].fact.binds:
            if _tail(bind.target) == _tail(who) and any(
                isinstance(a, int) and program.call(at, a).name.endswith(".prepare") for a in bind.value
            ):
                return True
    return False


def _way(program: Program, event: Event) -> list:  # type: ignore[type-arg]
    return [
        program.place(
            n, program.call(n, c).line, f"{program.name(n)} calls {readable(program.call(n, c))}", "through", program.call(n, c).column + 1
        )
        for n, c in event.way[:-1]
    ]
