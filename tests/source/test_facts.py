"""Facts: what one pass reads off a file, and that any text whatever ends in facts or in a named failure."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gyrecheck.model.facts import Function, Module, Unreadable
from gyrecheck.source.read import read_source


def facts(text: str) -> Module:
    """The facts of a text that parses."""
    found = read_source(text.encode(), "x.py")
    assert isinstance(found, Module), found
    return found


def function(text: str, name: str) -> Function:
    """One function's facts."""
    return next(f for f in facts(text).functions if f.name == name)


def test_calls_with_shape() -> None:
    """A call knows its dotted name, arguments, keywords, and what its result is used for."""
    call = function("def f(env):\n    a, b, c, d, e = env.step(x, speed=2)\n", "f").calls[0]
    assert (call.name, call.result, call.args, call.keywords) == ("env.step", 5, (("x",),), (("speed", ("=2",)),))


def test_receiver_of_a_chain() -> None:
    """`Categorical(x).sample()` has the inner call as its receiver; a statement's result is -1."""
    calls = function("def f(x):\n    Categorical(x).sample()\n", "f").calls
    assert [(c.name, c.receiver, c.result) for c in calls] == [("Categorical", (), 0), (".sample", (0,), -1)]


def test_tuple_assignment_is_pairwise() -> None:
    """`self.a, self.b = x, Y()` binds each target to its own value."""
    binds = function("def f(self, x):\n    self.a, self.b = x, Y()\n", "f").binds
    assert [(b.target, b.value) for b in binds] == [("self.a", ("x",)), ("self.b", (0,))]


def test_region_state_is_a_stack() -> None:
    """A function nested in a guarded block does not end the guard for what follows it."""
    fact = function("def f(m, x):\n    with no_grad():\n        def g():\n            return 1\n        return m(x)\n", "f")
    call = next(c for c in fact.calls if c.name == "m")
    assert fact.blocks[call.block].kind == "with"


def test_imports_of_every_kind() -> None:
    """Module, alias, from, star, relative, deferred, type-only, guarded and literal dynamic imports are told apart."""
    found = facts(
        "import a.b\nimport c as d\nfrom e import f as g\nfrom h import *\nfrom ..i import j\n"
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import k\ntry:\n    import l\nexcept ImportError:\n    l = None\n"
        "def late():\n    import m\n    n = importlib.import_module('o.p')\n"
    ).imports
    by = {i.module: i for i in found}
    assert (by["h"].kind, by["i"].level, by["k"].type_only, by["l"].guarded) == ("star", 2, True, True)
    assert (by["m"].function != 0, by["o.p"].kind, by["e"].alias) == (True, "dynamic", "g")


def test_handler_and_branches_link() -> None:
    """An `except` knows its `try`, an `else` its `then`."""
    blocks = function(
        "def f():\n    try:\n        a()\n    except (ValueError, b.C):\n        c()\n    if x % 2:\n        d()\n    else:\n        e()\n",
        "f",
    ).blocks
    kinds = [(b.kind, b.link) for b in blocks]
    assert kinds == [("function", -1), ("try", -1), ("except", 1), ("then", -1), ("else", 3)]
    assert (blocks[2].detail, blocks[3].op) == (("ValueError", "b.C"), "%")


def test_newer_syntax_is_read() -> None:
    """Syntax that an older Python refuses is read all the same, on its own lines."""
    found = facts("type X = int\ndef f[T](env: T):\n    env.step(1)\n")
    assert [c.line for f in found.functions for c in f.calls] == [3]


def test_coding_cookie_and_order_mark() -> None:
    """Latin-1 under a cookie and UTF-8 with a byte order mark are decoded as Python does."""
    assert isinstance(read_source(b"# -*- coding: latin-1 -*-\nx = '\xe9'\n", "x.py"), Module)
    assert isinstance(read_source(b"\xef\xbb\xbfx = 1\n", "x.py"), Module)


def test_what_does_not_parse_is_named() -> None:
    """NUL bytes, an unknown coding, stray bytes and a syntax error each give a line and a reason."""
    for data, line in ((b"x = 1\n\0", 2), (b"# coding: nonsense\n", 1), (b"x = 1\n\xff\n", 2), (b"x = 1\ndef f(:\n", 2)):
        found = read_source(data, "x.py")
        assert isinstance(found, Unreadable)
        assert found.line == line, (data, found)


def test_deep_nesting_ends() -> None:
    """A chain of thousands of operators, calls or branches gives facts or a reason, never a crash."""
    for text in ("x = " + "+".join(["1"] * 2500), "x = y" + ".a(1)" * 900, "x = " + "(" * 3000 + ")" * 3000, "x = " + "-" * 2500 + "1"):
        assert isinstance(read_source(text.encode(), "x.py"), (Module, Unreadable))


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=st.sampled_from("abenv.step(=),:\n \t'\"[]{}@#*\\0lambdfroimpt%+-"), max_size=120))
def test_any_text_ends(text: str) -> None:
    """Any text gives facts or a named failure."""
    assert isinstance(read_source(text.encode("utf-8", "surrogatepass"), "x.py"), (Module, Unreadable))


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_end(data: bytes) -> None:
    """Any bytes give facts or a named failure."""
    assert isinstance(read_source(data, "x.py"), (Module, Unreadable))


def test_names_in_annotations_are_remembered() -> None:
    """Every first name of an annotation is kept, inside brackets, unions and quotes too; values and calls are none."""
    text = "x: 'dict[str, gym.Space]' = f(a)\ndef g(p: list[b.C] | None, q: int = d) -> tuple[E, ...]:\n    return p\n"
    found = read_source(text.encode(), "a.py")
    assert isinstance(found, Module)
    assert found.annotated == ("E", "b", "dict", "gym", "int", "list", "str", "tuple")
