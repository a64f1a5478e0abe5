"""Which object a path stands for: followed through fields, constructors, parameters and closures, and open where a field is replaced."""

from __future__ import annotations

from gyrecheck.commands.lint_check import load_rules
from gyrecheck.model.facts import Module
from gyrecheck.program.origin import Origin, frame_of, origin
from gyrecheck.program.program import Program
from gyrecheck.source.cache import Cache
from gyrecheck.source.read import read_source

RULES = load_rules(Cache(None))
TEXT = """
class Board:
    def __init__(self, net, rest):
        self.net, self.rest, self.best = net, list(rest), net

    def swap(self, other):
        self.best = other


class Worker:
    def __init__(self, board, mine):
        self.board, self.mine = board, mine

    def run(self):
        held = self.board.net
        return held(1)


def main(net, rest):
    board = Board(net, rest)
    worker = Worker(board, mine=rest)

    def inner():
        return net(2)

    return worker.run(), inner()
"""


def program() -> Program:
    """The sample as a program."""
    module = read_source(TEXT.encode(), "sample.py")
    assert isinstance(module, Module)
    return Program((module,), RULES.lexicon, RULES.regions, RULES.words)


def number_of(whole: Program, name: str) -> int:
    """A function by its name."""
    return next(fn.number for fn in whole.functions if whole.name(fn.number) == name)


def at_main(path: str) -> Origin:
    """The origin of a path read in `main`."""
    whole = program()
    return origin(whole, number_of(whole, "main"), path)


def test_a_field_is_what_the_constructor_was_given() -> None:
    """`worker.board.net` is the `net` of the function that made both; a keyword argument is followed as well."""
    main = number_of(program(), "main")
    assert at_main("worker.board.net") == (main, "net")
    assert at_main("worker.mine") == (main, "rest")


def test_a_copy_and_a_replaced_field_are_objects_of_their_own() -> None:
    """What a call makes is not what it was given, and a field that another method binds anew may be anything."""
    main = number_of(program(), "main")
    assert at_main("board.rest") != (main, "rest")
    assert at_main("board.best") != (main, "net")


def test_self_is_what_the_call_was_made_on() -> None:
    """Inside a method a local name, over a field of `self`, is the caller's object."""
    whole = program()
    main, run = number_of(whole, "main"), number_of(whole, "Worker.run")
    at = next(i for i, call in enumerate(whole.functions[main].fact.calls) if call.name == "worker.run")
    assert origin(whole, run, "held", frame_of(whole, main, at, run)) == (main, "net")


def test_a_closure_reads_the_name_of_the_function_around_it() -> None:
    """A free name belongs to the outer function."""
    whole = program()
    assert origin(whole, number_of(whole, "main.inner"), "net") == (number_of(whole, "main"), "net")
