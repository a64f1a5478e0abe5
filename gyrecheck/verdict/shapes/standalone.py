"""Has each side an entry point that runs alone? (GYR301) Synchronous code gets one note; declared decoupled, it is an error."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.finding import Topology
from gyrecheck.program.program import ACTING, LEARNING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect


def standalone(program: Program, layout: Layout) -> Iterator[Suspect]:
    """One suspect for each group of files in which both sides meet in one program."""
    for group in layout.groups:
        if group.meeting < 0 or group.topology is Topology.COLOCATED:
            continue
        meeting = _innermost(program, group.meeting)
        fact = program.tree.functions[meeting].fact
        line, column = (fact.line, fact.column) if fact.name != "<module>" else (1, 0)
        evidence = []
        words = []
        for number, at in group.places:
            call = program.call(number, at)
            role = program.known_role(number, at)
            words.append(role[0] if role is not None else readable(call))
            evidence.append(program.place(number, call.line, f"{words[-1]}: {readable(call)}", "because", call.column + 1))
        kind = group.topology.value
        what = " and ".join(words)
        where = program.path(meeting)
        message = f"{where} samples and trains in one program ({kind}): {what} meet in `{program.name(meeting)}`"
        hint = "nothing to do for on-policy code; --topology decoupled applies the boundary rules"
        if group.topology is Topology.DECOUPLED:
            hint = "give each side a main of its own whose only interface is the carrier"
        yield Suspect("GYR301", meeting, line, column, message, evidence=tuple(evidence), hint=hint, key="meeting")


def _innermost(program: Program, meeting: int) -> int:
    """The function that a module body only starts: the one it calls that reaches both sides by itself."""
    while program.tree.functions[meeting].fact.name == "<module>":
        both = {e.callee for e in program.calls.edges[meeting] if e.call >= 0 and _reaches_both(program, e.callee)}
        if program.own(meeting, *ACTING, *LEARNING) or len(both) != 1:
            break
        meeting = both.pop()
    return meeting


def _reaches_both(program: Program, number: int) -> bool:
    return all(program.has(number, *roles, full=True) for roles in (ACTING, LEARNING))
