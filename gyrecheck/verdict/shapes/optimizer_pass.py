"""Which clearings, steps and branches of one pass belong to one optimizer.

`rhythm` is the branch that lets an event happen on some passes only; `wrapped` tells optimizers that clear only when they step.
"""

from __future__ import annotations

from gyrecheck.model.facts import Block
from gyrecheck.program.program import Program, readable
from gyrecheck.verdict.shapes import steps
from gyrecheck.verdict.shapes.steps import CLEAR, Event


def rhythm(program: Program, event: Event, loop: tuple[int, int]) -> tuple[int, Block] | None:
    """The branch that lets an event happen only on some passes of the loop: a counter, or the engine's own signal."""
    for number, _, block in steps.branches(program, event, loop):
        words = [str(a).rpartition(".")[2].lower() for a in block.detail if isinstance(a, str) and not a.startswith("=")]
        calls = [program.call(number, a).name.rpartition(".")[2].lower() for a in block.detail if isinstance(a, int)]
        if block.kind == "then" and ("%" in block.op or any(program.words.has("cadence", w) for w in (*words, *calls))):
            return number, block
    return None


def wrapped(program: Program, clear: Event) -> bool:
    """An optimizer wrapped by its library clears only when it steps."""
    if not clear.optimizer and clear.role == CLEAR:
        return False
    number = clear.place[0]
    who = program.call(*clear.place).name.rpartition(".")[0]
    names = (number, *(e.caller for e in program.callers[number]))
    for at in names:
        for bind in program.tree.functions[at].fact.binds:
            if tail(bind.target) == tail(who) and any(
                isinstance(a, int) and program.call(at, a).name.endswith(".prepare") for a in bind.value
            ):
                return True
    return False


def concerns(clear: Event, step: Event) -> bool:
    """A clearing of the same optimizer, of a module (whose parameters may be the optimizer's), or of something unknown."""
    if exclusive(clear, step):
        return False
    if not clear.optimizer or clear.who == step.who:
        return True
    plain = clear.who.count(".") + step.who.count(".") <= 2 and (clear.who.count(".") < 2 > step.who.count("."))
    return (plain and tail(clear.who) == tail(step.who)) or "[" in clear.who


def exclusive(one: Event, other: Event) -> bool:
    """Reached by one call that runs this method or that of another class, never both."""
    first = next(((a, b) for a, b in zip(one.way, other.way, strict=False) if a != b), None)
    return first is not None and first[0][0] != first[1][0]


def tail(path: str) -> str:
    """The last component of a dotted path."""
    return path.rpartition(".")[2]


def way(program: Program, event: Event) -> list:  # type: ignore[type-arg]
    """The calls through which an event is reached, as evidence."""
    return [
        program.place(
            n, program.call(n, c).line, f"{program.name(n)} calls {readable(program.call(n, c))}", "through", program.call(n, c).column + 1
        )
        for n, c in event.way[:-1]
    ]
