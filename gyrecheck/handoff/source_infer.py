"""What the code around a read says of the value: its dtype, the names of its axes, and whether the first two are exchanged."""

from __future__ import annotations

import ast

from gyrecheck.handoff.source_scope import last_name
from gyrecheck.rulebook.source_words import SourceWords


def infer(node: ast.AST, parents: dict[ast.AST, ast.AST], function: ast.AST, words: SourceWords) -> tuple[str, tuple[str, ...], bool]:
    """Dtype (empty = not said), axes (empty = not said) and the exchange of the value that `node` reads."""
    dtype, swaps = "", False
    axes: tuple[str, ...] = ()
    current, parent = node, parents.get(node)
    while parent is not None and not isinstance(parent, ast.stmt):
        if isinstance(parent, ast.Call):
            name = last_name(parent.func)
            if parent.func is current or current in parent.args[:1]:
                dtype = dtype or _dtype_of_call(parent, name, words)
                swaps = swaps or (name in words.swappers and _first_two(parent))
                axes = axes or _pattern(parent, name)
            elif current not in parent.args:
                break
        elif isinstance(parent, ast.Attribute):
            if parent.attr == "shape":
                axes = axes or _unpacked(parents.get(parent), parents)
        elif not isinstance(parent, (ast.ListComp, ast.GeneratorExp, ast.Starred, ast.IfExp, ast.NamedExpr)):
            break
        current, parent = parent, parents.get(parent)
    name = _bound_to(current, parent)
    if name:
        more, axes_there, swaps_there = _uses(name, getattr(current, "lineno", 0), function, parents, words)
        dtype, axes, swaps = dtype or more, axes or axes_there, swaps or swaps_there
    return dtype, axes, swaps


def _dtype_of_call(call: ast.Call, name: str, words: SourceWords) -> str:
    told = next((k.value for k in call.keywords if k.arg == "dtype"), None)
    if (
        told is None
        and name in {"to", "astype", "type", "asarray", "array", "ascontiguousarray", "fromiter"}
        and len(call.args) > (name not in {"to", "astype", "type"})
    ):
        told = call.args[0] if name in {"to", "astype", "type"} else call.args[1]
    if told is not None:
        word = told.value if isinstance(told, ast.Constant) and isinstance(told.value, str) else last_name(told)
        return words.dtypes.get(word, "")
    is_method = isinstance(call.func, ast.Attribute) and not call.args
    return words.dtypes.get(name, "") if is_method or name.endswith("Tensor") else ""


def _first_two(call: ast.Call) -> bool:
    """`transpose(0, 1)` or `transpose(x, 0, 1)` and `permute(1, 0, ...)`."""
    numbers = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, int)]
    return numbers[:2] in ([0, 1], [1, 0])


def _pattern(call: ast.Call, name: str) -> tuple[str, ...]:
    """Axes named by the left side of an einops pattern."""
    if name not in {"rearrange", "reduce", "repeat"} or len(call.args) < 2:
        return ()
    text = call.args[1]
    if isinstance(text, ast.Constant) and isinstance(text.value, str) and "->" in text.value and "(" not in text.value.split("->")[0]:
        return tuple(text.value.split("->")[0].split())
    return ()


def _unpacked(node: ast.AST | None, parents: dict[ast.AST, ast.AST]) -> tuple[str, ...]:
    """Names of `B, T, D = x.shape`."""
    while node is not None and not isinstance(node, ast.stmt):
        node = parents.get(node)
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Attribute):
        names = tuple(last_name(target) if isinstance(target, ast.Name) else "*" for target in node.targets[0].elts)
        return tuple("?" if name == "_" else name for name in names)
    return ()


def _bound_to(current: ast.AST, parent: ast.AST | None) -> str:
    """The variable that a statement binds the value to, also in `a, b = x["a"], x["b"]`."""
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and parent.value is current and isinstance(parent.targets[0], ast.Name):
        return parent.targets[0].id
    return ""


def _uses(
    name: str, after: int, function: ast.AST, parents: dict[ast.AST, ast.AST], words: SourceWords
) -> tuple[str, tuple[str, ...], bool]:
    """What the first uses of the variable say of it."""
    dtype, swaps = "", False
    axes: tuple[str, ...] = ()
    for node in ast.walk(function):
        if not (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)) or node.lineno < after:
            continue
        parent = parents.get(node)
        if isinstance(parent, ast.Attribute):
            if parent.attr == "shape":
                axes = axes or _unpacked(parents.get(parent), parents)
            call = parents.get(parent)
            if isinstance(call, ast.Call) and call.func is parent:
                dtype = dtype or _dtype_of_call(call, parent.attr, words)
                swaps = swaps or (parent.attr in words.swappers and _first_two(call))
        elif isinstance(parent, ast.Call) and parent.args and parent.args[0] is node:
            axes = axes or _pattern(parent, last_name(parent.func))
            dtype = dtype or _dtype_of_call(parent, last_name(parent.func), words)
    return dtype, axes, swaps
