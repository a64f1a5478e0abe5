"""Which of the values that a function gives back together carry a graph, and which are plain numbers."""

from __future__ import annotations

from gyrecheck.model.facts import Atom, Function
from gyrecheck.program.flow import Reached
from gyrecheck.program.program import Program

_NUMBERS = frozenset({"item", "tolist", "numpy", "int", "float"})


def numbers_apart(program: Program, number: int, at: int) -> tuple[int, frozenset[int]]:
    """How many values a function of the tree gives back, and which of them are no plain numbers; (0, none) where nothing is known."""
    callees = {e.callee for e in program.calls.edges[number] if e.call == at} or _named(program, program.call(number, at).name)
    if len(callees) != 1:
        return 0, frozenset()
    fact = program.tree.functions[callees.pop()].fact
    given = [e for e in fact.exits if e.kind == "return" and e.items]
    counts = {len(e.items) for e in given}
    tensors = frozenset(i for e in given for i, item in enumerate(e.items) if not all(_is_number(fact, a) for a in item))
    return (counts.pop(), tensors) if len(counts) == 1 else (0, frozenset())


def _named(program: Program, name: str) -> set[int]:
    """The methods of the tree with a call's name, where there is one only."""
    found = {c.methods[last] for c in program.tree.classes for last in (name.rpartition(".")[2],) if last in c.methods}
    return found if len(found) == 1 else set()


def _is_number(fact: Function, atom: Atom) -> bool:
    if isinstance(atom, int):
        return fact.calls[atom].name.rpartition(".")[2] in _NUMBERS
    binds = [b for b in fact.binds if b.target == atom]
    return atom.startswith("=") or (bool(binds) and all(len(b.value) == 1 and _tail_is_number(fact, b.value[0]) for b in binds))


def _tail_is_number(fact: Function, atom: Atom) -> bool:
    return isinstance(atom, int) and fact.calls[atom].name.rpartition(".")[2] in _NUMBERS


def reached_parts(fact: Function, flow: Reached) -> tuple[int, frozenset[int]]:
    """How many values all returns give, and which of them the flow reaches; (0, none) where they give different numbers."""
    given = [e for e in fact.exits if e.kind == "return" and e.items]
    counts = {len(e.items) for e in given}
    return (
        (counts.pop(), frozenset(i for e in given for i, item in enumerate(e.items) if flow.any(item)))
        if len(counts) == 1
        else (0, frozenset())
    )
