"""Does an evaluation play through a routine that trains on what it plays? (GYR102).

Only what says so on the page: the routine is also what training calls, its learning step waits for no flag, and no copy of the policy is
trained. A routine that is called training by its name is somebody's intention.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gyrecheck.model.finding import Confidence
from gyrecheck.program.effects import Hop
from gyrecheck.program.program import ACTING, LEARNING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, at_call, in_tests

_MEASURES = re.compile(r"(?:^|_)(?:eval|evaluat|validat|exploit|enjoy|benchmark|held_?out)")
_MEANT = re.compile(r"train|fit|learn|adapt|tun|optim|updat|meta|improve|session|experiment|trial|main|epoch")
_FLAGS = re.compile(r"train|learn|updat|eval|test|mode|frozen|greedy_only")
_COPIES = frozenset({"deepcopy", "copy", "clone", "fork"})
_FILLED = ("len", "size", "ready", "full", "start", "warm", "can_", "enough", "at_least", "min_")


def evaluation_trains(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every call of an evaluation to a routine that samples and trains, whatever it is asked for."""
    for number in _evaluations(program):
        fact = program.functions[number].fact
        if any(b.value == ("=False",) and "." in b.target for b in fact.binds):
            continue  # it switches something off for the time it measures
        if any(c.name.rpartition(".")[2] in _COPIES for c in fact.calls) or program.own(number, *LEARNING):
            continue
        for edge in program.calls.edges[number]:
            if edge.kind == "call" and edge.call >= 0 and edge.confidence is not Confidence.HINT and _trains(program, number, edge.callee):
                call = fact.calls[edge.call]
                if any(_FLAGS.search(key) for key, _ in call.keywords) or any("=False" in arg for arg in call.args):
                    continue
                role = program.has(edge.callee, "optimizer.step", "update.run", "loss.backward")
                hops = program.effects.chain(edge.callee, role) if role else ()
                if not hops or not all(_waits_for_nothing(program, hop) for hop in hops):
                    continue
                step = program.call(hops[-1].function, hops[-1].call)
                yield at_call(
                    program, number, edge.call, "GYR102", f"`{program.name(number)}` measures, and reaches `{readable(step)}` through "
                        f"`{readable(call)}`: what it plays trains the policy",
                    evidence=program.hops(hops), side="sampling", pure=True, key=f"{program.name(number)}>{call.name}",
                    hint="play with a routine that neither stores nor learns",
                )  # fmt: skip


def _evaluations(program: Program) -> Iterator[int]:
    for fn in program.functions:
        if "evaluation" in program.region(fn.number) and _MEASURES.search(fn.fact.name.lower()) and not in_tests(program, fn.number):
            yield fn.number


def _trains(program: Program, number: int, callee: int) -> bool:
    """The routine samples and learns, is not meant as training by its name, and is what others train with."""
    fact = program.functions[callee].fact
    if _MEANT.search(fact.name.lower()) or "evaluation" in program.region(callee) or not program.has(callee, *LEARNING):
        return False
    others = {e.caller for e in program.callers[callee] if e.kind == "call" and e.confidence is not Confidence.HINT} - {number}
    return bool(program.has(callee, *ACTING)) and any("evaluation" not in program.region(o) for o in others)


def _waits_for_nothing(program: Program, hop: Hop) -> bool:
    """No condition but how many rows there are, or a count, stands before the call."""
    if hop.call < 0:
        return False
    blocks = program.tree.functions[hop.function].fact.blocks
    for block in (blocks[b] for b in program.blocks_up(hop.function, program.call(hop.function, hop.call).block)):
        if block.kind in {"else", "except", "case", "tryelse", "finally"}:
            return False
        if block.kind != "then" or "%" in block.op:
            continue
        said = [program.call(hop.function, a).name if isinstance(a, int) else a for a in block.detail]
        if any(
            name.startswith("self.") and name.count(".") == 1 and _FLAGS.search(name) and not any(w in name for w in _FILLED)
            for name in said
        ):
            return False
        if not any(word in name.lower().rpartition(".")[2] for name in said for word in _FILLED):
            return False
    return True
