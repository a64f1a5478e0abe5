"""The open scope of the facts pass: its blocks as a stack, its records in evaluation order."""

from __future__ import annotations

import ast
import re
from typing import Any

from gyrecheck.model.facts import Atoms, Bind, Block, Call, Decorator, Exit, Function, Param

_Row = list[Any]


class Scope:
    """A function while it is read; `block` is the innermost open block, `order` counts calls, binds and exits."""

    __slots__ = (
        "binds",
        "block",
        "blocks",
        "calls",
        "cls",
        "column",
        "end_line",
        "exits",
        "globals",
        "index",
        "line",
        "name",
        "order",
        "parent",
        "qualname",
    )

    def __init__(self, index: int, name: str, qualname: str, parent: int, cls: int, line: int, column: int, end_line: int) -> None:
        self.index, self.name, self.qualname, self.parent, self.cls = index, name, qualname, parent, cls
        self.line, self.column, self.end_line = line, column, end_line
        self.calls: list[Call] = []
        self.binds: list[Bind] = []
        self.exits: list[Exit] = []
        self.globals: list[str] = []
        self.blocks: list[_Row] = [["function", -1, -1, line, end_line, 0, 0, (), "", ()]]  # in the order of Block, until they are closed
        self.block = 0
        self.order = 0

    def tick(self) -> int:
        """The next place in evaluation order."""
        self.order += 1
        return self.order

    def enter(self, kind: str, line: int, *, link: int = -1, detail: Atoms = (), op: str = "") -> int:
        """Open a block; its index."""
        at = len(self.blocks)
        self.blocks.append([kind, self.block, link, line, line, self.order, self.order, detail, op, ()])
        self.block = at
        return at

    def asks(self, at: int, atoms: Atoms) -> None:
        """A condition of the comprehension opened as `at` reads these."""
        self.blocks[at][9] += atoms

    def leave(self, at: int, end_line: int, *, detail: Atoms = (), op: str = "") -> None:
        """Close the block opened as `at`."""
        block = self.blocks[at]
        block[4], block[6] = end_line, self.order
        if detail:
            block[7] = detail
        if op:
            block[8] = op
        self.block = block[1]

    def finished(self, params: tuple[Param, ...], decorators: tuple[Decorator, ...], returns: str, *, is_async: bool) -> Function:
        """The closed scope as a fact."""
        self.blocks[0][6] = self.order
        return Function(
            self.name, self.qualname, self.parent, self.cls, self.line, self.column, self.end_line, is_async, params, decorators, returns,
            tuple(self.calls), tuple(self.binds), tuple([Block._make(b) for b in self.blocks]), tuple(self.exits), tuple(self.globals),
        )  # fmt: skip


def dotted(node: ast.expr | None) -> str:
    """A name, attribute chain, quoted annotation, or the outer and first named part of `Optional[X]`; empty when it is none."""
    if node is None:
        return ""
    kind = type(node)
    if kind is ast.Name:
        return node.id  # type: ignore[attr-defined, no-any-return]
    if kind is ast.Attribute:
        base = dotted(node.value)  # type: ignore[attr-defined]
        return f"{base}.{node.attr}" if base else ""  # type: ignore[attr-defined]
    if kind is ast.Constant:
        text = node.value  # type: ignore[attr-defined]
        return text.strip() if isinstance(text, str) and text.replace(".", "").replace("_", "").isalnum() else ""
    if kind is ast.Call:
        return dotted(node.func)  # type: ignore[attr-defined]
    if kind is ast.BinOp:
        return dotted(node.left) or dotted(node.right)  # type: ignore[attr-defined]
    if kind is ast.Subscript:
        outer = dotted(node.value)  # type: ignore[attr-defined]
        if outer.rpartition(".")[2] in {"Optional", "Annotated", "Final", "ClassVar", "Type", "type"}:
            inner = node.slice  # type: ignore[attr-defined]
            return dotted(inner.elts[0] if isinstance(inner, ast.Tuple) and inner.elts else inner)
        return outer
    return ""


def mentioned(node: ast.expr, names: set[str]) -> None:
    """Adds the first name of every path in an annotation, quoted parts too: `dict[str, gymnasium.Space] | None` -> dict, str, gymnasium."""
    kind = type(node)
    if kind is ast.Name:
        names.add(node.id)  # type: ignore[attr-defined]
    elif kind is ast.Attribute:
        mentioned(node.value, names)  # type: ignore[attr-defined]
    elif kind is ast.Subscript:
        mentioned(node.value, names)  # type: ignore[attr-defined]
        mentioned(node.slice, names)  # type: ignore[attr-defined]
    elif kind is ast.BinOp:
        mentioned(node.left, names)  # type: ignore[attr-defined]
        mentioned(node.right, names)  # type: ignore[attr-defined]
    elif kind is ast.Tuple or kind is ast.List:
        for part in node.elts:  # type: ignore[attr-defined]
            mentioned(part, names)
    elif kind is ast.Constant and type(node.value) is str:  # type: ignore[attr-defined]
        names.update(_FIRST.findall(node.value))  # type: ignore[attr-defined]


_FIRST = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
