"""The strings a name stands for at a place: constants of the file or function, and variables of loops over them."""

from __future__ import annotations

import ast

from gyrecheck.handoff.source_batches import own_nodes
from gyrecheck.handoff.source_scope import Module, last_name, string_constants, strings_of


def loop_over(name: str, at: ast.AST, module: Module) -> tuple[str, ...]:
    """The strings a loop variable runs over, when an enclosing loop or comprehension says so."""
    node: ast.AST | None = at
    while node is not None:
        generators = getattr(node, "generators", ()) or ((node,) if isinstance(node, ast.For) else ())
        for loop in generators:
            targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
            places = [index for index, target in enumerate(targets) if isinstance(target, ast.Name) and target.id == name]
            if not places:
                continue
            source = loop.iter
            keys, _ = strings_of(source)
            base = (
                last_name(source.func.value)
                if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute)
                else last_name(source)
            )
            method = last_name(source) if isinstance(source, ast.Call) else ""
            constants, maps = constants_at(at, module)
            if method == "values" or (method == "items" and places[0] == 1):
                return maps.get(base, ())
            return keys or constants.get(base, ())
        node = module.parents.get(node)
    return ()


def constants_at(at: ast.AST, module: Module) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """The file's string constants, and those of the function that `at` stands in."""
    node: ast.AST | None = at
    while node is not None and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        node = module.parents.get(node)
    constants, maps = string_constants(list(own_nodes(node))) if node is not None else ({}, {})
    return module.constants | constants, module.maps | maps
