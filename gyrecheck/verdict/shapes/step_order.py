"""Do clipping, optimizer and schedule follow one another in the right order within one pass? (GYR210, GYR211, GYR213, GYR221).

Clipping works between the backward pass and the step, on gradients that are no longer scaled; a schedule advances after the optimizer.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes import steps
from gyrecheck.verdict.shapes.optimizer_pass import rhythm
from gyrecheck.verdict.shapes.steps import BACK, CLEAR, CLIP, SCHEDULE, STEP, Event
from gyrecheck.verdict.shapes.suspect import Suspect, at_call


def step_order(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every clip and every schedule step that stands at the wrong place, once."""
    seen: set[tuple[str, int, int]] = set()
    for fn in program.functions:
        table = program.full.of[fn.number]
        if (STEP not in table and "scaler.step" not in table) or BACK not in table or fn.fact.name.startswith("test"):
            continue
        found = steps.events(program, fn.number)
        for suspect in (*_clips(program, found), *_schedules(program, found), *_leftover(program, found)):
            key = (suspect.code, suspect.function, suspect.line)
            if key not in seen:
                seen.add(key)
                yield suspect


def _clips(program: Program, found: list[Event]) -> Iterator[Suspect]:
    for at, clip in enumerate(found):
        if clip.role != CLIP or _unscales(program, clip):
            continue
        earlier = [e for e in found[:at] if _shares(program, e, clip)]
        later = [e for e in found[at + 1 :] if _shares(program, e, clip)]
        last = next((e for e in reversed(earlier) if e.role in {BACK, STEP}), None)
        following = next((e for e in later if e.role in {BACK, STEP}), None)
        call = readable(program.call(*clip.place))
        if last is not None and last.role == STEP and (following is None or following.role == BACK) and _always(program, last, clip):
            if any(e.role == BACK for e in earlier) and not _next_pass(program, earlier, clip):
                yield at_call(
                    program, *clip.place, "GYR221", f"`{call}` clips after `{readable(program.call(*last.place))}` has used the gradients",
                    evidence=(steps.evidence(program, last, "the step that should have been limited"),), side="training",
                    hint="clip between backward() and the optimizer's step",
                )  # fmt: skip
        elif last is None and following is not None and following.role == BACK and any(e.role == STEP for e in later):
            if _always(program, clip, following) and _always(program, following, clip):
                yield at_call(
                    program, *clip.place, "GYR221", f"`{call}` clips before `{readable(program.call(*following.place))}`: "
                        "the gradients of this step do not exist yet",
                    evidence=(steps.evidence(program, following, "the gradients are made here"),), side="training",
                    hint="clip between backward() and the optimizer's step",
                )  # fmt: skip
        elif following is not None and _scaled(program, following) and not any(_unscales(program, e) for e in earlier):
            target = program.resolver.callee(*clip.place)
            if target is not None and target.kind == "ext" and str(target.ref).startswith("torch."):
                yield at_call(
                    program, *clip.place, "GYR211", f"`{call}` clips gradients that are still scaled: no `unscale_` before it",
                    evidence=(steps.evidence(program, following, "the scaler divides by its scale only here"),), side="training",
                    hint="call scaler.unscale_(optimizer) before clipping",
                )  # fmt: skip


def _unscales(program: Program, event: Event) -> bool:
    return event.role == CLIP and program.call(*event.place).name.rpartition(".")[2] == "unscale_"


def _scaled(program: Program, step: Event) -> bool:
    return step.role == STEP and program.role(*step.place) == "scaler.step"


def _next_pass(program: Program, earlier: list[Event], clip: Event) -> bool:
    """A backward pass in a loop of its own before the clip: gradients of several passes, stepped by more than one optimizer."""
    del program
    return len({e.who for e in earlier if e.role == STEP}) > 1 and not clip.who


def _shares(program: Program, event: Event, like: Event) -> bool:
    """In the same pass: inside the innermost loop around `like`, or anywhere when there is none."""
    around = steps.loops(program, like)
    return not around or steps.inside(program, event, like, around[0])


def _always(program: Program, first: Event, second: Event) -> bool:
    """Wherever `second` runs, `first` runs too: no branch of its own."""
    own = {(n, b) for n, b, _ in steps.branches(program, second)}
    return all((n, b) in own for n, b, _ in steps.branches(program, first))


def _schedules(program: Program, found: list[Event]) -> Iterator[Suspect]:
    """The schedule advances, and only then the optimizer steps, in one pass: the schedule's first value is never used."""
    taken = [e for e in found if e.role == STEP]
    for event in (e for e in found if e.role == SCHEDULE):
        call = program.call(*event.place)
        around = steps.loops(program, event)
        if call.args or call.keywords or len({e.who for e in taken}) != 1:
            continue
        near = [e for e in taken if steps.loops(program, e) == around and _always(program, e, event) and _always(program, event, e)]
        if near and all(steps.before(program, event, e) for e in taken if _shares(program, e, event)):
            yield at_call(
                program, *event.place, "GYR210", f"`{readable(call)}` advances before `{readable(program.call(*near[0].place))}`: "
                    "the first value of the schedule is skipped",
                evidence=(steps.evidence(program, near[0], "the optimizer steps after it"),), side="training",
                hint="step the optimizer first, then the schedule",
            )  # fmt: skip


def _leftover(program: Program, found: list[Event]) -> Iterator[Suspect]:
    """The optimizer steps on every n-th pass, and what the last passes added is cleared at the start of the next round, unused."""
    for step in (e for e in found if e.role == STEP):
        around = steps.loops(program, step)
        branch = rhythm(program, step, around[0]) if len(around) > 1 else None
        if branch is None or branch[1].op.replace("+", "").replace("-", "") != "%==":
            continue
        loop, outer = around[0], around[1]
        number = step.way[loop[0]][0]
        head = program.tree.functions[number].fact.blocks[loop[1]]
        backs = [
            e
            for e in found
            if e.role == BACK and steps.inside(program, e, step, loop) and not any(True for _ in steps.branches(program, e, loop))
        ]
        others = [e for e in found if e.role == STEP and e is not step and steps.inside(program, e, step, outer)]
        wiped = [
            e for e in found if e.role == CLEAR and steps.inside(program, e, step, outer) and not steps.inside(program, e, step, loop)
            and loop[0] == outer[0] == len(e.way) - 1 and program.call(*e.place).order < head.order
        ]  # fmt: skip
        if not backs or others or not wiped:
            continue
        where, block = branch
        yield at_call(
            program, *step.place, "GYR213", f"`{readable(program.call(*step.place))}` runs on full windows only: what the last passes "
                "of a round add is cleared unused",
            evidence=(program.place(where, block.line, "the step happens only when this holds", "because"),
                      steps.evidence(program, wiped[0], "the rest is cleared here")),
            side="training", hint="step once more after the loop when a window is left open, or on the last pass",
        )  # fmt: skip
