"""One pass over one syntax tree: every fact the program analysis asks for, each node visited once, nothing judged."""

from __future__ import annotations

import ast

from gyrecheck.model.facts import Atoms, Bind, Block, Call, Class, Decorator, Exit, Function, Import, Module, Param
from gyrecheck.source.scopes import Scope, dotted

_OPERATORS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.MatMult: "@",
    ast.And: "and", ast.Or: "or", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.BitOr: "|", ast.BitAnd: "&", ast.BitXor: "^", ast.LShift: "<<",
    ast.RShift: ">>",
}  # fmt: skip
_NO_ATOMS: Atoms = ()


def facts_of(tree: ast.Module, path: str, lines: int = 0) -> Module:
    """The facts of a parsed file."""
    return _Pass().module(tree, path, lines)


class _Pass:
    """The walk. `scope` is the function being read; `expect` is what the next call's result is used for."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.functions: list[Function | None] = []
        self.classes: list[Class] = []
        self.imports: list[Import] = []
        self.scope: Scope
        self.expect = 0
        self.type_only = False
        self.guarded = False
        self.statements = {
            ast.Expr: self._expression, ast.Assign: self._assign, ast.AnnAssign: self._annotated, ast.AugAssign: self._augmented,
            ast.Return: self._return, ast.If: self._if, ast.For: self._for, ast.AsyncFor: self._for, ast.While: self._while,
            ast.With: self._with, ast.AsyncWith: self._with, ast.Try: self._try, ast.FunctionDef: self._function,
            ast.AsyncFunctionDef: self._function, ast.ClassDef: self._class, ast.Import: self._import, ast.ImportFrom: self._import_from,
            ast.Raise: self._raise, ast.Continue: self._jump, ast.Break: self._jump, ast.Delete: self._delete, ast.Assert: self._assert,
            ast.Global: self._global, ast.Nonlocal: self._global, ast.Match: self._match,
        }  # fmt: skip
        if hasattr(ast, "TryStar"):
            self.statements[ast.TryStar] = self._try
        self.expressions = {
            ast.Call: self._call, ast.Attribute: self._attribute, ast.Subscript: self._subscript, ast.BinOp: self._binary,
            ast.BoolOp: self._many, ast.IfExp: self._either, ast.Compare: self._compare, ast.UnaryOp: self._unary, ast.Tuple: self._elements,
            ast.List: self._elements, ast.Set: self._elements, ast.Dict: self._dict, ast.Lambda: self._lambda, ast.Await: self._inner,
            ast.Starred: self._inner, ast.NamedExpr: self._walrus, ast.JoinedStr: self._joined, ast.FormattedValue: self._inner,
            ast.ListComp: self._comprehension, ast.SetComp: self._comprehension, ast.GeneratorExp: self._comprehension,
            ast.DictComp: self._comprehension, ast.Yield: self._yield, ast.YieldFrom: self._yield,
        }  # fmt: skip

    def module(self, tree: ast.Module, path: str, lines: int) -> Module:
        self._open("<module>", "", -1, 1, 0, lines)
        self._body(tree.body)
        self._close((), (), "", is_async=False)
        return Module(path, tuple(f for f in self.functions if f is not None), tuple(self.classes), tuple(self.imports), lines)

    # ---- scopes

    def _open(self, name: str, qualname: str, cls: int, line: int, column: int, end_line: int) -> int:
        index = len(self.functions)
        parent = self.scopes[-1] if self.scopes else None
        while parent is not None and parent.name.startswith("<class ") and not name.startswith("<class "):
            parent = self.scopes[self.scopes.index(parent) - 1] if self.scopes.index(parent) else None
        self.functions.append(None)
        self.scope = Scope(index, name, qualname, -1 if parent is None else parent.index, cls, line, column, end_line)
        self.scopes.append(self.scope)
        return index

    def _close(self, params: tuple[Param, ...], decorators: tuple[Decorator, ...], returns: str, *, is_async: bool) -> None:
        done = self.scopes.pop()
        self.functions[done.index] = done.finished(params, decorators, returns, is_async=is_async)
        if self.scopes:
            self.scope = self.scopes[-1]

    def _qualified(self, name: str) -> str:
        outer = self.scope.qualname
        if not outer:
            return name
        return f"{outer}.{name}" if self.scope.name.startswith("<class ") else f"{outer}.<locals>.{name}"

    # ---- statements

    def _body(self, body: list[ast.stmt]) -> None:
        table = self.statements
        for node in body:
            handler = table.get(type(node))
            if handler is not None:
                handler(node)  # type: ignore[operator]

    def _block(self, kind: str, body: list[ast.stmt], line: int, *, link: int = -1, detail: Atoms = (), op: str = "") -> int:
        at = self.scope.enter(kind, line, link=link, detail=detail, op=op)
        self._body(body)
        self.scope.leave(at, body[-1].end_lineno or line if body else line)
        return at

    def _expression(self, node: ast.Expr) -> None:
        value = node.value
        if type(value) is not ast.Constant:
            self.expect = -1
            self._value(value)
            self.expect = 0

    def _assign(self, node: ast.Assign) -> None:
        value = node.value
        for target in node.targets:
            if type(target) in {ast.Tuple, ast.List} and type(value) in {ast.Tuple, ast.List}:
                goals, values = target.elts, value.elts  # type: ignore[attr-defined]
                plain = not any(type(e) is ast.Starred for e in (*goals, *values))
                if plain and len(goals) == len(values):
                    results = [(goal, self._targeted(goal, v), _operator(v)) for goal, v in zip(goals, values, strict=True)]
                    for goal, atoms, op in results:
                        self._bind(goal, atoms, "=", op)
                    if len(node.targets) == 1:
                        return
                    continue
            atoms = self._targeted(target, value)
            op = _operator(value)
            for each in node.targets:
                self._bind(each, atoms, "=", op)
            return

    def _targeted(self, target: ast.expr, value: ast.expr) -> Atoms:
        self.expect = len(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else 1
        atoms = self._value(value)
        self.expect = 0
        return atoms

    def _annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.expect = 1
        atoms = self._value(node.value) if node.value is not None else _NO_ATOMS
        self.expect = 0
        self._bind(node.target, atoms, "=" if node.value is not None else ":", _operator(node.value), dotted(node.annotation))

    def _augmented(self, node: ast.AugAssign) -> None:
        self._bind(node.target, self._value(node.value), "+=", _OPERATORS.get(type(node.op), ""))

    def _bind(self, target: ast.expr, atoms: Atoms, form: str, op: str, annotation: str = "") -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            many = len(target.elts)
            for i, part in enumerate(target.elts):
                inner = part.value if isinstance(part, ast.Starred) else part
                self._bind(inner, atoms, f"{i}/{many}" if form == "=" else form, op)
            return
        path = self._path(target)
        if path is None:
            return
        scope = self.scope
        scope.binds.append(Bind(path, atoms, form, op, target.lineno, target.col_offset, scope.block, scope.tick(), annotation))

    def _return(self, node: ast.Return) -> None:
        value = node.value
        if value is None:
            items: tuple[Atoms, ...] = ()
        elif type(value) is ast.Tuple:
            items = tuple([self._value(e) for e in value.elts])
        else:
            items = (self._value(value),)
        self._exit("return", node, items)

    def _exit(self, kind: str, node: ast.stmt | ast.expr, items: tuple[Atoms, ...]) -> None:
        scope = self.scope
        scope.exits.append(Exit(kind, node.lineno, node.col_offset, scope.block, scope.tick(), items))

    def _raise(self, node: ast.Raise) -> None:
        self._exit("raise", node, (self._value(node.exc),) if node.exc is not None else ())

    def _jump(self, node: ast.Continue | ast.Break) -> None:
        self._exit("continue" if type(node) is ast.Continue else "break", node, ())

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self._bind(target, (), "del", "")

    def _assert(self, node: ast.Assert) -> None:
        self._test(node.test)

    def _global(self, node: ast.Global | ast.Nonlocal) -> None:
        self.scope.globals.extend(node.names)

    def _if(self, node: ast.If) -> None:
        detail, op = self._test(node.test)
        was = self.type_only
        if "TYPE_CHECKING" in detail or "typing.TYPE_CHECKING" in detail:
            self.type_only = True
        kind = "main" if "__name__" in detail and "='__main__'" in detail else "then"
        then = self._block(kind, node.body, node.lineno, detail=detail, op=op)
        self.type_only = was
        if node.orelse:
            self._block("else", node.orelse, node.orelse[0].lineno, link=then)

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        atoms = self._value(node.iter)
        at = self.scope.enter("for", node.lineno, detail=atoms)
        self._bind(node.target, atoms, "for", "")
        self._body(node.body)
        self.scope.leave(at, node.body[-1].end_lineno or node.lineno)
        if node.orelse:
            self._body(node.orelse)

    def _while(self, node: ast.While) -> None:
        at = self.scope.enter("while", node.lineno)
        detail, op = self._test(node.test)
        self._body(node.body)
        self.scope.leave(at, node.body[-1].end_lineno or node.lineno, detail=detail, op=op)
        if node.orelse:
            self._body(node.orelse)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        opened = []
        for item in node.items:
            context = item.context_expr
            self.expect = 1 if item.optional_vars is not None else 0
            atoms = self._value(context)
            self.expect = 0
            opened.append(self.scope.enter("with", node.lineno, detail=atoms))
            if item.optional_vars is not None:
                self._bind(item.optional_vars, atoms, "with", "")
        self._body(node.body)
        for at in reversed(opened):
            self.scope.leave(at, node.body[-1].end_lineno or node.lineno)

    def _try(self, node: ast.Try) -> None:
        was = self.guarded
        self.guarded = self.guarded or bool(node.handlers)
        at = self._block("try", node.body, node.lineno)
        self.guarded = was
        for handler in node.handlers:
            kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type] if handler.type is not None else []
            opened = self.scope.enter("except", handler.lineno, link=at, detail=tuple([dotted(k) or "?" for k in kinds]))
            if handler.name:
                self.scope.binds.append(Bind(handler.name, (), "except", "", handler.lineno, 0, opened, self.scope.tick()))
            self._body(handler.body)
            self.scope.leave(opened, handler.end_lineno or handler.lineno)
        if node.orelse:
            self._block("tryelse", node.orelse, node.orelse[0].lineno, link=at)
        if node.finalbody:
            self._block("finally", node.finalbody, node.finalbody[0].lineno, link=at)

    def _match(self, node: ast.Match) -> None:
        atoms = self._value(node.subject)
        first = -1
        for case in node.cases:
            at = self._block("case", case.body, case.body[0].lineno, link=first, detail=atoms)
            first = at if first < 0 else first

    # ---- definitions

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        decorators = tuple([self._decorator(d) for d in node.decorator_list])
        params = self._params(node.args)
        cls = self.scope.cls if self.scope.name.startswith("<class ") else -1
        self._open(node.name, self._qualified(node.name), cls, node.lineno, node.col_offset, node.end_lineno or node.lineno)
        self._body(node.body)
        self._close(params, decorators, dotted(node.returns), is_async=type(node) is ast.AsyncFunctionDef)

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

    def _decorator(self, node: ast.expr) -> Decorator:
        if isinstance(node, ast.Call):
            args = [a for arg in node.args for a in self._value(arg)]
            for keyword in node.keywords:
                args.extend(self._value(keyword.value))
            return Decorator(dotted(node.func), tuple(args))
        return Decorator(dotted(node))

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
        annotation = dotted(arg.annotation) if arg.annotation is not None else ""
        return Param(arg.arg, annotation, None if default is None else self._value(default), kind)

    def _class(self, node: ast.ClassDef) -> None:
        decorators = tuple([self._decorator(d) for d in node.decorator_list])
        bases = tuple([dotted(b) for b in node.bases])
        for keyword in node.keywords:
            self._value(keyword.value)
        index = len(self.classes)
        parent, qualname = self.scope.index, self._qualified(node.name)
        self.classes.append(Class(node.name, qualname, parent, node.lineno, node.col_offset, bases, decorators, len(self.functions)))
        self._open(f"<class {node.name}>", qualname, index, node.lineno, node.col_offset, node.end_lineno or node.lineno)
        self._body(node.body)
        self._close((), (), "", is_async=False)

    # ---- imports

    def _import(self, node: ast.Import) -> None:
        for a in node.names:
            where = (self._scope_of_import(), a.lineno, a.col_offset, a.end_col_offset or 0, self.type_only, self.guarded)
            self.imports.append(Import(a.name, "", a.asname or "", 0, "module", *where))

    def _import_from(self, node: ast.ImportFrom) -> None:
        for a in node.names:
            where = (self._scope_of_import(), a.lineno, a.col_offset, a.end_col_offset or 0, self.type_only, self.guarded)
            kind = "star" if a.name == "*" else "from"
            self.imports.append(Import(node.module or "", a.name, a.asname or "", node.level, kind, *where))

    def _scope_of_import(self) -> int:
        return self.scope.index

    # ---- expressions

    def _value(self, node: ast.expr | None) -> Atoms:
        kind = type(node)
        if kind is ast.Name:
            return (node.id,)  # type: ignore[union-attr]
        if kind is ast.Constant:
            value = node.value  # type: ignore[union-attr]
            return ("=" + (repr(value[:80]) if type(value) is str else repr(value) if type(value) is not bytes else "b"),)
        handler = self.expressions.get(kind)  # type: ignore[arg-type]
        return handler(node) if handler is not None else _NO_ATOMS  # type: ignore[operator, no-any-return]

    def _path(self, node: ast.expr) -> str | None:
        kind = type(node)
        if kind is ast.Name:
            return node.id  # type: ignore[attr-defined, no-any-return]
        if kind is ast.Attribute:
            base = self._path(node.value)  # type: ignore[attr-defined]
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
        path = self._path(node)
        if path is not None:
            return (path,)
        self.expect = 0
        receiver = self._value(node.value)
        return self._record(f".{node.attr}", node, -2, (), (), receiver)

    def _subscript(self, node: ast.Subscript) -> Atoms:
        path = self._path(node)
        if path is not None:
            return (path,)
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

    def _record(
        self, name: str, node: ast.expr, result: int, args: tuple[Atoms, ...], keywords: tuple[tuple[str, Atoms], ...], receiver: Atoms
    ) -> Atoms:
        scope = self.scope
        scope.order += 1
        at = len(scope.calls)
        scope.calls.append(
            Call(
                name,
                node.lineno,
                node.col_offset,
                node.end_lineno or node.lineno,
                node.end_col_offset or 0,
                scope.block,
                scope.order,
                result,
                args,
                keywords,
                receiver,
            )  # fmt: skip
        )
        return (at,)

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
        self._bind(node.target, atoms, "=", _operator(node.value))
        return (node.target.id,)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Atoms:
        self.expect = 0
        opened = []
        for part in node.generators:
            atoms = self._value(part.iter)
            opened.append(self.scope.enter("comp", node.lineno, detail=atoms))
            self._bind(part.target, atoms, "for", "")
            for test in part.ifs:
                self._test(test)
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
            word = _OPERATORS[type(node.op)]  # type: ignore[attr-defined]
            return tuple([a for atoms, _ in parts for a in atoms]), f" {word} ".join(op for _, op in parts)
        if kind is ast.UnaryOp and type(node.op) is ast.Not:  # type: ignore[attr-defined]
            atoms, op = self._test(node.operand)  # type: ignore[attr-defined]
            return atoms, f"not {op}".strip()
        if kind is ast.Compare:
            sides = [node.left, *node.comparators]  # type: ignore[attr-defined]
            parts = [self._test(s) for s in sides]
            ops = "".join(_OPERATORS.get(type(o), "?") for o in node.ops)  # type: ignore[attr-defined]
            return tuple([a for atoms, _ in parts for a in atoms]), "".join(op for _, op in parts) + ops
        if kind is ast.BinOp:
            left, right = self._test(node.left), self._test(node.right)  # type: ignore[attr-defined]
            return (*left[0], *right[0]), left[1] + right[1] + _OPERATORS.get(type(node.op), "")  # type: ignore[attr-defined]
        return self._value(node), ""


def _operator(node: ast.expr | None) -> str:
    kind = type(node)
    if kind is ast.BinOp or kind is ast.BoolOp:
        return _OPERATORS.get(type(node.op), "")  # type: ignore[union-attr]
    return _SHAPES.get(kind, "")  # type: ignore[arg-type]


_SHAPES: dict[type, str] = {
    ast.IfExp: "if", ast.Compare: "cmp", ast.Dict: "{}", ast.List: "[]", ast.Set: "[]", ast.Tuple: "[]", ast.ListComp: "[]", ast.DictComp: "{}",
    ast.Lambda: "lambda", ast.Await: "await", ast.Subscript: "item", ast.JoinedStr: "text",
}  # fmt: skip
