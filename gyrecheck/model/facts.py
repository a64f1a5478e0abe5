"""What one source file says, without its syntax tree: definitions, calls, bindings, blocks and exits, small enough to keep on disk.

All positions are as `ast` gives them: lines 1-based, columns 0-based in UTF-8 bytes; a finding converts them once. Records are named
tuples, since a large tree makes hundreds of thousands of them and a frozen dataclass costs five times as much to make.

An *atom* is what flows into a place: a path that is read (`self.env`, `row[val]`, `rows[]`), a constant (`=0.0`, `=None`, `='key'`),
a lambda (`<lambda 7>`, the index of its function), or the index of a call of the same function (an integer).
"""

from __future__ import annotations

from typing import NamedTuple

Atom = str | int
Atoms = tuple[Atom, ...]


class Call(NamedTuple):
    """One call in evaluation order. `{}` is a dict display, `.name` a method of a value without a name (then `receiver` says which)."""

    name: str
    line: int
    column: int
    end_line: int
    end_column: int
    block: int
    order: int
    result: int
    """-1 statement, 0 used inside an expression, 1 bound to one target, n unpacked into n targets; -2 an attribute is read, no call."""
    args: tuple[Atoms, ...] = ()
    keywords: tuple[tuple[str, Atoms], ...] = ()
    receiver: Atoms = ()


class Bind(NamedTuple):
    """One binding of a name, attribute or item. `form`: `=` `+=` `for` `with` `except` `del`, or `i/n` for target i of an unpacking."""

    target: str
    value: Atoms
    form: str
    op: str
    """The outermost operator of the value: `*` `//` `+` `or` `if` `cmp` `not` `{}` `[]`, empty for none."""
    line: int
    column: int
    block: int
    order: int
    annotation: str = ""


class Block(NamedTuple):
    """A stretch under one header. `kind`: function for while then else try except finally with comp case main assert."""

    kind: str
    parent: int
    link: int
    """else: its `then`; except and finally: their `try`; otherwise -1."""
    line: int
    end_line: int
    order: int
    end_order: int
    detail: Atoms = ()
    """then, while, assert: what is tested; for: what is iterated; with: the context's call; except: the exception names."""
    op: str = ""
    """then, while, assert: the operators tested, e.g. `%==` or `not in`; comp: `if` when it leaves elements out."""
    asked: Atoms = ()
    """comp: what its conditions read."""


class Exit(NamedTuple):
    """`return` (one atoms entry per element of a tuple), `yield`, `raise`, `continue`, `break`."""

    kind: str
    line: int
    column: int
    block: int
    order: int
    items: tuple[Atoms, ...] = ()


class Param(NamedTuple):
    """`kind`: `` plain, `*`, `**`, `kw`."""

    name: str
    annotation: str = ""
    default: Atoms | None = None
    kind: str = ""


class Decorator(NamedTuple):
    """`args`: atoms of its positional arguments, when it is called."""

    name: str
    args: Atoms = ()


class Function(NamedTuple):
    """A function, lambda, class body (`<class X>`) or module body (`<module>`, always index 0). `parent`: enclosing function, or -1."""

    name: str
    qualname: str
    parent: int
    cls: int
    line: int
    column: int
    end_line: int
    is_async: bool
    params: tuple[Param, ...]
    decorators: tuple[Decorator, ...]
    returns: str
    calls: tuple[Call, ...]
    binds: tuple[Bind, ...]
    blocks: tuple[Block, ...]
    exits: tuple[Exit, ...]
    globals: tuple[str, ...] = ()


class Class(NamedTuple):
    """`body`: the index of its `<class X>` function, whose binds are its fields."""

    name: str
    qualname: str
    parent: int
    line: int
    column: int
    bases: tuple[str, ...]
    decorators: tuple[Decorator, ...]
    body: int


class Import(NamedTuple):
    """`kind`: module, from, star, dynamic. `function`: where it stands (0 = module level)."""

    module: str
    name: str
    alias: str
    level: int
    kind: str
    function: int
    line: int
    column: int
    end_column: int
    type_only: bool = False
    guarded: bool = False
    """Under try with a handler, so that the module may be missing."""


class Module(NamedTuple):
    """All facts of one file; `path` as the user will read it."""

    path: str
    functions: tuple[Function, ...]
    classes: tuple[Class, ...]
    imports: tuple[Import, ...]
    lines: int = 0
    annotated: tuple[str, ...] = ()
    """First names that stand in annotations, inside brackets and unions too; sorted."""


class Unreadable(NamedTuple):
    """A file that could not be parsed: GYR001."""

    path: str
    line: int
    column: int
    reason: str
