"""The checked files as one indexed tree: global numbers for functions and classes, scopes by name, modules by dotted name.

Nothing of the target is imported or installed: a module's name follows from its path, and any folder may be a source root, so
namespace packages, `src` layouts and scripts beside each other all resolve.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any, NamedTuple

from gyrecheck.model.facts import Bind, Class, Function, Import, Module, Param


class Thing(NamedTuple):
    """What a name or value is.

    `kind`: func class inst module (first-party, `ref` a number), ext (a qualified name), type (an instance of a vocabulary type),
    result (what an unknown external callable returned).
    """

    kind: str
    ref: int | str


class Names(NamedTuple):
    """One scope's names."""

    params: dict[str, Param]
    binds: dict[str, list[Bind]]
    functions: dict[str, int]
    classes: dict[str, int]
    imports: dict[str, list[Import]]
    bound: frozenset[str]
    """Every name of the five."""


_NO_NAMES: dict[str, Any] = {}
"""Shared by all scopes: most kinds of names are absent from most functions."""


class Fn:
    """A function in the tree; `number` is global."""

    __slots__ = ("children", "class_children", "cls", "fact", "module", "names", "number", "parent")

    def __init__(self, number: int, module: int, fact: Function) -> None:
        self.number, self.module, self.fact = number, module, fact
        self.cls, self.parent = -1, -1
        self.children: list[int] = []
        self.class_children: list[int] = []
        self.names: Names | None = None


class Cls:
    """A class in the tree; `number` is global, `methods` are its own."""

    __slots__ = ("body", "fact", "methods", "module", "number", "scope")

    def __init__(self, number: int, module: int, fact: Class, scope: int, body: int) -> None:
        self.number, self.module, self.fact, self.scope, self.body = number, module, fact, scope, body
        self.methods: dict[str, int] = {}


