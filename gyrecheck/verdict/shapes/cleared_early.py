"""Are gradients cleared on passes that do not step, or between the backward pass and the step that it feeds? (GYR207)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.program.flow import prefixes
from gyrecheck.program.program import Program, readable
from gyrecheck.verdict.shapes import steps
from gyrecheck.verdict.shapes.optimizer_pass import concerns, rhythm, way, wrapped
from gyrecheck.verdict.shapes.steps import BACK, CLEAR, STEP, Event
from gyrecheck.verdict.shapes.suspect import Suspect, at_call


def cleared_early(program: Program, found: list[Event]) -> Iterator[Suspect]:
    """Every clearing of a function that loses gradients which no step has used."""
    clears = [e for e in found if e.role == CLEAR]
    backs = [e for e in found if e.role == BACK]
    taken = [e for e in found if e.role == STEP]
    for clear in clears:
        for step in taken:
            if not concerns(clear, step):
                continue
            around = steps.loops(program, step)
            for loop in around[:1]:
                if not steps.inside(program, clear, step, loop) or _steps_within(program, clear, step, loop, taken):
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


def _steps_within(program: Program, clear: Event, step: Event, loop: tuple[int, int], taken: list[Event]) -> bool:
    """Another step of it lies in a loop within this one: what this step takes is the rest of a pass, not one pass of several."""
    return any(
        s is not step and concerns(clear, s) and steps.inside(program, s, step, loop) and steps.loops(program, s)[:1] != [loop]
        for s in taken
    )


def _before_the_end(program: Program, clear: Event, step: Event, backs: list[Event], taken: list[Event]) -> Iterator[Suspect]:
    """Cleared and added up in a loop that never steps, and one step after the loop: only the last pass counts."""
    around = steps.turns(program, clear)
    if (
        not around
        or _of_each(program, clear, around[0])
        or any(steps.inside(program, s, clear, around[0]) for s in taken)
        or any(True for _ in steps.branches(program, clear, around[0]))
    ):
        return
    loop = around[0]
    added = [
        b for b in backs if steps.inside(program, b, clear, loop) and steps.turns(program, b) == around and steps.before(program, clear, b)
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
        evidence=(steps.evidence(program, added[0], "these gradients are cleared"), steps.evidence(program, step, "the step"), *way(program, clear)),
        side="training", hint="clear once before the passes, or right after the step",
    )  # fmt: skip


def _of_each(program: Program, clear: Event, loop: tuple[int, int]) -> bool:
    """The loop walks over the owners of the gradients: each pass clears those of another one."""
    depth, block = loop
    fact = program.tree.functions[clear.way[depth][0]].fact
    each = {b.target for b in fact.binds if b.form == "for" and b.block == block}
    return any(p in each for p in prefixes(program.call(*clear.way[depth]).name)) or any(p in each for p in prefixes(clear.who))


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


def _unconditional(program: Program, event: Event, loop: tuple[int, int]) -> bool:
    return next(steps.branches(program, event, loop), None) is None and steps.loops(program, event)[:1] == [loop]
