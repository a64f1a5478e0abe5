"""Does an early stop leave the passes over one batch, or only the loop over its parts? (GYR217)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.finding import Severity
from gyrecheck.program.program import ACTING, Program
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.handler_end import under
from gyrecheck.verdict.shapes.steps import BACK
from gyrecheck.verdict.shapes.suspect import Suspect


def early_stop(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """`break` on the KL in the inner of two loops, and no way out of the outer one."""
    for number in program.doing(BACK):
        fact = program.functions[number].fact
        for leave in fact.exits:
            loops = program.loops_of(number, leave.block)
            if (
                leave.kind != "break"
                or len(loops) < 2
                or fact.blocks[leave.block].kind != "then"
                or not _on_kl(program, number, leave.block)
            ):
                continue
            inner, outer = loops[0], loops[1]
            if not any(program.loop_of(number, program.call(number, at).block) == inner for at, _ in program.own(number, BACK)):
                continue  # the loop that is left holds a loop over the parts: it is the passes themselves
            if any(under(fact, program.call(number, at).block, outer) for at, _ in program.own(number, *ACTING)):
                continue  # the next turn of the outer loop has a new batch
            flagged = any(under(fact, b.block, leave.block) for b in fact.binds)
            out = [
                e
                for e in fact.exits
                if e.kind in {"break", "return"} and e is not leave and under(fact, e.block, outer) and not under(fact, e.block, inner)
            ]
            if flagged or out or not _counts(program, number, outer):
                continue
            yield Suspect(
                "GYR217", number, leave.line, leave.column, "this stops the loop over the parts only: the next pass over the same batch begins all "
                    "the same",
                leave.line, leave.column + 5,
                evidence=(program.place(number, fact.blocks[outer].line, "the passes go on here", "because"),),
                hint="set a flag and leave the outer loop as well", side="training", key="break", at_most=Severity.NOTE,
            )  # fmt: skip


def _on_kl(program: Program, number: int, block: int) -> bool:
    words = [str(a).rpartition(".")[2].lower() for a in program.functions[number].fact.blocks[block].detail if isinstance(a, str)]
    return any("kl" in w.split("_") or w.startswith("kl") for w in words)


def _counts(program: Program, number: int, loop: int) -> bool:
    """The outer loop counts passes."""
    block = program.functions[number].fact.blocks[loop]
    return any(isinstance(a, int) and program.call(number, a).name in {"range", "trange"} for a in block.detail)
