"""Syntax newer than the running Python, rewritten line for line into what it can parse; only for files that `ast` refused.

`type X = ...` becomes an assignment, type parameters vanish, nested quotes in f-strings lose their text. Nothing here is ever
written back: the result only feeds the facts pass.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import libcst

Node = TypeVar("Node", bound="libcst.BaseExpression")

_NEWER = re.compile(
    r"^\s*(?:type\s+\w+|(?:async\s+)?def\s+\w+\s*\[|class\s+\w+\s*\[)|\b[rR]?[fF][rR]?['\"]|^\s*except\s+[^:(]+,", re.MULTILINE
)
_DEEP = 60
"""Brackets open at once; libcst's parser recurses natively and has no guard of its own."""


def older(text: str) -> str | None:
    """The text in older syntax with every line where it was, or None when libcst cannot read it either."""
    if not _NEWER.search(text) or _depth(text) > _DEEP or re.search(r"(?:[-~+]|not ){60}", text):
        return None
    import libcst as cst

    def emptied(node: Node) -> Node:
        if isinstance(node, cst.ConcatenatedString):
            return node.with_changes(left=emptied(node.left), right=emptied(node.right))
        if isinstance(node, cst.FormattedString) and "\n" not in cst.Module([]).code_for_node(node):
            return node.with_changes(parts=())
        return node

    class Rewrite(cst.CSTTransformer):
        def leave_TypeAlias(self, original_node: cst.TypeAlias, updated_node: cst.TypeAlias) -> cst.Assign:  # noqa: N802 - libcst's names
            del original_node
            return cst.Assign([cst.AssignTarget(updated_node.name)], updated_node.value)

        def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:  # noqa: N802
            del original_node
            return updated_node.with_changes(type_parameters=None)

        def leave_ClassDef(self, original_node: cst.ClassDef, updated_node: cst.ClassDef) -> cst.ClassDef:  # noqa: N802
            del original_node
            return updated_node.with_changes(type_parameters=None)

        def visit_ConcatenatedString(self, node: cst.ConcatenatedString) -> bool:  # noqa: N802
            del node
            return False  # its parts may not become tuples

        def leave_ConcatenatedString(  # noqa: N802
            self, original_node: cst.ConcatenatedString, updated_node: cst.ConcatenatedString
        ) -> cst.BaseExpression:
            del updated_node
            return emptied(original_node)

        def leave_FormattedString(self, original_node: cst.FormattedString, updated_node: cst.FormattedString) -> cst.BaseExpression:  # noqa: N802
            values = [p.expression for p in updated_node.parts if isinstance(p, cst.FormattedStringExpression)]
            lines = cst.Module([]).code_for_node(original_node.with_changes(lpar=(), rpar=())).count("\n")
            if lines or not values:
                return updated_node
            bare = not original_node.lpar
            opened = [cst.LeftParen()] if bare else original_node.lpar
            closed = [cst.RightParen()] if bare else original_node.rpar
            return cst.Tuple([cst.Element(v) for v in values], lpar=opened, rpar=closed)

    try:
        return cst.parse_module(text).visit(Rewrite()).code
    except (cst.ParserSyntaxError, cst.CSTValidationError, RecursionError, ValueError):
        return None


def _depth(text: str) -> int:
    deepest = now = 0
    for ch in text:
        if ch in "([{":
            now += 1
            deepest = max(deepest, now)
        elif ch in ")]}":
            now = max(0, now - 1)
    return deepest
