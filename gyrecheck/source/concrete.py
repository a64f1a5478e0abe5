"""Reads the places of one file with libcst.

This module imports libcst when it is imported, which costs as much as checking a whole tree: only `edits` and `text_edit` import it, and
only when a fix is asked for.
"""

# ruff: noqa: N802 - libcst names its visitor methods after its nodes

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from gyrecheck.source.depth import libcst_can_read
from gyrecheck.source.places import AliasPlace, CallPlace, Concrete, FunctionPlace, ImportPlace, Span, Statement

_LONGEST_ANNOTATION = 4096
UNREADABLE = (cst.ParserSyntaxError, RecursionError, ValueError, UnicodeError)
"""What `read_concrete` may raise on a text that libcst cannot take."""


def read_concrete(text: str) -> Concrete:
    """The places in `text`.

    Raises:
        ParserSyntaxError: no Python that libcst knows.
        RecursionError: nested too deeply.
    """
    if not libcst_can_read(text):
        raise RecursionError("nested too deeply for libcst")
    module = cst.parse_module(text)
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)  # a tree fresh from the parser shares no nodes
    reader = _Reader(module)
    wrapper.visit(reader)
    return reader.found


def parses(text: str) -> bool:
    """Whether libcst takes the text."""
    if not libcst_can_read(text):
        return False
    try:
        cst.parse_module(text)
    except UNREADABLE:
        return False
    return True


@dataclass(slots=True)
class _Function:
    node: cst.FunctionDef
    qualname: str
    yields: bool = False
    calls: set[str] = field(default_factory=set)


class _Reader(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, module: cst.Module) -> None:
        super().__init__()
        self.module = module
        self.found = Concrete()
        self.scopes: list[str] = []
        self.open: list[_Function] = []
        self.depth = 0
        self.tries = 0

    def _span(self, node: cst.CSTNode) -> Span:
        place = self.get_metadata(PositionProvider, node)
        return Span(place.start.line, place.start.column + 1, place.end.line, place.end.column + 1)

    def visit_Module(self, node: cst.Module) -> None:
        if not node.body:
            return
        first = node.body[0]
        start: cst.CSTNode = first
        if isinstance(first, cst.FunctionDef | cst.ClassDef) and first.decorators:
            start = first.decorators[0]
        self.found.first_statement = self._span(start).line
        if node.get_docstring(clean=False) is not None:
            self.found.docstring_end = self._span(first).end_line

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.open.append(_Function(node, ".".join([*self.scopes, node.name.value])))
        self.scopes += [node.name.value, "<locals>"]
        self.depth += 1

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        now = self.open.pop()
        del self.scopes[-2:]
        self.depth -= 1
        decorators = tuple(self.module.code_for_node(d.decorator) for d in original_node.decorators)
        place = FunctionPlace(
            now.qualname, self._span(original_node), decorators, original_node.asynchronous is not None, now.yields, frozenset(now.calls)
        )
        self.found.functions.append(place)
        if self.open:
            self.open[-1].calls |= now.calls

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self.scopes.append(node.name.value)
        self.depth += 1

    def leave_ClassDef(self, original_node: cst.ClassDef) -> None:
        del original_node
        self.scopes.pop()
        self.depth -= 1

    def visit_Try(self, node: cst.Try) -> None:
        del node
        self.tries += 1

    def leave_Try(self, original_node: cst.Try) -> None:
        del original_node
        self.tries -= 1

    def visit_If(self, node: cst.If) -> None:
        del node
        self.depth += 1

    def leave_If(self, original_node: cst.If) -> None:
        del original_node
        self.depth -= 1

    def visit_Yield(self, node: cst.Yield) -> None:
        del node
        if self.open:
            self.open[-1].yields = True

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> None:
        self._statements(node.body, nested=True)

    def visit_SimpleStatementSuite(self, node: cst.SimpleStatementSuite) -> None:
        self._line(node.body, own_line=False, sole=len(node.body) == 1)

    def leave_Module(self, original_node: cst.Module) -> None:
        self._statements(original_node.body, nested=False)
        self.found.imports.sort(key=lambda i: (i.statement.span.line, i.statement.span.column))
        self.found.calls.sort(key=lambda c: (c.span.line, c.span.column))

    def _statements(self, body: Sequence[cst.BaseStatement], *, nested: bool) -> None:
        for statement in body:
            if isinstance(statement, cst.SimpleStatementLine):
                self._line(statement.body, own_line=len(statement.body) == 1, sole=nested and len(body) == 1)

    def _line(self, body: Sequence[cst.BaseSmallStatement], *, own_line: bool, sole: bool) -> None:
        spans = [self._span(small) for small in body]
        for at, small in enumerate(body):
            before = spans[at - 1] if at else None
            after = spans[at + 1] if at + 1 < len(spans) else None
            statement = Statement(spans[at], before, after, own_line, sole and len(body) == 1, self.depth, self.tries > 0)
            if isinstance(small, cst.Import | cst.ImportFrom):
                self._import(small, statement)
            elif isinstance(small, cst.Expr) and isinstance(small.value, cst.Call) and isinstance(small.value.func, cst.Attribute):
                self._call(small.value, small.value.func, statement)

    def _import(self, node: cst.Import | cst.ImportFrom, statement: Statement) -> None:
        module, module_span = "", None
        if isinstance(node, cst.ImportFrom):
            dots = "." * len(node.relative)
            module = dots + (self.module.code_for_node(node.module) if node.module is not None else "")
            # a module of dots alone has no node of its own, so it cannot be replaced in place
            module_span = self._span(node.module) if node.module is not None else None
            if module_span is not None and dots:
                module_span = Span(module_span.line, module_span.column - len(dots), module_span.end_line, module_span.end_column)
        names = () if isinstance(node.names, cst.ImportStar) else node.names
        aliases = []
        for alias in names:
            name = self.module.code_for_node(alias.name)
            given = alias.asname.name if alias.asname is not None else None
            bound = given.value if isinstance(given, cst.Name) else name if module else name.partition(".")[0]
            aliases.append(AliasPlace(name, bound, self._span(alias)))
        self.found.imports.append(ImportPlace(statement, module, module_span, tuple(aliases), isinstance(node.names, cst.ImportStar)))

    def _call(self, call: cst.Call, func: cst.Attribute, statement: Statement) -> None:
        code = self.module.code_for_node
        arguments = tuple((f"{a.keyword.value}=" if a.keyword is not None else "") + code(a.value) for a in call.args)
        self.found.calls.append(CallPlace(code(func.value), func.attr.value, arguments, statement, self._span(call)))

    def visit_Import(self, node: cst.Import) -> bool:
        del node
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        del node
        return False

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        node.value.visit(self)  # the attribute's own name is no use of a variable
        return False

    def visit_Call(self, node: cst.Call) -> None:
        last = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
        if self.open and isinstance(last, cst.Name):
            self.open[-1].calls.add(last.value)

    def visit_Name(self, node: cst.Name) -> None:
        self.found.names[node.value] += 1

    def visit_Expr(self, node: cst.Expr) -> bool:
        return not isinstance(node.value, cst.SimpleString | cst.ConcatenatedString)  # a docstring is prose

    def visit_SimpleString(self, node: cst.SimpleString) -> None:
        if len(node.value) < _LONGEST_ANNOTATION:
            self.found.texts.append(node.raw_value)
