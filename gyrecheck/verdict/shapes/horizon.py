"""How long a learning-rate schedule is told to be: the counts its length is made of, followed through names, calls and constructors."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Atoms, Bind, Call
from gyrecheck.model.finding import Evidence
from gyrecheck.program.program import Program
from gyrecheck.verdict.shapes import steps

_DEEP = 6


def horizon(program: Program, root: int, who: str) -> tuple[set[str], tuple[Evidence, ...]] | None:
    """The factors of the length of schedule `who`, and where it is counted."""
    inside = _made_within(program, root, who)
    if inside is not None:
        return inside
    for number, bind in _makers(program, root, who):
        for atom in bind.value:
            if not isinstance(atom, int):
                continue
            call = program.call(number, atom)
            if program.role(number, atom) == "scheduler.make":
                return _length(program, number, call, {})
            target = program.resolver.callee(number, atom)
            if target is not None and target.kind == "func":
                inner = int(target.ref)
                names = steps.arguments(program, call, inner, {})
                for at, _ in program.own(inner, "scheduler.make"):
                    return _length(program, inner, program.call(inner, at), names)
    return None


def _made_within(program: Program, root: int, who: str) -> tuple[set[str], tuple[Evidence, ...]] | None:
    """`learner.sched`, where `learner = Learner(net, total)` is bound here: the length in the terms of that call."""
    owner, _, leaf = who.rpartition(".")
    if not owner or owner == "self":
        return None
    for number, bind in _makers(program, root, owner):
        for atom in bind.value:
            target = program.resolver.callee(number, atom) if isinstance(atom, int) else None
            start = program.resolver.method(int(target.ref), "__init__") if target is not None and target.kind == "class" else -1
            if start < 0 or not isinstance(atom, int):
                continue
            names = steps.arguments(program, program.call(number, atom), start, {})
            for inner in program.tree.functions[start].fact.binds:
                if inner.target != f"self.{leaf}":
                    continue
                for made in inner.value:
                    if isinstance(made, int) and program.role(start, made) == "scheduler.make":
                        found = _length(program, start, program.call(start, made), names)
                        if found is None or _computed(program, start, program.call(start, made), program.call(number, atom)):
                            return None
                        return found
    return None


def _computed(program: Program, start: int, call: Call, made: Call) -> bool:
    """The length is worked out at the constructor's call (`total // horizon`): its unit is not the plain name's."""
    given = {a for arg in (*call.args, *(v for _, v in call.keywords)) for a in arg if isinstance(a, str)}
    params = [p.name for p in program.tree.functions[start].fact.params][1:]
    for name, atoms in (*zip(params, made.args, strict=False), *made.keywords):
        if name in given and (len(atoms) != 1 or not isinstance(atoms[0], str)):
            return True
    return False


def _makers(program: Program, root: int, who: str) -> Iterator[tuple[int, Bind]]:
    fn = program.tree.functions[root]
    yield from ((root, b) for b in fn.fact.binds if b.target == who)
    if who.startswith("self.") and fn.cls >= 0:
        for owner in program.resolver.bases(fn.cls)[0]:
            for number in program.tree.classes[owner].methods.values():
                yield from ((number, b) for b in program.tree.functions[number].fact.binds if b.target == who)


def _length(program: Program, number: int, call: Call, names: dict[str, str]) -> tuple[set[str], tuple[Evidence, ...]] | None:
    given: Atoms | None = next((v for k, v in call.keywords if k in program.words["horizon"]), None)
    if given is None and len(call.args) >= 2 and call.name.rpartition(".")[2] not in program.words["no_horizon"]:
        given = call.args[-1] if call.name.islower() else call.args[1]
    if given is None and call.name.rpartition(".")[2] == "LambdaLR":
        return _by_lambda(program, number, call)
    if given is None:
        return None
    factors = terms(program, number, given, names, 0, expand=True)
    places = [program.place(number, call.line, "the schedule is made here", "because", call.column + 1)]
    for atom in given:
        counted = [b for b in program.tree.functions[number].fact.binds if b.target == atom]
        places.extend(program.place(number, b.line, "its length is counted here", "because", b.column + 1) for b in counted)
    return factors, tuple(places)


def _by_lambda(program: Program, number: int, call: Call) -> tuple[set[str], tuple[Evidence, ...]] | None:
    """The counts in `lambda k: 1 - k / total`."""
    atoms = next((v for k, v in call.keywords if k == "lr_lambda"), call.args[1] if len(call.args) > 1 else ())
    text = str(atoms[0]) if len(atoms) == 1 else ""
    if not text.startswith("<lambda "):
        return None
    inner = program.tree.first_function[program.tree.functions[number].module] + int(text[8:-1])
    fact = program.tree.functions[inner].fact
    if len(fact.exits) != 1 or len(fact.exits[0].items) != 1:
        return None
    own = {p.name for p in fact.params}
    told = tuple(a for a in fact.exits[0].items[0] if a not in own)
    outer = tuple(a for a in told if isinstance(a, str) and not a.startswith("="))
    if len(outer) != sum(1 for a in told if not (isinstance(a, str) and a.startswith("="))):
        return None
    factors = terms(program, number, outer, {}, 0, expand=True)
    return factors, (program.place(number, call.line, "the schedule is made here", "because", call.column + 1),)


def terms(program: Program, number: int, atoms: Atoms, names: dict[str, str], depth: int, *, expand: bool) -> set[str]:
    """The counts that a value is made of, by the last part of their names; constants above 1 stand for themselves."""
    out: set[str] = set()
    if depth > _DEEP:
        return out
    fact = program.tree.functions[number].fact
    for atom in atoms:
        if isinstance(atom, int):
            call = fact.calls[atom]
            last = call.name.rpartition(".")[2]
            if last in program.words["seen_through"]:
                inner = tuple(a for arg in call.args for a in arg)
                out |= terms(program, number, inner, names, depth + 1, expand=expand)
            elif last in program.words["splitters"]:
                given = tuple(a for arg in (*call.args, *(v for _, v in call.keywords)) for a in arg)
                out |= terms(program, number, given, names, depth + 1, expand=expand) or {call.name}
            else:
                out.add(f"{call.name}()")
        elif atom.startswith("="):
            if atom[1:].isdigit() and int(atom[1:]) > 1:
                out.add(atom)
        elif atom in names:
            out.add(_tail(names[atom]))
        else:
            binds = [b for b in fact.binds if b.target == atom and b.form == "="] if expand else []
            known = [t for b in binds for t in terms(program, number, b.value, names, depth + 1, expand=expand)]
            out |= set(known) or {_tail(atom)}
    return out


def _tail(path: str) -> str:
    return path.rpartition(".")[2].split("[")[0] if not path.endswith("()") else path


def plain(term: str) -> str:
    """A term as people read it."""
    return term.removeprefix("=")


def listed(terms: set[str]) -> str:
    """Terms for a message."""
    return " and ".join(f"`{plain(t)}`" for t in sorted(terms))
