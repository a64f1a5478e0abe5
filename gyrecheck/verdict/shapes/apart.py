"""Which functions run beside the others: in a thread, process or task that goes on by itself."""

from __future__ import annotations

from gyrecheck.program.program import Program

_SPAWNS = frozenset({"create_task", "ensure_future", "run_coroutine_threadsafe", "start_soon"})


def running_apart(program: Program) -> set[int]:
    """Everything that runs in a thread, process or task that goes on by itself: one with a loop of its own."""
    open_: list[int] = []
    for number in sorted({*program.doing("thread.start", hints=True), *program.calling(_SPAWNS)}):
        fact = program.functions[number].fact
        starts = {at for at, _ in program.own(number, "thread.start", hints=True)}
        starts |= {at for at, call in enumerate(fact.calls) if call.name.rpartition(".")[2] in _SPAWNS}
        begun = {a for at in starts for arg in fact.calls[at].args for a in arg if isinstance(a, int)}
        open_ += [e.callee for e in program.calls.edges[number] if e.call in begun or (e.call in starts and e.kind == "passed")]
    open_ = [n for n in open_ if any(b.kind in {"while", "for"} for b in program.functions[n].fact.blocks)]
    out: set[int] = set()
    while open_:
        number = open_.pop()
        if number not in out:
            out.add(number)
            open_ += [e.callee for e in program.calls.edges[number] if e.kind != "name"]
    return out
