"""Are tokens and their log-probs appended in one loop, the one behind a question about the element, the other always? (GYR314).

The two lists then fall out of step from the first element that was left out. Silent where both wait for the same question, where the other
branch appends, too, or where the lists are not handed on together.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Call, Function
from gyrecheck.program.program import Program, roots
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, at_call, in_tests

_MARKS = ("mask", "role", "label", "kind", "weight")
_ASKS = frozenset({"then", "else", "case", "except"})


def appended_apart(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every pair of lists of one answer that a loop fills unevenly."""
    for number in program.calling(frozenset({"append"})):
        fact = program.tree.functions[number].fact
        adds = [(at, c, _kind(program, c)) for at, c in enumerate(fact.calls) if c.name.endswith(".append")]
        tokens = [a for a in adds if a[2] == "tokens"]
        logps = [a for a in adds if a[2] == "logprob"]
        if not tokens or not logps or in_tests(program, number):
            continue
        for one, other in ((tokens, logps), (logps, tokens)):
            found = _uneven(program, number, one, other)
            if found is not None and _together(fact, found[1].name.rpartition(".")[0], fact.calls[found[0]].name.rpartition(".")[0]):
                at, asked = found
                left, whole = asked.name.rpartition(".")[0], fact.calls[at].name.rpartition(".")[0]
                yield at_call(
                    program, number, at, "GYR314", f"`{whole}` gets every element of the loop and `{left}` only some: from the first that is left out "
                        "they are out of step",
                    evidence=(program.place(number, asked.line, f"only some are appended here: {asked.name}", "because", asked.column + 1),),
                    hint="ask once and append both, or neither", side="sampling", key=f"{left}>{whole}",
                )  # fmt: skip
                break


def _kind(program: Program, call: Call) -> str:
    name = call.name.rpartition(".")[0].rpartition(".")[2].lower()
    if program.words.field(name) == "logprob" or program.words.has("logprob_names", name):
        return "logprob"
    return program.words.field(name)


def _uneven(
    program: Program, number: int, asked: list[tuple[int, Call, str]], always: list[tuple[int, Call, str]]
) -> tuple[int, Call] | None:
    """The append that every pass makes, and the only one to the other list, which waits for something about the element."""
    fact = program.tree.functions[number].fact
    for _, call, _ in asked:
        loop = program.loop_of(number, call.block)
        block = fact.blocks[call.block]
        same = [c for _, c, _ in asked if c.name == call.name and program.loop_of(number, c.block) == loop]
        if loop < 0 or block.kind != "then" or block.parent != loop or len(same) != 1 or not _about_element(program, number, call, loop):
            continue
        marked = any(
            c.name.endswith(".append") and c.block == loop and any(w in c.name.lower() for w in _MARKS) and c.order < 1 << 60
            for c in fact.calls
        )
        for at, other, _ in () if marked else always:
            if other.block == loop and not any(fact.blocks[e.block].parent == loop for e in fact.exits if e.kind in {"continue", "break"}):
                return at, call
    return None


def _about_element(program: Program, number: int, call: Call, loop: int) -> bool:
    """The question reads what the loop binds; whether a log-prob is there at all may be one for the whole run."""
    fact = program.tree.functions[number].fact
    bound = {b.target for b in fact.binds if b.target and program.within(number, b.block, loop)}
    detail = tuple(a for a in fact.blocks[call.block].detail)
    given = {name for arg in call.args for a in arg for name in _names(fact, a)}
    read = {name for a in detail for name in _names(fact, a)}
    own = _kind(program, call) == "logprob" and read <= given
    return bool(read & bound) and not own


def _names(fact: Function, atom: str | int) -> set[str]:
    if isinstance(atom, str):
        return set(roots((atom,)))
    call = fact.calls[atom]
    return set(roots((call.name, *(a for arg in call.args for a in arg if isinstance(a, str)))))


def _together(fact: Function, one: str, other: str) -> bool:
    """Both lists go into one return, one call or one record."""
    for given in fact.exits:
        read = {a for item in given.items for a in item if isinstance(a, str)}
        if given.kind in {"return", "yield"} and one in read and other in read:
            return True
    for call in fact.calls:
        read = {a for arg in (*call.args, *(v for _, v in call.keywords)) for a in arg if isinstance(a, str)}
        if one in read and other in read and call.name not in {"len", "zip", "print"}:
            return True
    return False
