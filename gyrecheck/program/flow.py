"""Where the result of a call goes inside one function: a forward closure over bindings, calls and returns, regardless of order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gyrecheck.model.facts import Atom, Atoms, Function


@dataclass(frozen=True, slots=True)
class Reached:
    """What a value flows into: calls that take it (argument or receiver), paths that hold it, whether it is returned."""

    calls: frozenset[int]
    paths: frozenset[str]
    returned: tuple[int, ...]
    """Lines of the returns or yields that give it away."""

    def holds(self, atom: Atom) -> bool:
        """Whether an atom carries the value."""
        return atom in self.calls if isinstance(atom, int) else any(p in self.paths for p in prefixes(atom))

    def any(self, atoms: Atoms) -> bool:
        """Whether one of the atoms carries the value."""
        return any(self.holds(a) for a in atoms)


def prefixes(path: str) -> list[str]:
    """`a.b[c]` -> `a`, `a.b`, `a.b[c]`; a constant has none."""
    if path.startswith(("=", "<")):
        return []
    out = [path[:i] for i, ch in enumerate(path) if ch in ".["]
    out.append(path)
    return out


def reach(fact: Function, calls: Iterable[int] = (), paths: Iterable[str] = (), *, cut: Callable[[int], bool] | None = None) -> Reached:
    """Everything that values of `calls` and `paths` flow into. `cut(call)` true: the call's result carries nothing on."""
    held_calls, held_paths = set(calls), set(paths)
    stop = {i for i in range(len(fact.calls)) if cut is not None and cut(i)}

    def holds(atoms: Atoms) -> bool:
        for atom in atoms:
            if isinstance(atom, int):
                if atom in held_calls:
                    return True
            elif any(p in held_paths for p in prefixes(atom)):
                return True
        return False

    changed = bool(held_calls or held_paths)
    while changed:
        changed = False
        for at, call in enumerate(fact.calls):
            if at in held_calls or at in stop:
                continue
            head = call.name.rpartition(".")[0]
            taken = (
                holds(call.receiver)
                or any(holds(a) for a in call.args)
                or any(holds(v) for _, v in call.keywords)
                or (bool(head) and any(p in held_paths for p in prefixes(head)))
            )
            if taken:
                held_calls.add(at)
                changed = True
        for bind in fact.binds:
            if bind.target not in held_paths and bind.op != "cmp" and bind.form not in {"del", "except"} and holds(bind.value):
                held_paths.add(bind.target)
                changed = True
                if bind.target.endswith("]"):
                    held_paths.add(bind.target[: bind.target.rfind("[")])
    returned = tuple(e.line for e in fact.exits if e.kind in {"return", "yield"} and any(holds(i) for i in e.items))
    return Reached(frozenset(held_calls), frozenset(held_paths), returned)
