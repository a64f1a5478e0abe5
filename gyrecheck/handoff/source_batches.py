"""Which expressions of a trainer's source hold a record or a batch: by name, by type, or by the call they come from."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gyrecheck.handoff.source_scope import Function, Module, last_name
from gyrecheck.rulebook.source_words import SourceWords, matches


class Batches:
    """Tells batches from other values by the words of `rules/handoff_source.toml`."""

    def __init__(self, words: SourceWords) -> None:
        self.words = words

    def held(self, module: Module, function: Function) -> dict[str, bool]:
        """Variables of the function that hold a batch: True when the name or a parameter says so, False when only its origin does."""
        held = dict.fromkeys(function.carriers, True)
        held |= {name: True for name, kind in function.annotations.items() if kind in module.records}
        for _ in range(3):
            before = len(held)
            for node in own_nodes(function.node):
                for target, value, looped in _bindings(node):
                    name = last_name(target) if isinstance(target, (ast.Name, ast.Attribute)) else ""
                    if not name or matches(name, self.words.not_batches):
                        continue
                    made = isinstance(value, (ast.Call, ast.Await)) and self.words.is_batch(name)
                    if made or self.is_batch(value, held) or (looped and self._gives_batches(value, held)):
                        held.setdefault(name, self.words.is_batch(name))
            if len(held) == before:
                break
        return held

    def is_batch(self, node: ast.expr, held: dict[str, bool]) -> bool:
        """Whether the expression is a record or a batch."""
        if isinstance(node, ast.Name):
            return node.id in held
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id == "self":
                return node.attr in held or (self.words.is_batch(node.attr) and not matches(node.attr, self.words.stores))
            return node.attr in self.words.containers and self.is_batch(node.value, held)
        if isinstance(node, ast.Subscript):
            if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
                return False
            return self.is_batch(node.value, held) or self._is_store(node.value)
        if isinstance(node, ast.Call):
            return self._opens(node, held)
        if isinstance(node, ast.IfExp):
            return self.is_batch(node.body, held) or self.is_batch(node.orelse, held)
        if isinstance(node, (ast.Await, ast.Starred)):
            return self.is_batch(node.value, held)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self.is_batch(node.elt, held) or self._opens_inside(node.elt, held)
        return False

    def _opens_inside(self, node: ast.expr, held: dict[str, bool]) -> bool:
        return isinstance(node, ast.Call) and self._opens(node, held)

    def _opens(self, node: ast.Call, held: dict[str, bool]) -> bool:
        name = last_name(node.func)
        if name in self.words.openers:
            return True
        if isinstance(node.func, ast.Attribute) and name in self.words.same:
            return self.is_batch(node.func.value, held)
        if name in {"dict", "next", "iter", "list", "sorted", "reversed", "cast", "SimpleNamespace"} and node.args:
            inner = node.args[-1] if name == "cast" else node.args[0]
            return self.is_batch(inner, held) or self._gives_batches(inner, held)
        return False

    def _gives_batches(self, node: ast.expr, held: dict[str, bool]) -> bool:
        """Whether iterating over the expression gives records or batches."""
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            if name in {"enumerate", "tqdm", "iter", "reversed", "zip", "list", "track"} and node.args:
                return any(self._gives_batches(arg, held) for arg in node.args)
            return matches(name, self.words.loader_variables) or self.is_batch(node, held)
        if isinstance(node, (ast.Name, ast.Attribute)) and matches(last_name(node), self.words.loader_variables):
            return True
        return self.is_batch(node, held) or self._is_store(node)

    def _is_store(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Attribute) and last_name(node.value) == "self" and matches(node.attr, self.words.stores)


def strong(node: ast.expr, held: dict[str, bool]) -> bool:
    """A variable whose name or type says that it is a batch, so that its attributes are fields too."""
    return isinstance(node, ast.Name) and held.get(node.id, False)


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a function or module, without those of the functions and classes inside it."""
    queue = list(reversed(list(ast.iter_child_nodes(node))))
    while queue:
        current = queue.pop()
        yield current
        if not isinstance(current, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            queue.extend(reversed(list(ast.iter_child_nodes(current))))


def _bindings(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
    """Target, value, and whether the target takes the value's elements one by one."""
    if isinstance(node, ast.Assign):
        yield from ((target, node.value, False) for target in node.targets)
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        yield node.target, node.value, False
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        targets = node.target.elts[-1:] if isinstance(node.target, ast.Tuple) else [node.target]
        yield from ((target, node.iter, True) for target in targets)
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        yield from ((item.optional_vars, item.context_expr, False) for item in node.items if item.optional_vars is not None)
