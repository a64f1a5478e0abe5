"""What every call does and where it goes: its role with the confidence it is known by, and edges to first-party functions.

Edges follow functions, methods through inferred receivers and the class hierarchy, `super()`, constructors, callables passed by
name, lambdas, decorators and overrides of abstract methods. A method of an unknown receiver that only few of the checked classes
define gets a `hint` edge; what cannot be resolved at all is counted, so that silence is not taken for proof.
"""

from __future__ import annotations

from typing import NamedTuple

from gyrecheck.model.facts import Call
from gyrecheck.model.finding import Confidence
from gyrecheck.program.by_use import EVERYDAY
from gyrecheck.program.call_roles import CallRoles
from gyrecheck.program.resolve import Resolver
from gyrecheck.program.tree import Fn, Thing, Tree
from gyrecheck.rulebook.lexicon import Lexicon

_FEW = 3

_PASS_ON = frozenset({"next", "iter", "list", "tuple", "sorted", "reversed"})
"""Builtins that give back what they were given, or a part of it."""


class Edge(NamedTuple):
    """`caller` calls `callee` at its call number `call`; `kind`: call, make, passed, decorator, override, name."""

    caller: int
    callee: int
    call: int
    kind: str
    confidence: Confidence


class RoleAt(NamedTuple):
    """Call number `call` of a function has `role`; `symbol` is what said so."""

    role: str
    call: int
    confidence: Confidence
    symbol: str


