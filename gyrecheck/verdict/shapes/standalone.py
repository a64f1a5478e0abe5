"""Has each side an entry point that runs alone? (GYR301) Synchronous code gets one note; declared decoupled, it is an error."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.finding import Topology
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect


def standalone(program: Program, layout: Layout) -> Iterator[Suspect]:
    """One suspect for each group of files in which both sides meet in one program."""
    for group in layout.groups:
        if group.meeting < 0 or group.topology is Topology.COLOCATED:
            continue
        fact = program.tree.functions[group.meeting].fact
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
        where = program.path(group.meeting)
        message = f"{where} samples and trains in one program ({kind}): {what} meet in `{program.name(group.meeting)}`"
        hint = "nothing to do for on-policy code; --topology decoupled applies the boundary rules"
        if group.topology is Topology.DECOUPLED:
            hint = "give each side a main of its own whose only interface is the carrier"
        yield Suspect("GYR301", group.meeting, line, column, message, evidence=tuple(evidence), hint=hint, key="meeting")
