"""The number that a path stands for, where the code says it: a constant, a default, a field that is given one."""

from __future__ import annotations

from gyrecheck.model.facts import Atom, Atoms
from gyrecheck.program.program import Program

_DEEP = 6


def told_number(program: Program, number: int, atom: Atom, depth: int = 0) -> int | None:
    """The whole number of an atom read in function `number`, or None where it is not told."""
    if isinstance(atom, int) or depth > _DEEP:
        return None
    if atom.startswith("="):
        return int(atom[1:]) if atom[1:].isdigit() else None
    fn = program.tree.functions[number]
    head, _, last = atom.rpartition(".")
    if not head:
        params = program.tree.names(number).params
        if atom in params:
            return _only(program, number, params[atom].default or (), depth)
        binds = [b for b in fn.fact.binds if b.target == atom]
        if len(binds) == 1 and binds[0].form == "=" and not binds[0].op:
            return _only(program, number, binds[0].value, depth)
        outer = fn.parent if not binds else -1
        return told_number(program, outer, atom, depth + 1) if outer >= 0 else None
    base = program.resolver.path(number, head)
    if base is None or base.kind not in {"inst", "class"}:
        return None
    for cls in program.resolver.bases(int(base.ref))[0]:
        owner = program.tree.classes[cls]
        for place in (owner.body, owner.methods.get("__init__", -1)):
            for bind in program.tree.functions[place].fact.binds if place >= 0 else ():
                if bind.target in {last, f"self.{last}"} and bind.form == "=" and not bind.op:
                    return _only(program, place, bind.value, depth)
    return None


def _only(program: Program, number: int, atoms: Atoms, depth: int) -> int | None:
    return told_number(program, number, atoms[0], depth + 1) if len(atoms) == 1 else None


def told_once(program: Program, number: int, atom: Atom) -> int | None:
    """The number that the file gives to a setting of this name, in a class body, a mapping or an option; None for several."""
    if isinstance(atom, int) or atom.startswith(("=", "<")):
        return None
    last = atom.rpartition(".")[2]
    if last == atom and atom.islower() and atom in program.tree.names(number).bound:
        return None
    found: set[str] = set()
    for fn in program.tree.functions_of(program.tree.functions[number].module):
        if fn.fact.name.startswith("<class ") or last.isupper():
            found |= {str(v) for b in fn.fact.binds if b.target == last and b.form == "=" for v in b.value[:1]}
        for call in fn.fact.calls:
            option = str(call.args[0][0]).strip("='").lstrip("-").replace("-", "_") if call.args and call.args[0] else ""
            pairs = dict(call.keywords)
            if call.name.endswith("add_argument") and option == last and "default" in pairs:
                found |= {str(v) for v in pairs["default"][:1]}
            elif call.name in {"{}", "dict"} and last in pairs:
                found |= {str(v) for v in pairs[last][:1]}
    told = next(iter(found), "")
    return int(told[1:]) if len(found) == 1 and told.startswith("=") and told[1:].isdigit() else None
