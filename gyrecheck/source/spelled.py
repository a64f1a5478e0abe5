"""How facts spell operators and constants: those of conditions in order, the outermost one of a value, long texts cut."""

from __future__ import annotations

import ast
from sys import intern

OPERATORS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.MatMult: "@",
    ast.And: "and", ast.Or: "or", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.BitOr: "|", ast.BitAnd: "&", ast.BitXor: "^", ast.LShift: "<<",
    ast.RShift: ">>",
}  # fmt: skip

_SHAPES: dict[type, str] = {
    ast.IfExp: "if", ast.Compare: "cmp", ast.Dict: "{}", ast.List: "[]", ast.Set: "[]",
    ast.Tuple: "[]", ast.ListComp: "[]", ast.DictComp: "{}",
    ast.Lambda: "lambda", ast.Await: "await", ast.Subscript: "item", ast.JoinedStr: "text",
}  # fmt: skip


def constant(value: object) -> str:
    """A constant as an atom: long texts are cut."""
    return intern("=" + (repr(value[:80]) if type(value) is str else repr(value) if type(value) is not bytes else "b"))


def operator(node: ast.expr | None) -> str:
    """The outermost operator of a value, as `Bind.op` has it."""
    kind = type(node)
    if kind is ast.BinOp or kind is ast.BoolOp:
        return OPERATORS.get(type(node.op), "")  # type: ignore[union-attr]
    return _SHAPES.get(kind, "")
