"""Does a learning-rate schedule advance with episodes, or with evaluations? (GYR205).

What `schedule` asks of loops that it follows is asked here of two places where no optimizer steps at all: a branch of the loop that steps
the environment, and a function that measures.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.finding import Confidence
from gyrecheck.program.program import ACTING, LEARNING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.steps import SCHEDULE, STEP
from gyrecheck.verdict.shapes.suspect import Suspect, at_call, in_tests

_HINT = "step the schedule where the optimizer steps"


def schedule_beside(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every schedule that is advanced where episodes end in a sampling loop, or where the policy is only measured."""
    for number in program.doing(SCHEDULE):
        if in_tests(program, number):
            continue
        fact = program.functions[number].fact
        acting = [fact.calls[at] for at, _ in program.own(number, *ACTING)]
        for at, _ in program.own(number, SCHEDULE):
            call = fact.calls[at]
            loop = program.loop_of(number, call.block)
            beside = next((c for c in acting if loop >= 0 and program.loop_of(number, c.block) == loop), None)
            if beside is not None and call.block != loop and not _learns_in(program, number, loop):
                yield at_call(
                    program, number, at, "GYR205", f"`{readable(call)}` advances with what happens in the loop of `{readable(beside)}`, in which no "
                        "optimizer steps",
                    evidence=(program.place(number, beside.line, f"samples in the same loop: {readable(beside)}", "because", beside.column + 1),),
                    side="training", hint=_HINT,
                )  # fmt: skip
            elif acting and "evaluation" in program.region(number) and not program.has(number, *LEARNING, full=True):
                yield at_call(
                    program, number, at, "GYR205", f"`{readable(call)}` advances with every evaluation, not with the train steps",
                    evidence=(program.place(number, acting[0].line, f"it measures: {readable(acting[0])}", "because", acting[0].column + 1),),
                    side="training", hint=_HINT,
                )  # fmt: skip


def _learns_in(program: Program, number: int, loop: int) -> bool:
    """An optimizer steps within the loop, here or in what is called there."""
    fact = program.functions[number].fact
    own = {at for at, _ in program.own(number, STEP, "scaler.step", *LEARNING)}
    own |= {
        e.call for e in program.calls.edges[number] if e.confidence is not Confidence.HINT and program.has(e.callee, *LEARNING, full=True)
    }
    return any(at >= 0 and program.within(number, fact.calls[at].block, loop) for at in own)
