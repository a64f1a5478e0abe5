"""The functions of a file while they are read: which one is open, what it is called, and what it has recorded so far.

Functions are numbered in the order in which they open; each is whole when it closes.
"""

from __future__ import annotations

import ast
from sys import intern

from gyrecheck.model.facts import Atoms, Call, Decorator, Exit, Function, Import, Param
from gyrecheck.source.scopes import Scope, dotted, mentioned

new_record = tuple.__new__
"""Makes a record without its constructor's own call, which is a third of the price; all fields in order."""


class OpenScopes:
    """The stack of open scopes. `functions` holds None where a function is still open."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.functions: list[Function | None] = []
        self.imports: list[Import] = []
        self.annotated: set[str] = set()
        self.scope: Scope

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

    def _exit(self, kind: str, node: ast.stmt | ast.expr, items: tuple[Atoms, ...]) -> None:
        scope = self.scope
        scope.exits.append(Exit(kind, node.lineno, node.col_offset, scope.block, scope.tick(), items))

    def _record(
        self, name: str, node: ast.expr, result: int, args: tuple[Atoms, ...], keywords: tuple[tuple[str, Atoms], ...], receiver: Atoms
    ) -> Atoms:
        scope = self.scope
        scope.order += 1
        name = intern(name)
        at = len(scope.calls)
        end_line, end = node.end_lineno or node.lineno, node.end_col_offset or 0
        row = (name, node.lineno, node.col_offset, end_line, end, scope.block, scope.order, result, args, keywords, receiver)
        scope.calls.append(new_record(Call, row))
        return (at,)

    def _annotation(self, node: ast.expr) -> str:
        """The annotation as `dotted` has it; every first name in it is remembered."""
        mentioned(node, self.annotated)
        return dotted(node)
