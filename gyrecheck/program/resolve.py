"""What is `x` in `x.step()`: names across files, attributes through classes, values through assignments, parameters through call sites.

Evidence in falling order: constructor or known factory, annotation, default, what callers pass. Every question is answered once and
kept; a question that asks itself is answered with None, so recursion and import cycles end.
"""

from __future__ import annotations

from gyrecheck.model.facts import Atom, Bind, Call, Import
from gyrecheck.program.tree import Cls, Fn, Thing, Tree
from gyrecheck.rulebook.lexicon import Lexicon

_DEPTH = 24
_CALL_SITES = 6
_SITES_READ = 40


class Resolver:
    """Answers over one tree and one lexicon."""

    def __init__(self, tree: Tree, lexicon: Lexicon) -> None:
        self.tree, self.lexicon = tree, lexicon
        self._paths: dict[tuple[int, str], Thing | None] = {}
        self._members: dict[tuple[int, str], Thing | None] = {}
        self._returns: dict[int, Thing | None] = {}
        self._mros: dict[int, tuple[tuple[int, ...], tuple[str, ...]]] = {}
        self._sites: dict[str, list[tuple[int, int]]] | None = None
        self._attributes: dict[int, dict[str, list[tuple[int, Bind]]]] = {}
        self._subclasses: dict[int, list[int]] | None = None
        self._callees: dict[tuple[int, int], Thing | None] = {}
        self._exports: dict[tuple[int, str], Thing | None] = {}
        self._depth = 0

    # ---- names and paths

    def path(self, number: int, path: str) -> Thing | None:
        """What the dotted `path` is, read in function `number`."""
        key = (number, path)
        if key in self._paths:
            return self._paths[key]
        home = self._home(number, path.split(".", 1)[0].split("[", 1)[0])
        if home != number:
            self._paths[key] = found = self.path(home, path)
            return found
        if self._depth > _DEPTH:
            return None
        self._paths[key] = None
        self._depth += 1
        try:
            found = self._path(number, path)
        finally:
            self._depth -= 1
        self._paths[key] = found
        return found

    def _home(self, number: int, name: str) -> int:
        """The scope that binds a name as seen from function `number`; the module body when none does."""
        at = number
        functions = self.tree.functions
        while True:
            parent = functions[at].parent
            if parent < 0:
                return at
            names = self.tree.names(at)
            if name in names.params or name in names.binds or name in names.imports or name in names.functions or name in names.classes:
                return at
            at = parent

    def _path(self, number: int, path: str) -> Thing | None:
        head, tail = _split(path)
        if tail is None:
            return self._name(number, head)
        base = self.path(number, head)
        if tail.startswith("["):
            exact = self._bound_item(number, path)
            return exact or base
        if base is None:
            return self._bound_item(number, path)
        return self.attribute(base, tail) or self._bound_item(number, path)

    def _bound_item(self, number: int, path: str) -> Thing | None:
        """`x.y` or `x[k]` assigned in this very function."""
        binds = self.tree.names(number).binds.get(path)
        return self._first(number, binds) if binds else None

    def _name(self, number: int, name: str) -> Thing | None:
        at: int = number
        while at >= 0:
            fn = self.tree.functions[at]
            names = self.tree.names(at)
            if name in names.functions:
                return Thing("func", names.functions[name])
            if name in names.classes:
                return Thing("class", names.classes[name])
            if name in names.params:
                found = self._parameter(fn, name)
                if found is None and name in names.binds:
                    found = self._first(at, names.binds[name])
                return found
            if name in names.binds or name in names.imports:
                found = self._first(at, names.binds[name]) if name in names.binds else None
                if found is None and name in names.imports:
                    for entry in names.imports[name]:
                        found = self._imported(fn.module, entry)
                        if found is not None:
                            break
                return found
            at = fn.parent
        module = self.tree.functions[number].module
        found = self._star(module, name)
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

    # ---- imports

    def _imported(self, module: int, entry: Import) -> Thing | None:
        if entry.kind in {"module", "dynamic"}:
            target = entry.module if entry.alias else entry.module.partition(".")[0]
            found = self.tree.module(target, module)
            return Thing("module", found) if found >= 0 else Thing("ext", target)
        if entry.level:
            folder = self.tree.relative(module, entry.level, entry.module)
            inside = self.tree.at_path(f"{folder}/{entry.name}" if folder else entry.name)
            package = self.tree.at_path(folder)
            if package >= 0 and package != module:
                found_thing = self.exported(package, entry.name)
                if found_thing is not None:
                    return found_thing
            return Thing("module", inside) if inside >= 0 else Thing("ext", f"{folder.replace('/', '.')}.{entry.name}")
        at = self.tree.module(entry.module, module)
        if at >= 0:
            found_thing = self.exported(at, entry.name)
            if found_thing is not None:
                return found_thing
        inside = self.tree.module(f"{entry.module}.{entry.name}", module)
        return Thing("module", inside) if inside >= 0 else Thing("ext", f"{entry.module}.{entry.name}")

    def exported(self, module: int, name: str) -> Thing | None:
        """What `module.name` is: its own definition, a re-export, a star import, or a submodule."""
        key = (module, name)
        if key in self._exports:
            return self._exports[key]
        self._exports[key] = None
        body = self.tree.first_function[module]
        names = self.tree.names(body)
        found: Thing | None = None
        if name in names.functions or name in names.classes or name in names.binds or name in names.imports:
            found = self.path(body, name)
        if found is None:
            found = self._star(module, name)
        if found is None:
            base = self.tree.modules[module].path.removesuffix(".py").removesuffix("/__init__")
            inside = self.tree.at_path(f"{base}/{name}")
            found = Thing("module", inside) if inside >= 0 else None
        self._exports[key] = found
        return found

    def _star(self, module: int, name: str) -> Thing | None:
        for entries in self.tree.imports[module].values():
            for entry in entries:
                if entry.kind != "star":
                    continue
                if entry.level:
                    at = self.tree.at_path(self.tree.relative(module, entry.level, entry.module))
                else:
                    at = self.tree.module(entry.module, module)
                if at >= 0 and at != module:
                    found = self.exported(at, name)
                    if found is not None:
                        return found
                elif at < 0 and (f"{entry.module}.{name}" in self.lexicon.symbols or self.lexicon.type_made_by(f"{entry.module}.{name}")):
                    return Thing("ext", f"{entry.module}.{name}")
        return None

    # ---- classes

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

    # ---- calls

    def callee(self, number: int, at: int) -> Thing | None:
        """What call `at` of function `number` calls."""
        key = (number, at)
        if key in self._callees:
            return self._callees[key]
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
            head, tail = _split(call.name)
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
        if found is None and self._depth <= _DEPTH:
            self._depth += 1
            for leave in fact.exits:
                if leave.kind not in {"return", "yield"} or not leave.items:
                    continue
                atoms = leave.items[0] if part < 0 and len(leave.items) == 1 else leave.items[part] if 0 <= part < len(leave.items) else ()
                for atom in atoms:
                    found = self.atom(number, atom)
                    if found is not None:
                        break
                if found is not None:
                    break
            self._depth -= 1
        self._returns[key] = found
        return found

    # ---- parameters

    def _parameter(self, fn: Fn, name: str) -> Thing | None:
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
                (target.kind == "func" and target.ref == fn.number) or (target.kind == "class" and self.method(int(target.ref), "__init__") == fn.number)
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
            table: dict[str, list[tuple[int, int]]] = {}
            known = {f.fact.name for f in self.tree.functions} | {c.fact.name for c in self.tree.classes}
            for fn in self.tree.functions:
                for at, call in enumerate(fn.fact.calls):
                    last = call.name.rpartition(".")[2]
                    if last in known:
                        table.setdefault(last, []).append((fn.number, at))
            self._sites = table
        return self._sites.get(name, [])


def _split(path: str) -> tuple[str, str | None]:
    """`a.b[c]` -> (`a.b`, `[c]`), `a.b` -> (`a`, `b`), `a` -> (`a`, None)."""
    if path.endswith("]"):
        at = path.rfind("[")
        return path[:at], path[at:]
    head, dot, tail = path.rpartition(".")
    return (head, tail) if dot else (path, None)
