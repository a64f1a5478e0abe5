"""Is one record handed over several times, because a loop of attempts does not end at the first that succeeds? (GYR316)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Function
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.handler_end import leaving, under
from gyrecheck.verdict.shapes.suspect import Suspect, at_call

_PUTS = ("carrier.write", "buffer.put")
_NAMES = frozenset({"put", "send", "push", "publish", "enqueue", "put_sample", "submit", "append", "add", "put_nowait"})


def put_again(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Puts of a record made outside, tried in a counted loop with a handler, and no way out after success."""
    for number in program.calling(_NAMES):
        fact = program.functions[number].fact
        for at, call in enumerate(fact.calls):
            loop = program.loop_of(number, call.block)
            if loop < 0 or fact.blocks[call.block].kind != "try" or fact.blocks[call.block].parent != loop:
                continue
            if (
                _hands_over(program, number, at)
                and _attempts(fact, loop)
                and not _ends(fact, loop, call.block)
                and _made_outside(fact, at, loop)
            ):
                yield at_call(
                    program, number, at, "GYR316", f"`{readable(call)}` hands the same record over on every attempt: nothing ends the loop when "
                        "it has succeeded",
                    evidence=(program.place(number, fact.blocks[loop].line, "the attempts", "because"),),
                    hint="return or break right after the put", side="handoff",
                )  # fmt: skip


def _hands_over(program: Program, number: int, at: int) -> bool:
    known = program.known_role(number, at)
    call = program.call(number, at)
    return bool(call.args) and ((known is not None and known[0] in _PUTS) or call.name.rpartition(".")[2] in _NAMES - {"append", "add"})


def _attempts(fact: Function, loop: int) -> bool:
    """A loop that only counts."""
    block = fact.blocks[loop]
    return block.kind == "for" and any(isinstance(a, int) and fact.calls[a].name == "range" for a in block.detail)


def _ends(fact: Function, loop: int, held: int) -> bool:
    """A way out of the loop that no handler takes, a test in it, or no handler that goes on."""
    handlers = [i for i, b in enumerate(fact.blocks) if b.kind == "except" and b.link == held]
    if not handlers or all(leaving(fact, h) & {"return", "break", "raise"} for h in handlers):
        return True
    if any(b.kind in {"then", "while"} and under(fact, i, loop) for i, b in enumerate(fact.blocks)):
        return True
    out = [e for e in fact.exits if e.kind in {"return", "break"} and under(fact, e.block, loop)]
    return any(not any(under(fact, e.block, h) for h in handlers) for e in out)


def _made_outside(fact: Function, at: int, loop: int) -> bool:
    """What is put is a name that the loop does not bind."""
    own = {b.target.split(".")[0].split("[")[0] for b in fact.binds if under(fact, b.block, loop)}
    atoms = [a for arg in fact.calls[at].args for a in arg]
    names = {str(a).split(".")[0].split("[")[0] for a in atoms if isinstance(a, str) and not a.startswith("=")}
    return bool(names) and not names & own and not any(isinstance(a, int) for a in atoms)
