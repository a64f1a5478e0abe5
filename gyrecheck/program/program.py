"""The whole program as the rules see it: functions with their effects, chains as evidence, guards, regions, sides of modules."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from gyrecheck.model.facts import Atoms, Call, Module
from gyrecheck.model.finding import Confidence, Evidence
from gyrecheck.program.calls import Calls, Edge
from gyrecheck.program.effects import Effects, Hop
from gyrecheck.program.resolve import Resolver
from gyrecheck.program.tree import Fn, Tree
from gyrecheck.rulebook.lexicon import Lexicon
from gyrecheck.rulebook.lint_words import LintWords
from gyrecheck.rulebook.regions import RegionNames

ACTING = ("env.step", "policy.generate", "rollout.run")
"""Roles that advance an environment or write completions."""
SAMPLING = (*ACTING, "env.reset", "reward.score")
LEARNING = ("loss.backward", "optimizer.step", "update.run")
"""Roles that take or apply gradients."""
TRAINING = (*LEARNING, "scheduler.step", "grad.clip")


_EVALUATES = frozenset({"eval", "evals", "evaluate", "evaluation", "evaluator"})
"""Words of a file's name that say that its functions play to measure."""


class Program:
    """Everything known about the checked files; built once, asked by the rules."""

    def __init__(self, modules: tuple[Module, ...], lexicon: Lexicon, regions: RegionNames, words: LintWords) -> None:
        self.tree = Tree(modules)
        self.lexicon, self.regions, self.words = lexicon, regions, words
        self._regions: dict[int, frozenset[str]] = {}
        self.resolver = Resolver(self.tree, lexicon)
        self.calls = Calls(self.tree, lexicon, self.resolver)
        self.full = Effects(self.calls, lambda _: False)
        self.effects = Effects(self.calls, self._barrier)
        self._role_of: dict[int, dict[int, tuple[str, Confidence]]] = {}

    def _barrier(self, number: int) -> bool:
        return "evaluation" in self.region(number) or self.is_driver(number)

    # ---- functions

    def all_unrecorded(self, name: str) -> bool:
        """Whether the program has methods of a name and each is decorated to record no graph."""
        found = self._methods.get(name, ())
        return bool(found) and all(self.unrecorded_by_decorator(number) for number in found)

    @cached_property
    def _methods(self) -> dict[str, list[int]]:
        out: dict[str, list[int]] = {}
        for fn in self.functions:
            if fn.cls >= 0:
                out.setdefault(fn.fact.name, []).append(fn.number)
        return out

    @property
    def functions(self) -> list[Fn]:
        """All functions, module bodies included."""
        return self.tree.functions

    def path(self, number: int) -> str:
        """The file of a function."""
        return self.tree.modules[self.tree.functions[number].module].path

    def name(self, number: int) -> str:
        """A function's qualified name in its file, for people."""
        fact = self.tree.functions[number].fact
        return fact.qualname.replace(".<locals>", "") or "module level"

    def region(self, number: int) -> frozenset[str]:
        """The regions that a function's name puts it in; `dataset` only where the class or the name `collate` says so."""
        known = self._regions.get(number)
        if known is None:
            self._regions[number] = known = self._region(self.tree.functions[number])
        return known

    def _region(self, fn: Fn) -> frozenset[str]:
        found = self.regions.of(fn.fact.name)
        stem = self.tree.modules[fn.module].path.rpartition("/")[2].partition(".")[0].lower()
        if not _EVALUATES.isdisjoint(stem.split("_")) and not self.own(fn.number, "buffer.put"):
            found |= {"evaluation"}
        if "dataset" in found:
            kinds = self.regions.table["dataset"].class_kinds
            if "collate" not in fn.fact.name and not (fn.cls >= 0 and self.calls.class_kind(fn.cls) in kinds):
                found -= {"dataset"}
        if "evaluation" in found and fn.fact.name.startswith("play") and self.own(fn.number, "buffer.put"):
            found -= {"evaluation"}  # it plays to fill the store
        return found

    def is_driver(self, number: int) -> bool:
        """Reaches both sides and does neither by itself, or is a composition root that a vocabulary lists."""
        own = self.full.of[number]
        if self.is_listed(number):
            return True
        if len(own) < 2:  # two sides are two effects
            return False
        sides = []
        for roles in (ACTING, LEARNING):
            near = [own[r].distance for r in roles if r in own and own[r].confidence is not Confidence.HINT]
            sides.append(min(near) if near else -1)
        return sides[0] > 0 and sides[1] > 0

    def is_listed(self, number: int) -> bool:
        """A composition root that a vocabulary lists."""
        name = self.tree.functions[number].fact.name
        return (name in self._driver_names or name[0] == "<") and self.tree.qualified(number) in self.lexicon.drivers

    @cached_property
    def _driver_names(self) -> frozenset[str]:
        return frozenset(d.rpartition(".")[2] for d in self.lexicon.drivers)

    def role(self, number: int, call: int) -> str:
        """The role of one call when it is surely known, else empty."""
        found = self.known_role(number, call)
        return found[0] if found is not None and found[1] is not Confidence.HINT else ""

    def known_role(self, number: int, call: int) -> tuple[str, Confidence] | None:
        """The role of one call and how it is known."""
        if not self.calls.roles[number]:
            return None
        if number not in self._role_of:
            self._role_of[number] = {r.call: (r.role, r.confidence) for r in self.calls.roles[number]}
        return self._role_of[number].get(call)

    def own(self, number: int, *roles: str, hints: bool = False) -> list[tuple[int, str]]:
        """A function's own calls with one of the roles, in order, as (call number, role)."""
        found = self.calls.roles[number]
        if not found:  # nine functions of ten
            return []
        return [(r.call, r.role) for r in found if r.role in roles and (hints or r.confidence is not Confidence.HINT)]

    def doing(self, *roles: str, hints: bool = False) -> list[int]:
        """The functions that have one of the roles by themselves, in order."""
        index = self._hinted if hints else self._sure
        if len(roles) == 1:
            return index.get(roles[0], [])
        return sorted({number for role in roles for number in index.get(role, ())})

    @cached_property
    def _sure(self) -> dict[str, list[int]]:
        return self._by_role(hints=False)

    @cached_property
    def _hinted(self) -> dict[str, list[int]]:
        return self._by_role(hints=True)

    def calling(self, names: frozenset[str]) -> list[int]:
        """The functions with a call whose last name is one of `names`, in order."""
        return sorted({number for name in names for number in self._callers_of.get(name, ())})

    @cached_property
    def _callers_of(self) -> dict[str, list[int]]:
        out: dict[str, list[int]] = {}
        for fn in self.tree.functions:
            for name in {call.name.rpartition(".")[2] for call in fn.fact.calls} if fn.fact.calls else ():
                out.setdefault(name, []).append(fn.number)
        return out

    def _by_role(self, *, hints: bool) -> dict[str, list[int]]:
        out: dict[str, list[int]] = {}
        for number, found in enumerate(self.calls.roles):
            for role in {r.role for r in found if hints or r.confidence is not Confidence.HINT} if found else ():
                out.setdefault(role, []).append(number)
        return out

    def has(self, number: int, *roles: str, full: bool = False) -> str:
        """The nearest of the roles that a function surely has by itself or through calls, or empty."""
        table = (self.full if full else self.effects).of[number]
        if not table:
            return ""
        near = [(table[r].distance, r) for r in roles if r in table and table[r].confidence is not Confidence.HINT]
        return min(near)[1] if near else ""

    # ---- callers

    @cached_property
    def callers(self) -> list[list[Edge]]:
        """The edges into every function."""
        out: list[list[Edge]] = [[] for _ in self.tree.functions]
        for edges in self.calls.edges:
            for edge in edges:
                out[edge.callee].append(edge)
        return out

    # ---- guards

    def blocks_up(self, number: int, block: int) -> Iterator[int]:
        """A block and those around it, innermost first."""
        blocks = self.tree.functions[number].fact.blocks
        while block >= 0:
            yield block
            block = blocks[block].parent

    def loop_of(self, number: int, block: int) -> int:
        """The innermost loop around a block, or -1; comprehensions are no loops here."""
        blocks = self.tree.functions[number].fact.blocks
        return next((b for b in self.blocks_up(number, block) if blocks[b].kind in {"for", "while"}), -1)

    def loops_of(self, number: int, block: int) -> tuple[int, ...]:
        """All loops around a block, innermost first."""
        blocks = self.tree.functions[number].fact.blocks
        return tuple(b for b in self.blocks_up(number, block) if blocks[b].kind in {"for", "while"})

    def within(self, number: int, block: int, outer: int) -> bool:
        """Whether `block` lies in `outer` or is it."""
        return any(b == outer for b in self.blocks_up(number, block))

    def unrecorded(self, number: int, block: int) -> bool:
        """Whether gradient recording is off in a block, by a context manager or a decorator of the function itself."""
        fact = self.tree.functions[number].fact
        for at in self.blocks_up(number, block):
            held = fact.blocks[at]
            if held.kind == "with":
                for atom in held.detail:
                    role = self._guard(number, atom)
                    if role:
                        return role == "guard.no_grad"
        return self.unrecorded_by_decorator(number)

    def unrecorded_by_decorator(self, number: int) -> bool:
        """Whether a decorator of the function (or of the one it is nested in) switches recording off."""
        fn = self.tree.functions[number]
        for decorator in fn.fact.decorators:
            found = self.resolver.path(fn.parent if fn.parent >= 0 else number, decorator.name) if decorator.name else None
            symbol = str(found.ref) if found is not None and found.kind == "ext" else ""
            role = self.lexicon.symbols.get(symbol) or self.lexicon.makes.get(self.lexicon.type_made_by(symbol), "")
            role = role or self.lexicon.names.get(decorator.name.rpartition(".")[2], "")
            if role == "guard.no_grad" and "=True" not in decorator.args:
                return True
        return False

    def _guard(self, number: int, atom: str | int) -> str:
        fact = self.tree.functions[number].fact
        if isinstance(atom, int):
            role = self.role(number, atom)
            call = fact.calls[atom]
            if role == "guard.no_grad" and call.args and "=True" in call.args[0]:
                return "guard.grad"
            if role in {"guard.grad", "guard.no_grad"} and call.args and "=False" in call.args[0]:
                return "guard.no_grad" if role == "guard.grad" or "set_grad" in call.name else "guard.grad"
            return role if role.startswith("guard.") else ""
        for bind in fact.binds:  # `guard = torch.no_grad() if x else nullcontext()` counts as a guard
            if bind.target == atom:
                for inner in bind.value:
                    if isinstance(inner, int) and self.role(number, inner) == "guard.no_grad":
                        return "guard.no_grad"
        return ""

    # ---- evidence

    def place(self, number: int, line: int, text: str = "", label: str = "", column: int = 0) -> Evidence:
        """A secondary place in the file of a function."""
        return Evidence(self.path(number), line, text, column, label=label)

    def chain(self, number: int, role: str, *, full: bool = False) -> tuple[Evidence, ...]:
        """The calls from a function down to the one with the role, as evidence, top first."""
        return self.hops((self.full if full else self.effects).chain(number, role))

    def hops(self, hops: tuple[Hop, ...]) -> tuple[Evidence, ...]:
        """Hops as evidence, one a call."""
        out = []
        for hop in hops:
            fact = self.tree.functions[hop.function].fact
            if hop.call < 0:
                out.append(self.place(hop.function, fact.line, f"{self.name(hop.function)} is decorated with it", "through"))
                continue
            call = fact.calls[hop.call]
            goal = f" -> {self.name(hop.callee)}" if hop.callee >= 0 else ""
            out.append(
                self.place(hop.function, call.line, f"{self.name(hop.function)} calls {readable(call)}{goal}", "through", call.column + 1)
            )
        return tuple(out)

    def call(self, number: int, at: int) -> Call:
        """Call number `at` of a function."""
        return self.tree.functions[number].fact.calls[at]


def readable(call: Call) -> str:
    """A call's name for a message."""
    return call.name if not call.name.startswith(".") else f"(…){call.name}" if len(call.name) > 1 else "(…)"


def roots(atoms: Atoms) -> Iterator[str]:
    """The first names of the paths among atoms: `row[val].x` -> `row`."""
    for atom in atoms:
        if isinstance(atom, str) and not atom.startswith(("=", "<")):
            yield atom.split(".", 1)[0].split("[", 1)[0]
