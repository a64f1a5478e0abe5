"""Do the new weights reach the acting side only when something is logged or saved? (GYR406)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.finding import Severity
from gyrecheck.program.program import ACTING, LEARNING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, at_call

_MOVES = ("weights.publish", "weights.load")
_OTHER = ("eval", "test", "best", "target", "targ", "ema", "ref")


def unrelated_flag(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Weights that are handed over on a branch whose condition speaks of logging or saving, and nowhere else."""
    for number in program.doing(*_MOVES, hints=True):
        fn = program.functions[number]
        if "evaluation" in program.region(number) or fn.fact.name.startswith("test"):
            continue
        if not program.has(number, *LEARNING, full=True) or not program.has(number, *ACTING, full=True):
            continue
        moves = program.own(number, *_MOVES, hints=True)
        behind = {at: _branch(program, number, at) for at, _ in moves}
        for at, role in moves:
            call = fn.fact.calls[at]
            receiver = call.name.rpartition(".")[0]
            if behind[at] < 0 or program.loop_of(number, call.block) < 0 or any(w in receiver.lower() for w in _OTHER):
                continue
            same = [m for m in behind if fn.fact.calls[m].name.rpartition(".")[0] == receiver and behind[m] < 0]
            if any(program.loop_of(number, fn.fact.calls[m].block) >= 0 for m in same) or not _acts(program, number, receiver, role):
                continue
            head = fn.fact.blocks[behind[at]]
            yield at_call(
                program, number, at, "GYR406", f"`{readable(call)}` hands the new weights over only when the branch at line {head.line} is "
                    "taken, which is about logging or saving",
                evidence=(program.place(number, head.line, "only when this holds", "because"),),
                hint="hand the weights over after each update, outside that branch", side="handoff", at_most=Severity.WARNING,
            )  # fmt: skip


def _branch(program: Program, number: int, at: int) -> int:
    """The branch around a call whose condition is about telling or keeping, or -1."""
    fact = program.tree.functions[number].fact
    for block in program.blocks_up(number, fact.calls[at].block):
        held = fact.blocks[block]
        if held.kind in {"for", "while"}:
            return -1
        if held.kind != "then":
            continue
        names = [str(a) for a in held.detail if isinstance(a, str) and not a.startswith("=")]
        names += [fact.calls[a].name for a in held.detail if isinstance(a, int)]
        leaves = [n.rpartition(".")[2] for n in names]
        if any(program.words.has("weights_due", leaf) for leaf in leaves):
            return -1
        if any(program.words.has("by_the_way", leaf) for leaf in leaves):
            return block
    return -1


def _acts(program: Program, number: int, receiver: str, role: str) -> bool:
    """The receiver samples in this very function, or weights are published to whoever does."""
    if role == "weights.publish":
        return True
    asked = program.own(number, *ACTING, "policy.act", "policy.forward", hints=True)
    return any(program.call(number, at).name.rpartition(".")[0] == receiver for at, _ in asked)
