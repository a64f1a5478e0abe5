"""Does the clock of a learning rate run faster than what it counts? (GYR209).

`steps += copies * span` inside the loop over `range(span)`: each pass adds the steps of all passes. Asked only of a count that a learning
rate is made from, on every pass of the loop, where the loop's own length is one of exactly two factors.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Atoms, Bind
from gyrecheck.model.finding import Confidence, Evidence
from gyrecheck.program.flow import reach
from gyrecheck.program.program import Program
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, at_bind, at_call

_RATES = ("[lr]", "[learning_rate]", ".learning_rate", ".lr")
_BRANCHES = frozenset({"then", "else", "except", "case"})


def overcounted(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every count that is advanced by a whole round in each pass of the round, and that a learning rate is made from."""
    for fn in program.functions:
        for loop, block in enumerate(fn.fact.blocks):
            length = _length(program, fn.number, block.detail) if block.kind == "for" else ""
            if length:
                yield from _added(program, fn.number, loop, length)


def _length(program: Program, number: int, detail: Atoms) -> str:
    """The one path that a counted loop's passes are counted by, or empty."""
    for atom in detail:
        if isinstance(atom, int):
            call = program.call(number, atom)
            last = call.args[-1] if call.args else ()
            if call.name in {"range", "trange"} and len(call.args) <= 2 and len(last) == 1 and isinstance(last[0], str):
                return "" if last[0].startswith("=") else last[0]
    return ""


def _added(program: Program, number: int, loop: int, length: str) -> Iterator[Suspect]:
    fact = program.tree.functions[number].fact
    head = program.place(number, fact.blocks[loop].line, f"a round has `{length}` passes", "because")
    hint = f"add what one pass is, without `{length}`"
    for bind in fact.binds:
        if bind.form == "+=" and bind.op == "+" and _is_round(bind.value, length) and _each_pass(program, number, bind.block, loop):
            rate = _rate(program, number, bind)
            if rate is not None:
                yield at_bind(
                    number, bind, "GYR209", _words(bind.target, length), evidence=(head, rate), hint=hint, side="training",
                )  # fmt: skip
    for edge in program.calls.edges[number]:
        if edge.kind != "call" or edge.call < 0 or edge.confidence is Confidence.HINT:
            continue
        call, callee = fact.calls[edge.call], program.tree.functions[edge.callee].fact
        given = [i for i, atoms in enumerate(call.args) if _is_round(atoms, length)]
        if len(given) != 1 or not _each_pass(program, number, call.block, loop):
            continue
        params = [p.name for p in callee.params][1 if program.tree.functions[edge.callee].cls >= 0 else 0 :]
        name = params[given[0]] if given[0] < len(params) else ""
        for bind in callee.binds:
            rate = _rate(program, edge.callee, bind) if bind.form == "+=" and bind.op == "+" and bind.value == (name,) else None
            if rate is not None:
                put = program.place(edge.callee, bind.line, f"it is added here: {bind.target}", "because", bind.column + 1)
                yield at_call(
                    program, number, edge.call, "GYR209", _words(bind.target, length), evidence=(head, put, rate), hint=hint, side="training",
                )  # fmt: skip


def _words(target: str, length: str) -> str:
    return f"`{target}`, which the learning rate is made from, is advanced by a whole round in each of its `{length}` passes: it ends too early"


def _is_round(atoms: Atoms, length: str) -> bool:
    """Exactly two factors, one of them the loop's length."""
    return (
        len(atoms) == 2
        and length in atoms
        and all(isinstance(a, str) and not a.startswith(("=", "<")) for a in atoms)
        and atoms[0] != atoms[1]
    )


def _each_pass(program: Program, number: int, block: int, loop: int) -> bool:
    """In the loop itself, on every pass."""
    blocks = program.tree.functions[number].fact.blocks
    for at in program.blocks_up(number, block):
        if at == loop:
            return True
        if blocks[at].kind in _BRANCHES or blocks[at].kind in {"for", "while", "comp"}:
            return False
    return False


def _rate(program: Program, number: int, bind: Bind) -> Evidence | None:
    """Where a learning rate is made from the count: in this function, in the object's class, or in the file by the same field."""
    fn, target = program.tree.functions[number], bind.target
    field = target.rpartition(".")[2]
    places = [number]
    if "." in target:
        places = [f.number for f in program.tree.functions_of(fn.module)]
        if target.startswith("self.") and fn.cls >= 0:
            places = [m for c in program.resolver.bases(fn.cls)[0] for m in program.tree.classes[c].methods.values()]
    for place in places:
        fact = program.tree.functions[place].fact
        if not any(b.target.endswith(_RATES) for b in fact.binds):
            continue
        paths = {target} if target.startswith("self.") else {
            a for atoms in (*(b.value for b in fact.binds), *(x for c in fact.calls for x in c.args)) for a in atoms
            if isinstance(a, str) and "." in a and a.rpartition(".")[2] == field
        }  # fmt: skip
        flow = reach(fact, binds=[bind]) if place == number else reach(fact, paths=paths)
        made = next((b for b in flow.kept if b.target.endswith(_RATES)), None)
        if made is not None:
            return program.place(place, made.line, f"the rate is made from it: {made.target}", "because", made.column + 1)
    return None
