"""One pass over one syntax tree: every fact the program analysis asks for, each node visited once, nothing judged."""

from __future__ import annotations

import ast

from gyrecheck.model.facts import Atoms, Bind, Class, Decorator, Import, Module
from gyrecheck.source.expressions import Expressions
from gyrecheck.source.scopes import dotted
from gyrecheck.source.spelled import OPERATORS, operator


def facts_of(tree: ast.Module, path: str, lines: int = 0) -> Module:
    """The facts of a parsed file."""
    reader = _Pass()
    try:
        return reader.module(tree, path, lines)
    finally:  # its tables of methods refer to it: without them it goes at once, even where nobody looks for cycles
        reader.statements.clear()
        reader.expressions.clear()


class _Pass(Expressions):
    """The walk. `scope` is the function being read; `expect` is what the next call's result is used for."""

    def __init__(self) -> None:
        super().__init__()
        self.classes: list[Class] = []
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

    def module(self, tree: ast.Module, path: str, lines: int) -> Module:
        self._open("<module>", "", -1, 1, 0, (tree.body[-1].end_lineno or 1) if tree.body else 1)
        self._body(tree.body)
        self._close((), (), "", is_async=False)
        functions = tuple(f for f in self.functions if f is not None)
        return Module(path, functions, tuple(self.classes), tuple(self.imports), lines, tuple(sorted(self.annotated)))

    # ---- scopes

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
                    results = [(goal, self._targeted(goal, v), operator(v)) for goal, v in zip(goals, values, strict=True)]
                    for goal, atoms, op in results:
                        self._bind(goal, atoms, "=", op)
                    if len(node.targets) == 1:
                        return
                    continue
            atoms = self._targeted(target, value)
            op = operator(value)
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
        atoms = self._value(node.value) if node.value is not None else ()
        self.expect = 0
        self._bind(node.target, atoms, "=" if node.value is not None else ":", operator(node.value), self._annotation(node.annotation))

    def _augmented(self, node: ast.AugAssign) -> None:
        self._bind(node.target, self._value(node.value), "+=", OPERATORS.get(type(node.op), ""))

    def _return(self, node: ast.Return) -> None:
        value = node.value
        if value is None:
            items: tuple[Atoms, ...] = ()
        elif type(value) is ast.Tuple:
            items = tuple([self._value(e) for e in value.elts])
        else:
            items = (self._value(value),)
        self._exit("return", node, items)

    def _raise(self, node: ast.Raise) -> None:
        self._exit("raise", node, (self._value(node.exc),) if node.exc is not None else ())

    def _jump(self, node: ast.Continue | ast.Break) -> None:
        self._exit("continue" if type(node) is ast.Continue else "break", node, ())

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self._bind(target, (), "del", "")

    def _assert(self, node: ast.Assert) -> None:
        detail, op = self._test(node.test)
        self.scope.leave(self.scope.enter("assert", node.lineno, detail=detail, op=op), node.lineno)

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
        returns = self._annotation(node.returns) if node.returns is not None else ""
        self._close(params, decorators, returns, is_async=type(node) is ast.AsyncFunctionDef)

    def _decorator(self, node: ast.expr) -> Decorator:
        if isinstance(node, ast.Call):
            args = [a for arg in node.args for a in self._value(arg)]
            for keyword in node.keywords:
                args.extend(self._value(keyword.value))
            return Decorator(dotted(node.func), tuple(args))
        return Decorator(dotted(node))

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
