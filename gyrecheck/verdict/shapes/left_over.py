"""Do the gradients of a pass that is skipped run into the next one? (GYR206)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.program.program import Program, readable
from gyrecheck.verdict.shapes import steps
from gyrecheck.verdict.shapes.steps import BACK, CLEAR, STEP, Event
from gyrecheck.verdict.shapes.suspect import Suspect


def left_over(program: Program, root: int, found: list[Event]) -> Iterator[Suspect]:
    """`continue` after the backward pass, past the clearing that stands at the end: what was added stays for the next pass."""
    fact = program.tree.functions[root].fact
    here = [e for e in found if e.way[0][0] == root]
    for leave in fact.exits:
        loop = program.loop_of(root, leave.block)
        if leave.kind != "continue" or loop < 0 or fact.blocks[leave.block].kind != "then" or _window(program, root, leave.block):
            continue
        inside = [(e, program.call(*e.way[0])) for e in here if program.loop_of(root, program.call(*e.way[0]).block) == loop]
        added = [e for e, c in inside if e.role == BACK and c.order < leave.order and program.within(root, leave.block, c.block)]
        cleared = [(e, c) for e, c in inside if e.role == CLEAR]
        taken = [e for e, c in inside if e.role == STEP and c.order > leave.order]
        if not added or not taken or not cleared or any(c.order < leave.order for _, c in cleared):
            continue
        if any(program.within(root, program.call(*e.way[0]).block, leave.block) for e in here if e.role == CLEAR):
            continue
        yield Suspect(
            "GYR206", root, leave.line, leave.column, "this skips the step and the clearing: the gradients of the pass are added to those of "
                "the next one",
            leave.line, leave.column + 8,
            evidence=(steps.evidence(program, added[-1], "gradients were added here"),
                      steps.evidence(program, cleared[0][0], "and are cleared only here")),
            hint=f"clear before the continue: {readable(program.call(*cleared[0][0].place))}()", side="training", key="continue",
        )  # fmt: skip


def _window(program: Program, number: int, block: int) -> bool:
    """The branch waits for a full window of accumulated passes."""
    held = program.tree.functions[number].fact.blocks[block]
    words = [str(a) for a in held.detail if isinstance(a, str)] + [program.call(number, a).name for a in held.detail if isinstance(a, int)]
    return "%" in held.op or "<" in held.op or any(program.words.has("cadence", w) for w in words)
