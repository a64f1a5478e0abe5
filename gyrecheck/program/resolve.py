"""What is `x` in `x.step()`: names across files, attributes through classes, values through assignments, parameters through call sites.

Evidence in falling order: constructor or known factory, annotation, default, what callers pass. Every question is answered once and
kept; a question that asks itself is answered with None, so recursion and import cycles end.
"""

from __future__ import annotations

from gyrecheck.model.facts import Atom, Bind
from gyrecheck.program.asked import DEPTH, UNASKED, first_name, split
from gyrecheck.program.receivers import Receivers
from gyrecheck.program.tree import Thing


class Resolver(Receivers):
    """Answers over one tree and one lexicon."""

    def path(self, number: int, path: str) -> Thing | None:
        """What the dotted `path` is, read in function `number`."""
        known = self._paths[number]
        found = known.get(path, UNASKED)
        if found is not UNASKED:
            return found
        home = self._home(number, first_name(path))
        if home != number:
            known[path] = found = self.path(home, path)
            return found
        if self._depth > DEPTH:
            return None
        known[path] = None
        self._depth += 1
        try:
            found = self._path(number, path)
        finally:
            self._depth -= 1
        known[path] = found
        return found

    def _home(self, number: int, name: str) -> int:
        """The scope that binds a name as seen from function `number`; the module body when none does."""
        functions = self.tree.functions
        fn = functions[number]
        while fn.parent >= 0 and name not in (fn.names or self.tree.names(fn.number)).bound:
            fn = functions[fn.parent]
        return fn.number

    def _path(self, number: int, path: str) -> Thing | None:
        head, tail = split(path)
        if tail is None:
            return self._name(number, head) or self._untyped(number, head)
        base = self.path(number, head)
        if tail.startswith("["):
            exact = self._bound_item(number, path)
            return exact or base
        if base is None:
            return self._bound_item(number, path)
        return self.attribute(base, tail) or self._bound_item(number, path) or (self.by_use(number, path) if base.kind == "inst" else None)

    def _untyped(self, number: int, name: str) -> Thing | None:
        """A parameter that no annotation, default or caller says anything about."""
        return self.by_use(number, name) if name in self.tree.names(number).params else None

    def _bound_item(self, number: int, path: str) -> Thing | None:
        """`x.y` or `x[k]` assigned in this very function."""
        binds = self.tree.names(number).binds.get(path)
        return self._first(number, binds) if binds else None

    def _name(self, number: int, name: str) -> Thing | None:
        at: int = number
        while at >= 0:
            fn = self.tree.functions[at]
            names = fn.names or self.tree.names(at)
            if name not in names.bound:
                at = fn.parent
                continue
            if name in names.functions:
                return Thing("func", names.functions[name])
            if name in names.classes:
                return Thing("class", names.classes[name])
            if name in names.params:
                found = self.parameter(fn, name)
                if found is None and name in names.binds:
                    found = self._first(at, names.binds[name])
                return found
            found = self._first(at, names.binds[name]) if name in names.binds else None
            if found is None and name in names.imports:
                for entry in names.imports[name]:
                    found = self.imported(fn.module, entry)
                    if found is not None:
                        break
            return found
        module = self.tree.functions[number].module
        found = self.star(module, name)
        if found is None and name.isidentifier():
            return Thing("ext", f"builtins.{name}")
        return found

    def _first(self, number: int, binds: list[Bind]) -> Thing | None:
        for bind in binds:
            found = self.bound(number, bind)
            if found is not None:
                return found
        return None

    def bound(self, number: int, bind: Bind) -> Thing | None:
        """What one binding binds."""
        if bind.annotation:
            found = self.annotation(number, bind.annotation)
            if found is not None:
                return found
        if bind.form == "+=" or bind.op == "cmp" or bind.form in {"except", "del"}:
            return None
        part = -1
        if "/" in bind.form:
            part = int(bind.form.partition("/")[0])
        for atom in bind.value:
            found = self.atom(number, atom, part)
            if found is not None:
                return found
        return None

    def atom(self, number: int, atom: Atom, part: int = -1) -> Thing | None:
        """What one atom is; `part` picks an element when the atom is a call that returns a tuple."""
        if isinstance(atom, int):
            return self.result(number, atom, part)
        if atom.startswith("="):
            return None
        if atom.startswith("<lambda "):
            fn = self.tree.functions[number]
            return Thing("func", self.tree.first_function[fn.module] + int(atom[8:-1]))
        return None if part >= 0 else self.path(number, atom)

    def annotation(self, number: int, text: str) -> Thing | None:
        """An instance of what the annotation names."""
        found = self.path(self._scope_of_annotation(number), text)
        return None if found is None else self.instance(found)

    def _scope_of_annotation(self, number: int) -> int:
        fn = self.tree.functions[number]
        return fn.parent if fn.parent >= 0 and not fn.fact.name.startswith("<") else number

    def instance(self, of: Thing) -> Thing | None:
        """What calling a class gives, or None when `of` is no class that we know."""
        if of.kind == "class":
            return Thing("inst", of.ref)
        if of.kind == "ext":
            made = self.lexicon.type_names.get(str(of.ref)) or self.lexicon.type_made_by(str(of.ref))
            return Thing("type", made) if made else None
        return None
