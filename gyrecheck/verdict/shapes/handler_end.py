"""What an exception handler does before it is left: raises, counts, marks the record, says it, or lets the sample go."""

from __future__ import annotations

import re

from gyrecheck.model.facts import Function
from gyrecheck.program.program import Program

_ENDS = re.compile(r"(stop|shutdown|shut_down|exit|abort|fail|error|cancel|quit)\w*\.set$")


def first_column(program: Program, number: int, at: int) -> int:
    """Where the handler's keyword stands, by its own statements."""
    fact = program.tree.functions[number].fact
    inner = (
        [c.column for c in fact.calls if c.block == at]
        + [b.column for b in fact.binds if b.block == at and b.column]
        + [e.column for e in fact.exits if e.block == at]
    )
    return max(min(inner, default=4) - 4, 0)


def leaving(fact: Function, at: int) -> set[str]:
    """The ways a handler's own statements leave it."""
    inside = {at} | {i for i, b in enumerate(fact.blocks) if under(fact, i, at)}
    out = {e.kind for e in fact.exits if e.block == at and e.kind != "yield"}
    raised = {e.kind for e in fact.exits if e.block in inside and e.kind == "raise"}
    return out | raised


def under(fact: Function, block: int, outer: int) -> bool:
    """Whether a block lies in `outer` or is it."""
    while block >= 0:
        if block == outer:
            return True
        block = fact.blocks[block].parent
    return False


def marked(program: Program, fact: Function, at: int) -> bool:
    """The handler writes a flag that tells the record apart."""
    return any(
        under(fact, b.block, at) and b.form == "=" and program.words.has("marks",
        b.target) and not program.words.field(last_name(b.target)) for b in fact.binds
    )  # fmt: skip


def counts(program: Program, number: int, at: int) -> bool:
    """The handler adds to a count, or calls something that counts."""
    fact = program.tree.functions[number].fact
    for bind in fact.binds:
        if under(fact, bind.block, at) and bind.form == "+=":
            return True
    for call in fact.calls:
        if under(fact, call.block, at):
            said = [str(a) for arg in call.args for a in arg if isinstance(a, str)]
            plain = call.name.rpartition(".")[2] not in {"debug", "info", "print", "log"}
            if (
                plain
                and any(program.words.has("counts", w) for w in (call.name, *[s for s in said if not s.startswith("=")]))
                and not call.name.startswith(("log", "self.log"))
            ):
                return True
    return False


def loud(program: Program, number: int, at: int) -> bool:
    """The handler says it where nobody can miss it, or ends the run: `shutdown_event.set()`."""
    fact = program.tree.functions[number].fact
    return any(
        under(fact, c.block, at) and (c.name.rpartition(".")[2] in program.words["loud"] or _ENDS.search(c.name.lower()) is not None)
        for c in fact.calls
    )


def lets_go(program: Program, number: int, at: int, leaves: set[str]) -> str | None:
    """How the sample vanishes: `continue` of a loop, or a return of nothing; a returned value is the caller's to judge."""
    fact = program.tree.functions[number].fact
    if "continue" in leaves:
        return "continue"
    if "break" in leaves:
        return None
    for leave in fact.exits:
        if leave.kind == "return" and leave.block == at:
            return "return" if not leave.items and "reward" not in program.region(number) else None
    return None


def last_name(path: str) -> str:
    """The last name or key of a path: `a.b.c` -> `c`, `a[k]` -> `k`."""
    return path.rstrip("]").rpartition("[")[2].rpartition(".")[2] if path.endswith("]") else path.rpartition(".")[2]


def ends_or_measures(program: Program, number: int, at: int, call: int, says: frozenset[str]) -> bool:
    """The handler says it, and what failed is an evaluation, or the whole loop of a worker, which ends with it."""
    fact = program.tree.functions[number].fact
    if not any(under(fact, c.block, at) and last_name(c.name) in says for c in fact.calls):
        return False
    if any(e.call == call and "evaluation" in program.region(e.callee) for e in program.calls.edges[number]):
        return True
    loop, end = program.loop_of(number, fact.calls[call].block), fact.blocks[at].end_order
    whole = loop >= 0 and program.within(number, loop, fact.blocks[at].link) and program.loop_of(number, at) < 0
    later = [c for c in fact.calls if c.order > end and not _in_finally(fact, c.block)]
    return whole and fact.blocks[loop].kind == "while" and not later and not any(e.kind == "return" and e.order > end for e in fact.exits)


def _in_finally(fact: Function, block: int) -> bool:
    while block >= 0:
        if fact.blocks[block].kind == "finally":
            return True
        block = fact.blocks[block].parent
    return False
