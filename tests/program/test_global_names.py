"""A name that a function declares global belongs to the module, its value to the function that makes it."""

from __future__ import annotations

from gyrecheck.model.facts import Module
from gyrecheck.program.program import Program
from gyrecheck.rulebook.lexicon import load_lexicon
from gyrecheck.rulebook.lint_words import load_lint_words
from gyrecheck.rulebook.regions import load_regions
from gyrecheck.source.read import read_source

TEXT = """\
POLICY = None
BEST = None


def load(path):
    global POLICY
    first = open(path)
    POLICY = first.read()
    return POLICY.act()


def outer():
    count = 0

    def inner():
        nonlocal count
        x = int("1")
        count = max(x, 2)
        return count

    return inner


def step(env):
    return env.step(POLICY.act())
"""


def test_a_global_made_inside_a_function_is_read_everywhere() -> None:
    """The value's calls are those of the making function; reading the name elsewhere never looks into the wrong one."""
    module = read_source(TEXT.encode(), "globals.py")
    assert isinstance(module, Module)
    program = Program((module,), load_lexicon(), load_regions(), load_lint_words())
    names = {fn.fact.qualname for fn in program.functions}
    assert {"load", "outer", "step"} <= names