class Tree:
    """All files; `functions` and `classes` are indexed by their global numbers."""

    def __init__(self, modules: tuple[Module, ...]) -> None:
        self.modules = modules
        self.functions: list[Fn] = []
        self.classes: list[Cls] = []
        self.first_function: list[int] = []
        self.imports: list[dict[int, list[Import]]] = []
        self._suffixes: dict[str, list[tuple[str, int]]] = {}
        self._packages: set[str] = set()
        self._modules_of: dict[tuple[int, str], int] = {}
        self._dotted: dict[int, str] = {}
        self._folders = ["" if (folder := str(PurePosixPath(m.path).parent)) == "." else folder for m in modules]
        for index, module in enumerate(modules):
            self._add(index, module)
            self._name(index, module.path)

    def _add(self, index: int, module: Module) -> None:
        base, class_base = len(self.functions), len(self.classes)
        self.first_function.append(base)
        for at, fact in enumerate(module.functions):
            fn = Fn(base + at, index, fact)
            if fact.parent >= 0:
                fn.parent = base + fact.parent
            if fact.cls >= 0:
                fn.cls = class_base + fact.cls
            self.functions.append(fn)
        for at, entry in enumerate(module.classes):
            cls = Cls(class_base + at, index, entry, base + entry.parent, base + entry.body)
            self.classes.append(cls)
            self.functions[cls.scope].class_children.append(cls.number)
        for fn in self.functions[base:]:
            if fn.cls >= 0 and not fn.fact.name.startswith("<class "):
                self.classes[fn.cls].methods[fn.fact.name] = fn.number
            elif fn.parent >= 0:
                self.functions[fn.parent].children.append(fn.number)
        table: dict[int, list[Import]] = {}
        for entry_ in module.imports:
            table.setdefault(base + entry_.function, []).append(entry_)
        self.imports.append(table)

    def _name(self, index: int, path: str) -> None:
        pure = PurePosixPath(path)
        parts = list(pure.with_suffix("").parts)
        if parts and parts[-1] == "__init__":
            parts.pop()
            self._packages.add("/".join(parts))
        for start in range(len(parts)):
            dotted = ".".join(parts[start:])
            self._suffixes.setdefault(dotted, []).append(("/".join(parts[:start]), index))

    # ---- modules

    def module(self, dotted: str, importer: int) -> int:
        """The file that `import dotted` in file `importer` means, or -1 when it is not one of ours."""
        key = (importer, dotted)
        if key not in self._modules_of:
            self._modules_of[key] = self._find(dotted, importer)
        return self._modules_of[key]

    def _find(self, dotted: str, importer: int) -> int:
        candidates = self._suffixes.get(dotted)
        if not candidates:
            return -1
        folder = self._folders[importer]
        best, score = -1, -1
        for root, index in candidates:
            if root in self._packages and root != folder:
                continue  # a package's inside is not on the path; only scripts beside each other see it
            above = root in {"", folder} or folder.startswith(root + "/")
            rank = (2000 if above else 0) + (500 if root not in self._packages else 0) + (len(root) if above else 100 - min(len(root), 100))
            if rank > score and index != importer:
                best, score = index, rank
        return best

    def relative(self, importer: int, level: int, module: str) -> str:
        """The folder path, dotted, that a relative import of `level` dots starts from, with `module` added."""
        parts = list(PurePosixPath(self.modules[importer].path).parts[:-1])
        kept = parts[: len(parts) - (level - 1)] if level > 1 else parts
        return "/".join([*kept, *(module.split(".") if module else [])])

    def at_path(self, path: str) -> int:
        """The file at `a/b` (as `a/b.py` or `a/b/__init__.py`), or -1."""
        for root, index in self._suffixes.get(path.replace("/", "."), ()):
            if not root:
                return index
        return -1

    def dotted_name(self, module: int) -> str:
        """A file's importable name: from the outermost folder that is a package."""
        if module not in self._dotted:
            self._dotted[module] = self._dotted_name(module)
        return self._dotted[module]

    def _dotted_name(self, module: int) -> str:
        parts = list(PurePosixPath(self.modules[module].path).with_suffix("").parts)
        if parts and parts[-1] == "__init__":
            parts.pop()
        start = len(parts) - 1
        while start > 0 and "/".join(parts[:start]) in self._packages:
            start -= 1
        return ".".join(parts[max(start, 0) :])

    # ---- scopes

    def names(self, number: int) -> Names:
        """The names bound in a function's own scope."""
        fn = self.functions[number]
        if fn.names is None:
            fn.names = self._names(fn)
        return fn.names

    def _names(self, fn: Fn) -> Names:
        number = fn.number
        binds: dict[str, list[Bind]] = {}
        hidden = set(fn.fact.globals)
        for bind in fn.fact.binds:
            if bind.target not in hidden:
                binds.setdefault(bind.target, []).append(bind)
        if number == self.first_function[fn.module]:
            for other in self.functions[number : self._end(fn.module)]:
                for bind in other.fact.binds if other.fact.globals else ():
                    if bind.target in other.fact.globals:
                        # its calls are numbered in the other function: only the names in its value mean anything here
                        named = tuple(a for a in bind.value if isinstance(a, str) and not a.startswith("<"))
                        binds.setdefault(bind.target, []).append(bind._replace(value=named))
        imports: dict[str, list[Import]] = {}
        for entry in self.imports[fn.module].get(number, ()):
            if entry.kind != "star":
                bound = entry.alias or (entry.name if entry.kind == "from" else entry.module.partition(".")[0])
                imports.setdefault(bound, []).append(entry)
        params = {p.name: p for p in fn.fact.params}
        functions = {self.functions[c].fact.name: c for c in fn.children}
        classes = {self.classes[c].fact.name: c for c in fn.class_children}
        every = frozenset((*params, *binds, *functions, *classes, *imports))
        return Names(params or _NO_NAMES, binds or _NO_NAMES, functions or _NO_NAMES, classes or _NO_NAMES, imports or _NO_NAMES, every)

    def _end(self, module: int) -> int:
        return self.first_function[module + 1] if module + 1 < len(self.first_function) else len(self.functions)

    def functions_of(self, module: int) -> list[Fn]:
        """All functions of one file, the module body first."""
        return self.functions[self.first_function[module] : self._end(module)]

    def where(self, number: int) -> str:
        """`path:line` of a function."""
        fn = self.functions[number]
        return f"{self.modules[fn.module].path}:{fn.fact.line}"

    def qualified(self, number: int) -> str:
        """The dotted name of a function, module first."""
        fn = self.functions[number]
        module = self.dotted_name(fn.module)
        return f"{module}.{fn.fact.qualname}" if fn.fact.qualname else module