class Calls(CallRoles):
    """Roles and edges of every function of a tree."""

    def __init__(self, tree: Tree, lexicon: Lexicon, resolver: Resolver) -> None:
        super().__init__(tree, lexicon, resolver)
        self.roles: list[list[RoleAt]] = [[] for _ in tree.functions]
        self.edges: list[list[Edge]] = [[] for _ in tree.functions]
        self.resolved = self.unresolved = 0
        self._may_hold: dict[str, bool] = {}
        self._defined: dict[str, list[int]] = {}
        for fn in tree.functions:
            if fn.cls >= 0:
                self._defined.setdefault(fn.fact.name, []).append(fn.number)
        self._function_names = {f.fact.name for f in tree.functions}
        tables = (lexicon.symbols, lexicon.type_names, lexicon.factories, lexicon.names, lexicon.calls)
        self._spoken = {key.rpartition(".")[2] for table in tables for key in table}
        self._spoken |= {m for table in lexicon.methods.values() for m, role in table.items() if role}
        self._spoken |= {m for receiver in lexicon.receivers for m in receiver.methods} | {"super"}
        self._wanted: dict[str, bool] = {}
        self._renamed = [{i.alias for i in m.imports if i.alias} for m in tree.modules]
        renamed = {i.alias for m in tree.modules for i in m.imports if i.alias and i.alias != i.name}
        renamed |= {b.target for m in tree.modules for b in m.functions[0].binds if b.value and b.target.isidentifier()}
        self._known_names = {f.fact.name for f in tree.functions} | {c.fact.name for c in tree.classes}
        self._spoken |= renamed
        for fn in tree.functions:
            held: frozenset[str] | None = None
            for at, call in enumerate(fn.fact.calls):
                if call.name == "{}":
                    continue
                if held is None:
                    held = self._held(fn)
                self._call(fn, at, call, held)
            if fn.fact.decorators:
                self._decorators(fn)

    def _means_something(self, last: str) -> bool:
        """Whether a call of this last name can have a role or be one of ours; nine calls of ten are passed over by this."""
        if not last or last in self._known_names or last in self._spoken or last[:1].isupper():
            return True
        named = self.lexicon.named(last)
        return named is not None and "__call__" in named.methods

    def _local(self, fn: Fn, name: str) -> bool:
        """A name bound in this very function, or a parameter: it may hold one of our functions."""
        names = self.tree.names(fn.number)
        return name in names.binds or name in names.params

    def _call(self, fn: Fn, at: int, call: Call, held: frozenset[str]) -> None:
        if call.result == -2:
            if self.lexicon.names.get(call.name[1:]) == "grad.cut":
                self.roles[fn.number].append(RoleAt("grad.cut", at, Confidence.BOUND, call.name))
            return
        last = call.name.rpartition(".")[2]
        wanted = self._wanted.get(last)
        if wanted is None:
            self._wanted[last] = wanted = self._means_something(last)
        if not wanted and not ("." not in call.name and self._local(fn, call.name)):
            self._passed(fn, at, call, held)
            return
        target = self.resolver.callee(fn.number, at)
        before = len(self.edges[fn.number])
        role = self._role(fn, call, target, last)
        if target is not None and target.kind in {"func", "class", "inst"}:
            self._edge(fn, at, target, last)
        self._passed(fn, at, call, held)
        if role is not None:
            self.roles[fn.number].append(RoleAt(role[0], at, role[1], role[2]))
        first_party = target is not None and target.kind in {"func", "class", "inst", "module"}
        if first_party or (len(self.edges[fn.number]) > before and role is None):
            self.resolved += 1
        elif role is None and last in self._known_names and (target is None or target.kind == "result") and "." in call.name:
            base = self.resolver.receiver(fn.number, call)
            if base is None or base.kind in {"inst", "class", "func"}:
                self._unknown(fn, at, call, last)

    def _edge(self, fn: Fn, at: int, target: Thing, last: str) -> None:
        add = self.edges[fn.number].append
        if target.kind == "func":
            callee = int(target.ref)
            add(Edge(fn.number, callee, at, "call", Confidence.BOUND))
            if self.tree.functions[callee].cls >= 0 and self._abstract(callee):
                for sub in self.resolver.subclasses(self.tree.functions[callee].cls):
                    own = self.tree.classes[sub].methods.get(last)
                    if own is not None:
                        add(Edge(fn.number, own, at, "override", Confidence.BOUND))
        elif target.kind == "class":
            start = self.resolver.method(int(target.ref), "__init__")
            if start >= 0:
                add(Edge(fn.number, start, at, "make", Confidence.BOUND))
        else:
            start = self.resolver.called_on(int(target.ref))
            if start >= 0:
                add(Edge(fn.number, start, at, "call", Confidence.BOUND))

    def _abstract(self, number: int) -> bool:
        fact = self.tree.functions[number].fact
        return len(fact.calls) <= 1 and not fact.binds and (not fact.exits or fact.exits[0].kind == "raise")

    def _passed(self, fn: Fn, at: int, call: Call, held: frozenset[str]) -> None:
        """Edges to the functions that a call is given."""
        may_hold = self._may_hold
        for atoms in call.args if not call.keywords else (*call.args, *[v for _, v in call.keywords]):
            for atom in atoms:
                if isinstance(atom, int):
                    continue
                may = may_hold.get(atom)
                if may is None:
                    may = atom[0] == "<" or (atom[0] != "=" and atom.rpartition(".")[2] in self._function_names)
                    may_hold[atom] = may
                if not may and atom not in held and (atom[0] == "=" or atom not in self._renamed[fn.module]):
                    continue
                found = self.resolver.atom(fn.number, atom)
                if found is not None and found.kind == "func":
                    self.edges[fn.number].append(Edge(fn.number, int(found.ref), at, "passed", Confidence.BOUND))

    def _held(self, fn: Fn) -> frozenset[str]:
        """Names that may hold a function here: bound to a lambda, or to what a call gives that may be a partial or one of ours."""
        calls = fn.fact.calls
        out = []
        for bind in fn.fact.binds:
            first = bind.value[0] if bind.value else ""
            if isinstance(first, int):
                last = calls[first].name.rpartition(".")[2]
                wanted = self._wanted.get(last)
                if wanted is None:
                    self._wanted[last] = wanted = self._means_something(last)
                if not wanted and last not in _PASS_ON and not self._local(fn, calls[first].name):
                    continue
            elif bind.op != "lambda":
                continue
            out.append(bind.target)
        return frozenset(out)

    def _decorators(self, fn: Fn) -> None:
        for decorator in fn.fact.decorators:
            if not decorator.name:
                continue
            found = self.resolver.path(fn.parent if fn.parent >= 0 else fn.number, decorator.name)
            if found is not None and found.kind == "func":
                for child in self.tree.functions[int(found.ref)].children:
                    if not self.tree.functions[child].fact.name.startswith("<"):
                        self.edges[fn.number].append(Edge(fn.number, child, -1, "decorator", Confidence.BOUND))

    def _unknown(self, fn: Fn, at: int, call: Call, last: str) -> None:
        """A method that we define somewhere, on a receiver that we do not know."""
        base = self.resolver.receiver(fn.number, call)
        if base is not None and base.kind == "inst":
            owner = int(base.ref)
            own = [m for sub in self.resolver.subclasses(owner) if (m := self.tree.classes[sub].methods.get(last)) is not None]
            if own:
                self.resolved += 1
                self.edges[fn.number].extend(Edge(fn.number, m, at, "override", Confidence.BOUND) for m in own)
                return
        candidates = self._defined.get(last, [])
        if 0 < len(candidates) <= _FEW and last not in EVERYDAY:
            self.edges[fn.number].extend(Edge(fn.number, m, at, "name", Confidence.HINT) for m in candidates)
        if candidates and last not in EVERYDAY:
            self.unresolved += 1
