"""The expression half of the facts pass: calls, paths, atoms; each node visited once, in evaluation order."""

from __future__ import annotations

import ast
from sys import intern

from gyrecheck.model.facts import Atoms, Bind, Import, Param
from gyrecheck.source.open_scopes import OpenScopes, new_record
from gyrecheck.source.spelled import OPERATORS, constant, operator

_NO_ATOMS: Atoms = ()
_NAMES: dict[str, Atoms] = {}
_CONSTANTS: dict[tuple[type, object], Atoms] = {}
"""Atoms of one name or constant, shared by all files: most of a tree's names stand in it a hundred times."""


class Expressions(OpenScopes):
    """Reads expressions in the open scope. `expect` is what the next call's result is used for."""

    def __init__(self) -> None:
        super().__init__()
        self.expect = 0
        self.type_only = False
        self.guarded = False
        self.expressions = {
            ast.Call: self._call, ast.Attribute: self._attribute, ast.Subscript: self._subscript, ast.BinOp: self._binary,
            ast.BoolOp: self._many, ast.IfExp: self._either, ast.Compare: self._compare,
            ast.UnaryOp: self._unary, ast.Tuple: self._elements,
            ast.List: self._elements, ast.Set: self._elements, ast.Dict: self._dict, ast.Lambda: self._lambda, ast.Await: self._inner,
            ast.Starred: self._inner, ast.NamedExpr: self._walrus, ast.JoinedStr: self._joined, ast.FormattedValue: self._inner,
            ast.ListComp: self._comprehension, ast.SetComp: self._comprehension, ast.GeneratorExp: self._comprehension,
            ast.DictComp: self._comprehension, ast.Yield: self._yield, ast.YieldFrom: self._yield,
        }  # fmt: skip

    def _bind(self, target: ast.expr, atoms: Atoms, form: str, op: str, annotation: str = "") -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            many = len(target.elts)
            for i, part in enumerate(target.elts):
                inner = part.value if isinstance(part, ast.Starred) else part
                self._bind(inner, atoms, intern(f"{i}/{many}") if form == "=" else form, op)
            return
        path = self._path(target)
        if path is None:
            return
        scope = self.scope
        scope.order += 1
        scope.binds.append(
            new_record(Bind, (intern(path), atoms, form, op, target.lineno, target.col_offset, scope.block, scope.order, annotation))
        )

    def _params(self, node: ast.arguments) -> tuple[Param, ...]:
        plain = (*node.posonlyargs, *node.args)
        defaults: list[ast.expr | None] = [None] * (len(plain) - len(node.defaults)) + list(node.defaults)
        out = [self._param(a, d, "") for a, d in zip(plain, defaults, strict=True)]
        if node.vararg:
            out.append(self._param(node.vararg, None, "*"))
        out.extend(self._param(a, d, "kw") for a, d in zip(node.kwonlyargs, node.kw_defaults, strict=True))
        if node.kwarg:
            out.append(self._param(node.kwarg, None, "**"))
        return tuple(out)

    def _param(self, arg: ast.arg, default: ast.expr | None, kind: str) -> Param:
        annotation = self._annotation(arg.annotation) if arg.annotation is not None else ""
        return Param(arg.arg, annotation, None if default is None else self._value(default), kind)

    def _lambda(self, node: ast.Lambda) -> Atoms:
        params = self._params(node.args)
        index = len(self.functions)
        name = f"<lambda {index}>"
        expect, self.expect = self.expect, 0
        self._open(name, self._qualified(f"<lambda:{node.lineno}>"), -1, node.lineno, node.col_offset, node.end_lineno or node.lineno)
        self._exit("return", node.body, (self._value(node.body),))
        self._close(params, (), "", is_async=False)
        self.expect = expect
        return (name,)

    def _value(self, node: ast.expr | None) -> Atoms:
        kind = type(node)
        if kind is ast.Name:
            name = node.id  # type: ignore[union-attr]
            return _NAMES.get(name) or _NAMES.setdefault(name, (name,))
        if kind is ast.Constant:
            value = node.value  # type: ignore[union-attr]
            key = (type(value), value)
            return _CONSTANTS.get(key) or _CONSTANTS.setdefault(key, (constant(value),))
        if kind is ast.Attribute:
            path = self._path(node)  # type: ignore[arg-type]
            if path is not None:
                return _NAMES.get(path) or _NAMES.setdefault(path, (intern(path),))
        handler = self.expressions.get(kind)
        return handler(node) if handler is not None else _NO_ATOMS  # type: ignore[operator]

    def _path(self, node: ast.expr) -> str | None:
        kind = type(node)
        if kind is ast.Name:
            return node.id  # type: ignore[attr-defined, no-any-return]
        if kind is ast.Attribute:
            inner = node.value  # type: ignore[attr-defined]
            base = inner.id if type(inner) is ast.Name else self._path(inner)
            return None if base is None else f"{base}.{node.attr}"  # type: ignore[attr-defined]
        if kind is ast.Subscript:
            base = self._path(node.value)  # type: ignore[attr-defined]
            if base is None:
                return None
            index = node.slice  # type: ignore[attr-defined]
            if type(index) is ast.Constant:
                return f"{base}[{str(index.value)[:60]}]" if type(index.value) in {str, int} else f"{base}[]"
            if type(index) is not ast.Name:
                expect, self.expect = self.expect, 0
                self._value(index)
                self.expect = expect
            return f"{base}[]"
        return None

    def _attribute(self, node: ast.Attribute) -> Atoms:
        """An attribute of a value without a name; `_value` has read the others."""
        self.expect = 0
        receiver = self._value(node.value)
        return self._record(f".{node.attr}", node, -2, (), (), receiver)

    def _subscript(self, node: ast.Subscript) -> Atoms:
        path = self._path(node)
        if path is not None:
            return _NAMES.get(path) or _NAMES.setdefault(path, (intern(path),))
        self.expect = 0
        atoms = self._value(node.value)
        if type(node.slice) is not ast.Constant:
            self._value(node.slice)
        return atoms

    def _call(self, node: ast.Call) -> Atoms:
        result, self.expect = self.expect, 0
        receiver: Atoms = ()
        func = node.func
        name = self._path(func)
        if name is None:
            if type(func) is ast.Attribute:
                receiver = self._value(func.value)
                name = f".{func.attr}"
            else:
                receiver = self._value(func)
                name = "."
        value = self._value
        args = tuple([value(a) for a in node.args]) if node.args else ()
        keywords = tuple([(k.arg or "**", value(k.value)) for k in node.keywords]) if node.keywords else ()
        if name in {"importlib.import_module", "import_module", "__import__"} and args and args[0] and str(args[0][0]).startswith("='"):
            where = (self.scope.index, node.lineno, node.col_offset, node.end_col_offset or 0, self.type_only, self.guarded)
            self.imports.append(Import(str(args[0][0])[2:-1], "", "", 0, "dynamic", *where))
        return self._record(name, node, result, args, keywords, receiver)

    def _dict(self, node: ast.Dict) -> Atoms:
        self.expect = 0
        pairs = []
        for key, item in zip(node.keys, node.values, strict=True):
            name = "**" if key is None else str(key.value) if type(key) is ast.Constant else "?"
            if key is not None and name == "?":
                self._value(key)
            pairs.append((name, self._value(item)))
        return self._record("{}", node, 0, (), tuple(pairs), ())

    def _binary(self, node: ast.BinOp) -> Atoms:
        self.expect = 0
        return (*self._value(node.left), *self._value(node.right))

    def _many(self, node: ast.BoolOp) -> Atoms:
        self.expect = 0
        return tuple([a for v in node.values for a in self._value(v)])

    def _either(self, node: ast.IfExp) -> Atoms:
        expect, self.expect = self.expect, 0
        self._test(node.test)
        self.expect = expect
        first = self._value(node.body)
        self.expect = expect
        return (*first, *self._value(node.orelse))

    def _compare(self, node: ast.Compare) -> Atoms:
        self._test(node)
        return _NO_ATOMS

    def _unary(self, node: ast.UnaryOp) -> Atoms:
        self.expect = 0
        if type(node.op) is ast.USub and type(node.operand) is ast.Constant:
            return (f"=-{node.operand.value!r}",)
        atoms = self._value(node.operand)
        return _NO_ATOMS if type(node.op) is ast.Not else atoms

    def _elements(self, node: ast.Tuple | ast.List | ast.Set) -> Atoms:
        self.expect = 0
        return tuple([a for e in node.elts for a in self._value(e)])

    def _inner(self, node: ast.Await | ast.Starred | ast.FormattedValue) -> Atoms:
        return self._value(node.value)

    def _joined(self, node: ast.JoinedStr) -> Atoms:
        self.expect = 0
        return tuple([a for v in node.values if type(v) is ast.FormattedValue for a in self._value(v.value)])

    def _walrus(self, node: ast.NamedExpr) -> Atoms:
        self.expect = 1
        atoms = self._value(node.value)
        self.expect = 0
        self._bind(node.target, atoms, "=", operator(node.value))
        return (node.target.id,)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Atoms:
        self.expect = 0
        opened = []
        for part in node.generators:
            atoms = self._value(part.iter)
            opened.append(self.scope.enter("comp", node.lineno, detail=atoms, op="if" if part.ifs else ""))
            self._bind(part.target, atoms, "for", "")
            for test in part.ifs:
                self.scope.asks(opened[-1], self._test(test)[0])
        if isinstance(node, ast.DictComp):
            out: Atoms = (*self._value(node.key), *self._value(node.value))
        else:
            out = self._value(node.elt)
        for at in reversed(opened):
            self.scope.leave(at, node.end_lineno or node.lineno)
        return out

    def _yield(self, node: ast.Yield | ast.YieldFrom) -> Atoms:
        self.expect = 0
        self._exit("yield", node, (self._value(node.value),) if node.value is not None else ())
        return _NO_ATOMS

    def _test(self, node: ast.expr) -> tuple[Atoms, str]:
        """What a condition reads, and its operators in order."""
        self.expect = 0
        kind = type(node)
        if kind is ast.BoolOp:
            parts = [self._test(v) for v in node.values]  # type: ignore[attr-defined]
            word = OPERATORS[type(node.op)]  # type: ignore[attr-defined]
            return tuple([a for atoms, _ in parts for a in atoms]), f" {word} ".join(op for _, op in parts)
        if kind is ast.UnaryOp and type(node.op) is ast.Not:  # type: ignore[attr-defined]
            atoms, op = self._test(node.operand)  # type: ignore[attr-defined]
            return atoms, f"not {op}".strip()
        if kind is ast.Compare:
            sides = [node.left, *node.comparators]  # type: ignore[attr-defined]
            parts = [self._test(s) for s in sides]
            ops = "".join(OPERATORS.get(type(o), "?") for o in node.ops)  # type: ignore[attr-defined]
            return tuple([a for atoms, _ in parts for a in atoms]), "".join(op for _, op in parts) + ops
        if kind is ast.BinOp:
            left, right = self._test(node.left), self._test(node.right)  # type: ignore[attr-defined]
            return (*left[0], *right[0]), left[1] + right[1] + OPERATORS.get(type(node.op), "")  # type: ignore[attr-defined]
        return self._value(node), ""
