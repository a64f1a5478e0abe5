"""Does a target network ever take the trained weights? (GYR216).

Asked of a network that a learner made as a copy, or that it calls a target, whose value of the successor goes into what is learned.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Bind, Function
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.steps import BACK
from gyrecheck.verdict.shapes.suspect import Suspect, at_bind

_QUIET = frozenset({"to", "cuda", "cpu", "eval", "train", "requires_grad_", "state_dict", "forward", "half", "float", "share_memory"})
_COPIES = frozenset({"deepcopy", "clone_model"})


def target_moves(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Copies that give the bootstrap value and that nothing moves."""
    for number in program.doing(BACK):
        fn = program.functions[number]
        if fn.fact.name.startswith("test"):
            continue
        for call in fn.fact.calls:
            path = call.name
            given = [a for arg in (*call.args, *(v for _, v in call.keywords)) for a in arg if isinstance(a, str)]
            if not any(program.words.has("successor", f"_{_leaf(a)}_") for a in given if not a.startswith("=")):
                continue
            born = _born(program, fn.number, path)
            if born is None or _moved(program, fn.number, path, born):
                continue
            owner, bind = born
            yield at_bind(
                owner, bind, "GYR216", f"`{path}` gives the value of the successor and never takes the trained weights: it stays as it was made",
                evidence=(program.place(fn.number, call.line, f"the target comes from it: {readable(call)}", "because", call.column + 1),),
                hint="load the trained weights every so many updates, or follow them by a running average", side="training",
            )  # fmt: skip


def _leaf(path: str) -> str:
    path = path.rstrip("]")
    return path[max(path.rfind("["), path.rfind(".")) + 1 :].lower().strip("_")


def _scope(program: Program, number: int, path: str) -> list[int]:
    """The functions in which the path may mean the same object."""
    fn = program.tree.functions[number]
    if path.startswith("self.") and fn.cls >= 0:
        return [m for c in program.resolver.bases(fn.cls)[0] for m in program.tree.classes[c].methods.values()]
    out = [number]
    while program.tree.functions[out[-1]].parent >= 0:
        out.append(program.tree.functions[out[-1]].parent)
    return out


def _born(program: Program, number: int, path: str) -> tuple[int, Bind] | None:
    """The one binding that makes the network: as a copy, or as a network of its own under a target's name."""
    words = set(path.rpartition(".")[2].lower().split("_"))
    named = program.lexicon.named(path.rpartition(".")[2].lower())
    target = bool(program.words["copies_of_policy"] & words) or (named is not None and named.kind == "target")
    found = [(n, b) for n in _scope(program, number, path) for b in program.tree.functions[n].fact.binds if b.target == path]
    if len(found) != 1 or found[0][1].form not in {"=", *(f"{i}/{n}" for n in range(2, 5) for i in range(n))}:
        return None
    owner, bind = found[0]
    fact = program.tree.functions[owner].fact
    made = [a for a in bind.value if isinstance(a, int)]
    if len(made) != len(bind.value) or not made:
        return None
    copied = any(_is_copy(fact, a) for a in made)
    return found[0] if copied or (target and _network(program, owner, made[-1])) else None


def _is_copy(fact: Function, at: int) -> bool:
    call = fact.calls[at]
    return call.name.rpartition(".")[2] in _COPIES or any(isinstance(a, int) and _is_copy(fact, a) for a in call.receiver)


def _network(program: Program, number: int, at: int) -> bool:
    made = program.resolver.result(number, at)
    return program.calls.kind_of(made) == "module" or any(
        isinstance(a, int) and _network(program, number, a) for a in program.call(number, at).receiver
    )


def _moved(program: Program, number: int, path: str, born: tuple[int, Bind]) -> bool:
    """Anything outside its making that may change it: a load, a call it is given to, a walk over its parameters, an optimizer."""
    leaf = path.rpartition(".")[2]
    for fn in program.functions:
        start = fn.number == born[0] and fn.fact.name == "__init__"
        for call in fn.fact.calls:
            head, _, last = call.name.rpartition(".")
            atoms = [a for arg in (*call.args, *(v for _, v in call.keywords)) for a in arg if isinstance(a, str)]
            mine = head == path or (head.rpartition(".")[2] == leaf and head != path) or f".{leaf}." in f"{head}."
            if mine and last not in _QUIET and not start and call.result != -2:
                return True
            if any(a == path or a.rpartition(".")[2] == leaf for a in atoms) and not (start and last in _COPIES):
                return True
            if call.name in {"setattr", "getattr"}:
                return True
        if any(b is not born[1] and (b.target.rpartition(".")[2] == leaf or f"{leaf}." in b.target) for b in fn.fact.binds):
            return True
        if any(path in e for x in fn.fact.exits for e in x.items):
            return True
    del number
    return False
