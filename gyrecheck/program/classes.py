"""Classes across files: bases in method resolution order, subclasses, and what an attribute of an instance is."""

from __future__ import annotations

from gyrecheck.model.facts import Bind
from gyrecheck.program.imported import Imported
from gyrecheck.program.tree import Cls, Thing


class Classes(Imported):
    """The class part of the resolver."""

    def bases(self, number: int) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """A class with its first-party ancestors in method resolution order (depth first), and its external bases' names."""
        if number in self._mros:
            return self._mros[number]
        self._mros[number] = ((number,), ())
        cls = self.tree.classes[number]
        own: list[int] = [number]
        outside: list[str] = []
        for base in cls.fact.bases:
            found = self.path(cls.scope, base) if base else None
            if found is None:
                continue
            if found.kind == "class":
                inner, out = self.bases(int(found.ref))
                own.extend(c for c in inner if c not in own)
                outside.extend(out)
            elif found.kind == "ext":
                outside.append(str(found.ref))
        self._mros[number] = (tuple(own), tuple(outside))
        return self._mros[number]

    def types_of_class(self, number: int) -> tuple[str, ...]:
        """The vocabulary types a class inherits from."""
        spelled = self.lexicon.type_names
        return tuple(t for base in self.bases(number)[1] if (t := spelled.get(base) or self.lexicon.type_made_by(base)))

    def subclasses(self, number: int) -> list[int]:
        """First-party classes that inherit from a class, near or far."""
        if self._subclasses is None:
            self._subclasses = {}
            for cls in self.tree.classes:
                for base in self.bases(cls.number)[0][1:]:
                    self._subclasses.setdefault(base, []).append(cls.number)
        return self._subclasses.get(number, [])

    def method(self, cls: int, name: str) -> int:
        """The function that `instance.name` means, or -1."""
        for owner in self.bases(cls)[0]:
            found = self.tree.classes[owner].methods.get(name)
            if found is not None:
                return found
        return -1

    def attribute(self, base: Thing, name: str) -> Thing | None:
        """`base.name`."""
        how = self.lexicon.names.get(name)
        if how == "wrap.self" and base.kind in {"func", "class", "inst"}:
            return base
        if base.kind == "module":
            return self.exported(int(base.ref), name)
        if base.kind == "ext":
            return Thing("ext", f"{base.ref}.{name}")
        if base.kind in {"class", "inst"}:
            return self._member(int(base.ref), name)
        if base.kind == "type":
            kind = self.lexicon.attributes.get(str(base.ref), {}).get(name)
            if kind:
                return Thing("type", self.lexicon.type_names.get(kind, kind))
            return None
        return None

    def _member(self, cls: int, name: str) -> Thing | None:
        key = (cls, name)
        if key in self._members:
            return self._members[key]
        self._members[key] = None
        found: Thing | None = None
        at = self.method(cls, name)
        if at >= 0:
            fact = self.tree.functions[at].fact
            if any(d.name.rpartition(".")[2] in {"property", "cached_property"} for d in fact.decorators):
                found = self.returned(at)
            else:
                found = Thing("func", at)
        if found is None:
            for owner in self.bases(cls)[0]:
                for number, bind in self._attribute_binds(owner).get(name, ()):
                    found = self.bound(number, bind)
                    if found is not None:
                        break
                nested = self.tree.names(self.tree.classes[owner].body).classes.get(name)
                if found is None and nested is not None:
                    found = Thing("class", nested)
                if found is not None:
                    break
        if found is None and at < 0:
            found = self._external_member(cls, name)
        self._members[key] = found
        return found

    def _external_member(self, cls: int, name: str) -> Thing | None:
        for base in self.types_of_class(cls):
            kind = self.lexicon.attributes.get(base, {}).get(name)
            if kind:
                return Thing("type", self.lexicon.type_names.get(kind, kind))
            if name in self.lexicon.methods.get(base, {}):
                return Thing("ext", f"{base}.{name}")
        return None

    def _attribute_binds(self, cls: int) -> dict[str, list[tuple[int, Bind]]]:
        if cls not in self._attributes:
            table: dict[str, list[tuple[int, Bind]]] = {}
            owner: Cls = self.tree.classes[cls]
            for bind in self.tree.functions[owner.body].fact.binds:
                table.setdefault(bind.target, []).append((owner.body, bind))
            for number in sorted(owner.methods.values(), key=lambda n: self.tree.functions[n].fact.name != "__init__"):
                fact = self.tree.functions[number].fact
                me = fact.params[0].name + "." if fact.params else "self."
                for bind in fact.binds:
                    if bind.target.startswith(me):
                        table.setdefault(bind.target[len(me) :], []).append((number, bind))
            self._attributes[cls] = table
        return self._attributes[cls]
