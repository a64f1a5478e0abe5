"""What an untyped value must be by what is asked of it: the only class of the program, in the same file, that has it all.

Asked only when nothing else says what the value is. At least two members must be used, one of them a method that no vocabulary and no
everyday object has; a class never stands for a part of itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Function
from gyrecheck.program.classes import Classes
from gyrecheck.program.tree import Fn, Thing

EVERYDAY = frozenset({
    "get", "set", "add", "append", "extend", "insert", "pop", "remove", "clear", "copy", "update", "items", "keys",
    "values", "join", "split", "strip", "format", "index", "count", "sort", "read", "write", "open", "close", "put",
    "send", "recv", "start", "stop", "run", "step", "reset", "sample", "forward", "backward", "train", "eval", "save",
    "load", "to", "cpu", "cuda", "item", "mean", "sum", "max", "min", "log", "print", "info",
})  # fmt: skip
"""Methods that many kinds of objects have: by themselves they say nothing."""
_FEW = 2
_COMPOSED = frozenset({"trainer", "strategy", "collector", "generator", "reward"})
"""Kinds that programs write for themselves: their methods tell as much as any other."""


class ByUse(Classes):
    """The part of the resolver that reasons from use."""

    _definers: dict[str, list[int]] | None = None
    _listed: frozenset[str] | None = None

    def by_use(self, number: int, path: str) -> Thing | None:
        """An instance of the only class that has all that function `number` and its kin use of `path` (`x` or `self.x`)."""
        fn = self.tree.functions[number]
        own = fn.cls
        if path.startswith("self."):
            if own < 0 or path.count(".") != 1:
                return None
            places = [m for c in self.bases(own)[0] for m in self.tree.classes[c].methods.values()]
        elif path.isidentifier() and path not in {"self", "cls"}:
            places = [number, *fn.children]
        else:
            return None
        used = frozenset(m for place in places for m in self._used(place).get(path, ()))
        if len(used) < _FEW:
            return None
        candidates = {c for name in used if self._telling(name) for c in (self._definers or {}).get(name, ())}
        family = self._family(own)
        fitting = [c for c in candidates if c not in family and self._has_all(c, used)]
        if len(fitting) != 1 or self.tree.classes[fitting[0]].module != fn.module:
            return None
        return Thing("inst", fitting[0])

    def _family(self, cls: int) -> frozenset[int]:
        return frozenset((*self.bases(cls)[0], *self.subclasses(cls))) if cls >= 0 else frozenset()

    def _has_all(self, cls: int, used: frozenset[str]) -> bool:
        mro, outside = self.bases(cls)
        have = {m for owner in mro for m in (*self.tree.classes[owner].methods, *self._attribute_binds(owner))}
        return used <= have or (bool(outside) and len(used & have) >= _FEW)

    def _telling(self, name: str) -> bool:
        """A method of ours that the parts of libraries (networks, optimizers, buffers, environments) do not have."""
        if self._definers is None:
            self._definers = {}
            for cls in self.tree.classes:
                for method in cls.methods:
                    self._definers.setdefault(method, []).append(cls.number)
            plain = (t for t, kind in self.lexicon.kinds.items() if kind not in _COMPOSED)
            self._listed = frozenset(m for t in plain for m in self.lexicon.methods.get(t, ())) | EVERYDAY
        return name in self._definers and name not in (self._listed or ()) and not name.startswith("__")

    def _used(self, number: int) -> dict[str, frozenset[str]]:
        """For each `x` and `self.x` of a function: which members of it are called or read."""
        known = self._used_in.get(number)
        if known is None:
            table: dict[str, set[str]] = {}
            for path in _paths(self.tree.functions[number]):
                parts = path.split(".", 3)
                depth = 2 if parts[0] == "self" else 1
                if len(parts) > depth and parts[depth].partition("[")[0].isidentifier():
                    table.setdefault(".".join(parts[:depth]), set()).add(parts[depth].partition("[")[0])
            self._used_in[number] = known = {path: frozenset(members) for path, members in table.items()}
        return known


def _paths(fn: Fn) -> Iterator[str]:
    """Every dotted path that a function calls, reads or binds."""
    fact: Function = fn.fact
    for call in fact.calls:
        if call.name[:1] not in {".", "{"}:
            yield call.name
        for atoms in (*call.args, *(v for _, v in call.keywords), call.receiver):
            yield from (a for a in atoms if isinstance(a, str) and a[:1] not in {"=", "<"})
    for bind in fact.binds:
        yield bind.target
        yield from (a for a in bind.value if isinstance(a, str) and a[:1] not in {"=", "<"})
    for block in fact.blocks:
        yield from (a for a in block.detail if isinstance(a, str) and a[:1] not in {"=", "<"})
    for leave in fact.exits:
        yield from (a for item in leave.items for a in item if isinstance(a, str) and a[:1] not in {"=", "<"})
