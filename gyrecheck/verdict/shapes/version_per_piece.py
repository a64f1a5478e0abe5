"""Does the version rise with every piece of the weights? (GYR412)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Bind
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, at_bind


def version_per_piece(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """`load(piece); self.version += 1`, called for each bucket of one set of weights."""
    for number in program.doing("weights.load", hints=True):
        fact = program.functions[number].fact
        rises = [
            b for b in fact.binds if b.form == "+=" and program.words.field(b.target.rpartition(".")[2]) == "version" and "." in b.target
        ]
        if not rises or any(b.kind in {"then", "else"} for b in (fact.blocks[r.block] for r in rises)):
            continue
        for edge in program.callers[number]:
            if edge.call < 0:
                continue
            call = program.call(edge.caller, edge.call)
            piece = _piece(program, edge.caller, edge.call)
            if piece is None:
                continue
            yield at_bind(
                number, rises[0], "GYR412", f"`{rises[0].target}` rises with every `{piece.target}`, so it counts calls and not the trainer's versions",
                evidence=(program.place(edge.caller, call.line, f"one set of weights comes in several calls: {readable(call)}", "because", call.column + 1),),
                hint="set the trainer's version once, after the last piece", side="sampling",
            )  # fmt: skip
            break


def _piece(program: Program, caller: int, at: int) -> Bind | None:
    """The loop variable, named as a part of the weights, that the call hands over."""
    fact = program.functions[caller].fact
    call = fact.calls[at]
    given = {a for arg in (*call.args, *(v for _, v in call.keywords)) for a in arg if isinstance(a, str)}
    for bind in fact.binds:
        if (
            bind.form == "for"
            and bind.target in given
            and program.words.has("pieces", bind.target)
            and program.loop_of(caller, call.block) >= 0
        ):
            return bind
    return None
