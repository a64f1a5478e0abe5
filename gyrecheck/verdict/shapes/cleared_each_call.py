"""Does a method that is given one micro-batch a call clear the gradients each time, and step only when it has counted enough? (GYR207).

The passes are the calls, so no loop shows it: what shows it is a counter of the object that the method moves on, and that the step waits for.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.finding import Confidence
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.steps import BACK, CLEAR, STEP
from gyrecheck.verdict.shapes.suspect import Suspect, at_call, in_tests

_BRANCHES = frozenset({"then", "else", "except", "case"})


def cleared_each_call(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every clearing at the top of a method whose own step waits for a count of its calls."""
    for number in program.doing(STEP):
        fn = program.functions[number]
        fact = fn.fact
        if fn.cls < 0 or in_tests(program, number):
            continue
        counters = {b.target for b in fact.binds if b.form == "+=" and b.op == "+" and b.block == 0 and b.target.startswith("self.")}
        counters = {c for c in counters if any(b.target == c and b.form == "+=" and b.value == ("=1",) for b in fact.binds)}
        taken = [fact.calls[at] for at, _ in program.own(number, STEP)]
        if any(all(fact.blocks[b].kind not in _BRANCHES for b in program.blocks_up(number, step.block)) for step in taken) or _steps_below(
            program, number
        ):
            continue  # another one steps every time: what is cleared is a delayed update's, on purpose
        for step in taken:
            block = fact.blocks[step.block]
            if block.kind != "then" or block.parent != 0 or not counters & set(block.detail) or "not" in block.op:
                continue
            passes = {i for i, _ in program.own(number, BACK)} | {
                e.call for e in program.calls.edges[number] if e.call >= 0 and program.has(e.callee, BACK)
            }
            if any(program.within(number, fact.calls[i].block, step.block) and fact.calls[i].order < step.order for i in passes):
                continue  # what this step uses is made on its own branch
            owner = step.name.rpartition(".")[0]
            clears = [(i, fact.calls[i]) for i, _ in program.own(number, CLEAR) if fact.calls[i].name.rpartition(".")[0] == owner]
            backs = [fact.calls[i] for i, _ in program.own(number, BACK) if fact.calls[i].block == 0]
            first = next(((i, c) for i, c in clears if c.block == 0 and any(c.order < b.order < step.order for b in backs)), None)
            if first is None or program.loop_of(number, first[1].block) >= 0:
                continue
            back = next(b for b in backs if first[1].order < b.order < step.order)
            yield at_call(
                program, number, first[0], "GYR207", f"`{readable(first[1])}` clears with every call, the optimizer steps only when enough are "
                    "counted: the other calls are lost",
                evidence=(program.place(number, block.line, "the step happens only when this holds", "because"),
                          program.place(number, back.line, f"these gradients are cleared: {readable(back)}", "because", back.column + 1)),
                side="training", hint="clear right after the step, on its branch",
            )  # fmt: skip
            break


def _steps_below(program: Program, number: int) -> bool:
    """A helper that is called every time steps an optimizer, too."""
    calls = program.functions[number].fact.calls
    return any(
        e.call >= 0 and calls[e.call].block == 0 and e.confidence is not Confidence.HINT and program.has(e.callee, STEP)
        for e in program.calls.edges[number]
    )
