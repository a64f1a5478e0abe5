"""Where the result of a call goes inside one function: forward through bindings, calls and returns, in evaluation order.

A pass over the function's records and another over those in loops, so that what a loop carries to its next turn is seen. A name that
is bound anew outside any branch no longer holds the value; inside a branch it may, so it still does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gyrecheck.model.facts import Atom, Atoms, Bind, Call, Exit, Function

_FILLS = frozenset({"append", "extend", "add", "insert", "appendleft", "update", "setdefault"})
_LOOPS = frozenset({"for", "while", "comp"})
_BRANCHES = frozenset({"then", "else", "except", "case", "tryelse"})


@dataclass(frozen=True, slots=True)
class Reached:
    """What a value flows into."""

    calls: frozenset[int]
    """Calls whose result carries it."""
    paths: frozenset[str]
    """Paths that ever hold it."""
    returned: tuple[int, ...]
    """Lines of the returns or yields that give it away."""
    taken: frozenset[int]
    """Calls that are given it as an argument."""
    kept: tuple[Bind, ...]
    """Bindings that bind it."""

    def holds(self, atom: Atom) -> bool:
        """Whether an atom ever carries the value."""
        return atom in self.calls if isinstance(atom, int) else any(p in self.paths for p in prefixes(atom))

    def any(self, atoms: Atoms) -> bool:
        """Whether one of the atoms ever carries the value."""
        return any(self.holds(a) for a in atoms)


def prefixes(path: str) -> list[str]:
    """`a.b[c]` -> `a`, `a.b`, `a.b[c]`; a constant has none."""
    if path.startswith(("=", "<")):
        return []
    out = [path[:i] for i, ch in enumerate(path) if ch in ".["]
    out.append(path)
    return out


def reach(
    fact: Function,
    calls: Iterable[int] = (),
    paths: Iterable[str] = (),
    *,
    binds: Iterable[Bind] = (),
    cut: Callable[[int], bool] | None = None,
) -> Reached:
    """Everything that values of `calls`, `paths` and `binds` flow into. `cut(call)` true: the call's result carries nothing on."""
    return _Pass(fact, set(calls), set(paths), frozenset(b.order for b in binds), cut).run()


class _Pass:
    def __init__(self, fact: Function, calls: set[int], paths: set[str], given: frozenset[int], cut: Callable[[int], bool] | None) -> None:
        self.fact, self.seeds, self.given, self.cut = fact, frozenset(calls), given, cut
        self.calls, self.paths = calls, paths
        self.ever = set(paths)
        self.taken: set[int] = set()
        self.kept: dict[int, Bind] = {}
        self.returned: list[int] = []
        self.stops: dict[int, bool] = {}
        records: list[tuple[int, int, Call | Bind | Exit]] = [(c.order, i, c) for i, c in enumerate(fact.calls)]
        records += [(b.order, -1, b) for b in fact.binds]
        records += [(e.order, -1, e) for e in fact.exits]
        self.records = sorted(records, key=lambda r: r[0])

    def run(self) -> Reached:
        for again in (False, True):
            for _, at, record in self.records:
                if again and not self._repeated(record.block):
                    continue
                if isinstance(record, Call):
                    self._call(at, record)
                elif isinstance(record, Bind):
                    self._bind(record)
                elif record.kind in {"return", "yield"} and any(self._holds(i) for i in record.items) and record.line not in self.returned:
                    self.returned.append(record.line)
        return Reached(frozenset(self.calls), frozenset(self.ever), tuple(self.returned), frozenset(self.taken), tuple(self.kept.values()))

    def _repeated(self, block: int) -> bool:
        """Within a loop: what stands before one is not done again on its next turn."""
        while block >= 0 and self.fact.blocks[block].kind not in _LOOPS:
            block = self.fact.blocks[block].parent
        return block >= 0

    def _holds(self, atoms: Atoms) -> bool:
        for atom in atoms:
            if isinstance(atom, int):
                if atom in self.calls:
                    return True
            elif any(p in self.paths for p in prefixes(atom)):
                return True
        return False

    def _call(self, at: int, call: Call) -> None:
        given = any(self._holds(a) for a in call.args) or any(self._holds(v) for _, v in call.keywords)
        head, _, last = call.name.rpartition(".")
        if given:
            self.taken.add(at)
            if last in _FILLS and head:
                self.paths.add(head)
                self.ever.add(head)
        if at in self.seeds:
            return
        held = given or self._holds(call.receiver) or (bool(head) and any(p in self.paths for p in prefixes(head)))
        if held:
            if at not in self.stops:
                self.stops[at] = self.cut is not None and self.cut(at)
            held = not self.stops[at]
        if held:
            self.calls.add(at)
        else:
            self.calls.discard(at)

    def _bind(self, bind: Bind) -> None:
        target = bind.target
        if bind.order in self.given or (bind.op != "cmp" and bind.form not in {"del", "except"} and self._holds(bind.value)):
            self.paths.add(target)
            self.ever.add(target)
            self.kept.setdefault(bind.order, bind)
            if target.endswith("]"):
                root = target[: target.rfind("[")]
                self.paths.add(root)
                self.ever.add(root)
        elif (target in self.paths and bind.form != "+=" and not self._branched(bind.block)) or (
            target in self.paths and bind.form != "+=" and self._holds_nothing_else(bind)
        ):
            self.paths.discard(target)

    def _holds_nothing_else(self, bind: Bind) -> bool:
        """The value came to the name in this very block, so the new binding replaces it wherever the old one was made."""
        return any(k.target == bind.target and k.block == bind.block and k.order < bind.order for k in self.kept.values())

    def _branched(self, block: int) -> bool:
        while block >= 0:
            if self.fact.blocks[block].kind in _BRANCHES:
                return True
            block = self.fact.blocks[block].parent
        return False
