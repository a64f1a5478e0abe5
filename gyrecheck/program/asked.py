"""What the parts of the resolver share: the tree, the lexicon, the answers already given, and the questions they ask one another."""

from __future__ import annotations

from gyrecheck.model.facts import Atom, Bind, Call
from gyrecheck.program.tree import Thing, Tree
from gyrecheck.rulebook.lexicon import Lexicon

DEPTH = 24
"""Questions within questions; what is deeper is unknown."""
LINKS = 60
"""Calls on the result of a call, one after another (`a().b().c()`), that are followed back; a longer chain has an unknown start."""


class Asked:
    """Every question is answered once and kept; one that asks itself is answered with None, so that recursion and cycles end."""

    def __init__(self, tree: Tree, lexicon: Lexicon) -> None:
        self.tree, self.lexicon = tree, lexicon
        self._paths: list[dict[str, Thing | None]] = [{} for _ in tree.functions]
        self._members: dict[tuple[int, str], Thing | None] = {}
        self._returns: dict[int, Thing | None] = {}
        self._mros: dict[int, tuple[tuple[int, ...], tuple[str, ...]]] = {}
        self._sites: dict[str, list[tuple[int, int]]] | None = None
        self._attributes: dict[int, dict[str, list[tuple[int, Bind]]]] = {}
        self._subclasses: dict[int, list[int]] | None = None
        self._callees: dict[int, Thing | None] = {}
        self._exports: dict[tuple[int, str], Thing | None] = {}
        self._used_in: dict[int, dict[str, frozenset[str]]] = {}
        self._depth = 0
        self._links = 0

    def path(self, number: int, path: str) -> Thing | None:
        """What the dotted `path` is, read in function `number`."""
        raise NotImplementedError

    def atom(self, number: int, atom: Atom, part: int = -1) -> Thing | None:
        """What one atom is; `part` picks an element when the atom is a call that returns a tuple."""
        raise NotImplementedError

    def bound(self, number: int, bind: Bind) -> Thing | None:
        """What one binding binds."""
        raise NotImplementedError

    def annotation(self, number: int, text: str) -> Thing | None:
        """An instance of what the annotation names."""
        raise NotImplementedError

    def attribute(self, base: Thing, name: str) -> Thing | None:
        """`base.name`."""
        raise NotImplementedError

    def returned(self, number: int, part: int = -1) -> Thing | None:
        """What a first-party function returns."""
        raise NotImplementedError

    def callee(self, number: int, at: int) -> Thing | None:
        """What call `at` of function `number` calls."""
        raise NotImplementedError

    def receiver(self, number: int, call: Call) -> Thing | None:
        """What stands before the last dot of a call."""
        raise NotImplementedError

    def result(self, number: int, at: int, part: int = -1) -> Thing | None:
        """What call `at` of function `number` returns."""
        raise NotImplementedError


UNASKED = Thing("unasked", "")
"""Stands for no answer yet."""


def first_name(path: str) -> str:
    """`row[val].x` -> `row`."""
    head = path.partition(".")[0]
    return head.partition("[")[0] if "[" in head else head


def split(path: str) -> tuple[str, str | None]:
    """`a.b[c]` -> (`a.b`, `[c]`), `a.b` -> (`a`, `b`), `a` -> (`a`, None)."""
    if path.endswith("]"):
        at = path.rfind("[")
        return path[:at], path[at:]
    head, dot, tail = path.rpartition(".")
    return (head, tail) if dot else (path, None)
