"""The exact places in one file that a fix may touch: functions, imports with their names, method calls, names in use.

Places are 1-based lines and columns in characters. `concrete` reads them with libcst; nothing here imports it.
"""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Span:
    """From `line:column` up to, not including, `end_line:end_column`."""

    line: int
    column: int
    end_line: int
    end_column: int

    def holds(self, line: int) -> bool:
        """Whether the line is one of the span's."""
        return self.line <= line <= self.end_line


@dataclass(frozen=True, slots=True)
class FunctionPlace:
    """A function from its `def` to the end of its body; `calls` are the last names of what it calls."""

    qualname: str
    span: Span
    decorators: tuple[str, ...]
    asynchronous: bool
    yields: bool
    calls: frozenset[str]


@dataclass(frozen=True, slots=True)
class AliasPlace:
    """One imported name: the dotted name as written, the name it binds, and its place without the comma."""

    name: str
    bound: str
    span: Span


@dataclass(frozen=True, slots=True)
class Statement:
    """A simple statement within its physical line(s): its neighbours on the line, and whether it is alone in its block."""

    span: Span
    before: Span | None
    after: Span | None
    own_line: bool
    sole: bool
    depth: int
    """0 at module level; counts blocks of any kind."""
    guarded: bool
    """Inside a try statement."""


@dataclass(frozen=True, slots=True)
class ImportPlace:
    """One import statement. `module` is the text after `from` with its dots, empty for a plain import; `module_span` is its place."""

    statement: Statement
    module: str
    module_span: Span | None
    aliases: tuple[AliasPlace, ...]
    star: bool


@dataclass(frozen=True, slots=True)
class CallPlace:
    """A call `receiver.method(...)` that is a whole statement; `arguments` are their texts, keywords as `name=value`."""

    receiver: str
    method: str
    arguments: tuple[str, ...]
    statement: Statement
    span: Span


@dataclass(slots=True)
class Concrete:
    """All places of one file, in source order; `names` counts names in use outside imports, `texts` are strings that may be code."""

    functions: list[FunctionPlace] = field(default_factory=list)
    imports: list[ImportPlace] = field(default_factory=list)
    calls: list[CallPlace] = field(default_factory=list)
    names: Counter[str] = field(default_factory=Counter)
    texts: list[str] = field(default_factory=list)
    first_statement: int = 0
    """Line of the first statement, docstring or decorator; 0 for an empty file."""
    docstring_end: int = 0

    def uses(self, name: str) -> bool:
        """Whether the file speaks of the name outside imports, also in a text that reads as an expression (an annotation, `__all__`)."""
        return bool(self.names[name]) or any(name in text and _is_code(text) for text in self.texts)

    def enclosing(self, line: int) -> FunctionPlace | None:
        """The innermost function that holds the line."""
        return next((f for f in sorted(self.functions, key=lambda f: -f.span.line) if f.span.holds(line)), None)


def _is_code(text: str) -> bool:
    try:
        ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
