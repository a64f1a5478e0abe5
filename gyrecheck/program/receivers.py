"""What is `x` in `x.step()`: results of calls, and parameters by annotation, default, or what callers pass."""

from __future__ import annotations

from gyrecheck.model.facts import Call
from gyrecheck.program.asked import DEPTH, LINKS, UNASKED, split
from gyrecheck.program.by_use import ByUse
from gyrecheck.program.tree import Fn, Thing

_CALL_SITES = 6
_SITES_READ = 40


class Receivers(ByUse):
    """The value part of the resolver."""

    def callee(self, number: int, at: int) -> Thing | None:
        """What call `at` of function `number` calls."""
        key = number << 24 | at
        known = self._callees.get(key, UNASKED)
        if known is not UNASKED:
            return known
        self._callees[key] = None
        call = self.tree.functions[number].fact.calls[at]
        found: Thing | None = None
        if call.name.startswith("."):
            base = self.receiver(number, call)
            if len(call.name) == 1:
                found = base
            elif base is not None:
                found = self.attribute(base, call.name[1:])
        elif call.name != "{}":
            found = self.path(number, call.name)
        self._callees[key] = found
        return found

    def receiver(self, number: int, call: Call) -> Thing | None:
        """What stands before the last dot of a call."""
        if not call.name.startswith("."):
            head, tail = split(call.name)
            return self.path(number, head) if tail is not None else None
        for atom in call.receiver:
            if isinstance(atom, int) and self.tree.functions[number].fact.calls[atom].name == "super":
                return self._super(number)
            found = self.atom(number, atom)
            if found is not None:
                return found
        return None

    def _super(self, number: int) -> Thing | None:
        at = number
        while at >= 0 and self.tree.functions[at].cls < 0:
            at = self.tree.functions[at].parent
        if at < 0:
            return None
        mro, outside = self.bases(self.tree.functions[at].cls)
        if len(mro) > 1:
            return Thing("inst", mro[1])
        known = [t for b in outside if (t := self.lexicon.type_names.get(b) or self.lexicon.type_made_by(b))]
        return Thing("type", known[0]) if known else None

    def result(self, number: int, at: int, part: int = -1) -> Thing | None:
        """What call `at` of function `number` returns."""
        if self._links >= LINKS:
            return None
        self._links += 1
        try:
            return self._result(number, at, part)
        finally:
            self._links -= 1

    def _result(self, number: int, at: int, part: int) -> Thing | None:
        call = self.tree.functions[number].fact.calls[at]
        if call.name == "{}":
            return None
        if call.result == -2:
            base = self.receiver(number, call)
            return self.attribute(base, call.name[1:]) if base is not None else None
        target = self.callee(number, at)
        if target is None:
            base = self.receiver(number, call)
            return self._method_result(base, call.name.rpartition(".")[2]) if base is not None else None
        if target.kind == "class":
            return Thing("inst", target.ref)
        if target.kind == "func":
            return self.returned(int(target.ref), part)
        if target.kind == "inst":
            inner = self.called_on(int(target.ref))
            return self.returned(inner, part) if inner >= 0 else None
        if target.kind == "ext":
            role = self.lexicon.symbols.get(str(target.ref))
            if target.ref in {"importlib.import_module", "builtins.__import__"}:
                return self._dynamic(number, call)
            if role == "wrap.first":
                return self._wrapped(number, call)
            made = self.lexicon.type_made_by(str(target.ref))
            if made:
                return Thing("type", made)
            owner, _, method = str(target.ref).rpartition(".")
            if owner in self.lexicon.kinds:
                return self._method_result(Thing("type", owner), method)
            return Thing("result", target.ref) if not str(target.ref).startswith("builtins.") else self._builtin(number, call)
        return None

    def _dynamic(self, number: int, call: Call) -> Thing | None:
        """`importlib.import_module("a.b")` with a literal name."""
        name = str(call.args[0][0]) if call.args and call.args[0] else ""
        if not name.startswith("='"):
            return None
        found = self.tree.module(name[2:-1], self.tree.functions[number].module)
        return Thing("module", found) if found >= 0 else Thing("ext", name[2:-1])

    def _builtin(self, number: int, call: Call) -> Thing | None:
        if call.name in {"next", "iter", "list", "tuple", "sorted", "reversed", "getattr"} and call.args:
            for atom in call.args[0]:
                found = self.atom(number, atom)
                if found is not None and call.name != "getattr":
                    return found
        return None

    def _wrapped(self, number: int, call: Call) -> Thing | None:
        for atoms in (*call.args, *(v for _, v in call.keywords)):
            for atom in atoms:
                found = self.atom(number, atom)
                if found is not None:
                    return found
        return None

    def _method_result(self, base: Thing, method: str) -> Thing | None:
        if base.kind != "type":
            return None
        kind = self.lexicon.returns.get(str(base.ref), {}).get(method)
        return Thing("type", self.lexicon.type_names.get(kind, kind)) if kind else None

    def called_on(self, cls: int) -> int:
        """The function that calling an instance runs: `__call__`, or `forward`; -1 for none."""
        at = self.method(cls, "__call__")
        return at if at >= 0 else self.method(cls, "forward")

    def returned(self, number: int, part: int = -1) -> Thing | None:
        """What a first-party function returns, by annotation or by its return statements."""
        key = number if part < 0 else -(number * 16 + part) - 1
        if key in self._returns:
            return self._returns[key]
        self._returns[key] = None
        fact = self.tree.functions[number].fact
        found = self.annotation(number, fact.returns) if fact.returns and part < 0 else None
        if found is None and self._depth <= DEPTH:
            self._depth += 1
            found = self._given_back(number, part)
            self._depth -= 1
        self._returns[key] = found
        return found

    def _given_back(self, number: int, part: int) -> Thing | None:
        """The first return statement whose value is known."""
        for leave in self.tree.functions[number].fact.exits:
            if leave.kind not in {"return", "yield"} or not leave.items:
                continue
            whole = leave.items[0] if len(leave.items) == 1 else ()
            for atom in whole if part < 0 else leave.items[part] if part < len(leave.items) else ():
                found = self.atom(number, atom)
                if found is not None:
                    return found
        return None

    def parameter(self, fn: Fn, name: str) -> Thing | None:
        """What a parameter is: the instance itself, its annotation, its default, or what callers pass."""
        param = self.tree.names(fn.number).params[name]
        if fn.cls >= 0 and fn.fact.params and fn.fact.params[0].name == name:
            plain = not any(d.name.rpartition(".")[2] == "staticmethod" for d in fn.fact.decorators)
            if plain:
                kind = "class" if any(d.name.rpartition(".")[2] == "classmethod" for d in fn.fact.decorators) else "inst"
                return Thing(kind, fn.cls)
        if param.annotation:
            found = self.annotation(fn.number, param.annotation)
            if found is not None:
                return found
        for atom in param.default or ():
            outer = self.tree.classes[fn.cls].body if fn.cls >= 0 else fn.parent
            found = self.atom(outer if outer >= 0 else fn.number, atom)
            if found is not None:
                return found
        return self._passed(fn, param.name) if not param.kind.startswith("*") else None

    def _passed(self, fn: Fn, name: str) -> Thing | None:
        """What callers pass for a parameter: the first of a few call sites that knows."""
        fact = fn.fact
        bound = fn.cls >= 0 and not any(d.name.rpartition(".")[2] == "staticmethod" for d in fact.decorators)
        wanted = self.tree.classes[fn.cls].fact.name if fn.cls >= 0 and fact.name == "__init__" else fact.name
        plain = [p.name for p in fact.params if not p.kind]
        index = plain.index(name) - bound if name in plain else -1
        tried = 0
        for number, at in self.sites(wanted)[:_SITES_READ]:
            call = self.tree.functions[number].fact.calls[at]
            atoms = next((v for k, v in call.keywords if k == name), call.args[index] if 0 <= index < len(call.args) else ())
            if not atoms:
                continue
            target = self.callee(number, at)
            right = target is not None and (
                (target.kind == "func" and target.ref == fn.number)
                or (target.kind == "class" and self.method(int(target.ref), "__init__") == fn.number)
            )
            if not right:
                continue
            for atom in atoms:
                found = self.atom(number, atom)
                if found is not None:
                    return found
            tried += 1
            if tried >= _CALL_SITES:
                break
        return None

    def sites(self, name: str) -> list[tuple[int, int]]:
        """All calls whose last name component is `name`, as (function, call)."""
        if self._sites is None:
            self._sites = self._all_sites()
        return self._sites.get(name, [])

    def _all_sites(self) -> dict[str, list[tuple[int, int]]]:
        table: dict[str, list[tuple[int, int]]] = {c.fact.name: [] for c in self.tree.classes}
        table.update((f.fact.name, []) for f in self.tree.functions)
        rows: dict[str, list[tuple[int, int]] | None] = {}  # by the whole name: most names are called often
        for fn in self.tree.functions:
            for at, call in enumerate(fn.fact.calls):
                name = call.name
                if name not in rows:
                    rows[name] = table.get(name.rpartition(".")[2])
                row = rows[name]
                if row is not None:
                    row.append((fn.number, at))
        return table
