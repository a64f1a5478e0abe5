"""Is a batch cut from the front of a list, and the list emptied with what is behind the cut? (GYR313).

Only where several records come in at once: one that grows by one and is emptied at its limit holds nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Bind, Call, Function
from gyrecheck.model.finding import Severity
from gyrecheck.program.program import LEARNING, Program
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, at_bind, at_call, in_tests

_HELD = ("batch", "rows", "row", "sample", "traj", "rollout", "episode", "fragment", "group", "pending", "transition", "experience", "record", "buffer",
         "step", "inbox", "ready", "done", "finished", "completed", "collected")  # fmt: skip


def remainder_lost(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every emptying of a list of records, right behind a cut of its front, that keeps nothing of it."""
    for fn in program.functions:
        fact = fn.fact
        if in_tests(program, fn.number) or "evaluation" in program.region(fn.number):
            continue
        for bind in fact.binds:
            if bind.form != "=" or len(bind.value) != 1 or not isinstance(bind.value[0], str) or not bind.value[0].endswith("[]"):
                continue
            held = bind.value[0][:-2]
            if bind.target.startswith(held) or not any(word in held.lower() for word in _HELD) or not _a_batch(bind):
                continue
            emptied = _emptied(fact, held, bind)
            if emptied is None or not _compared(program, fn.number, held) or _again(fact, held, bind):
                continue
            if not _grows_at_once(program, fn.number, held) or not _trained_on(program, fn.number):
                continue
            cut = program.place(fn.number, bind.line, "only the front of it goes on", "because", bind.column + 1)
            words = f"`{held}` is emptied with what is behind the cut: those records are lost without a count"
            hint = "keep the rest: `del rows[:n]`, or assign the slice behind the cut"
            if isinstance(emptied, Bind):
                yield at_bind(fn.number, emptied, "GYR313", words, evidence=(cut,), hint=hint, side="handoff", at_most=Severity.WARNING)
            else:
                at = fact.calls.index(emptied)
                yield at_call(program, fn.number, at, "GYR313", words, evidence=(cut,), hint=hint, side="handoff", at_most=Severity.WARNING)


def _a_batch(bind: Bind) -> bool:
    """The target's name says several: `batch`, `rows`, `chosen`; an item picked by an index is one."""
    leaf = bind.target.rpartition(".")[2].lower()
    return leaf.endswith("s") or any(
        word in leaf for word in ("batch", "group", "chunk", "front", "head", "taken", "chosen", "out", "data")
    )


def _emptied(fact: Function, held: str, cut: Bind) -> Call | Bind | None:
    for call in fact.calls:
        if call.name == f"{held}.clear" and call.order > cut.order and call.block == cut.block:
            return call
    for bind in fact.binds:
        if (
            bind.target == held
            and bind.order > cut.order
            and bind.block == cut.block
            and bind.form == "="
            and not bind.value
            and bind.op == "[]"
        ):
            return bind
    return None


def _again(fact: Function, held: str, cut: Bind) -> bool:
    """The list is read once more: the rest is kept, counted or told."""
    seen = [a for b in fact.binds if b is not cut and b.order > cut.order for a in b.value]
    seen += [a for c in fact.calls if c.order > cut.order for arg in (*c.args, *(v for _, v in c.keywords)) for a in arg]
    return any(isinstance(a, str) and (a == held or a.startswith(f"{held}[")) for a in seen)


def _compared(program: Program, number: int, held: str) -> bool:
    """Somewhere its length is asked for being enough, not for being exactly so much."""
    tail = held.rpartition(".")[2]
    for fn in program.tree.functions_of(program.functions[number].module):
        for call in fn.fact.calls:
            if call.name != "len" or not call.args or not any(isinstance(a, str) and a.rpartition(".")[2] == tail for a in call.args[0]):
                continue
            at = fn.fact.calls.index(call)
            tests = [b for b in fn.fact.blocks if at in b.detail]
            if any("==" in b.op for b in tests):
                return False
            if any(op in b.op for b in tests for op in ("<", ">")) or (not tests and any(e.kind == "return" for e in fn.fact.exits)):
                return True
    return False


def _grows_at_once(program: Program, number: int, held: str) -> bool:
    tail = held.rpartition(".")[2]
    for fn in program.tree.functions_of(program.functions[number].module):
        if any(c.name.rpartition(".")[2] == "extend" and c.name.split(".")[-2:-1] == [tail] for c in fn.fact.calls):
            return True
        if any(b.form == "+=" and b.target.rpartition(".")[2] == tail for b in fn.fact.binds):
            return True
    return False


def _trained_on(program: Program, number: int) -> bool:
    return any(program.has(f.number, *LEARNING, full=True) for f in program.tree.functions_of(program.functions[number].module))
