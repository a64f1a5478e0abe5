"""What an untyped value is, by what is asked of it: only the one class of the same file that has it all, never a guess."""

from __future__ import annotations

import pytest

from gyrecheck.commands.lint_check import load_rules
from gyrecheck.model.facts import Module
from gyrecheck.program.program import Program
from gyrecheck.source.cache import Cache
from gyrecheck.source.read import read_source

RULES = load_rules(Cache(None))
WORKER = """
class Worker:
    def __init__(self, net):
        self.net, self.version = net, 0

    def add_up(self, part):
        return self.net(part)

    def apply_all(self):
        self.version += 1


"""


def resolved(text: str, function: str, path: str) -> str:
    """The class that `path` is an instance of in `function`, or empty."""
    module = read_source(text.encode(), "sample.py")
    assert isinstance(module, Module)
    program = Program((module,), RULES.lexicon, RULES.regions, RULES.words)
    number = next(fn.number for fn in program.functions if program.name(fn.number) == function)
    found = program.resolver.path(number, path)
    return program.tree.classes[int(found.ref)].fact.name if found is not None and found.kind == "inst" else ""


def test_a_parameter_is_the_class_that_has_all_that_is_asked_of_it() -> None:
    """Two methods and a field that only one class has."""
    text = WORKER + "def go(w, part):\n    w.add_up(part)\n    w.apply_all()\n    return w.version\n"
    assert resolved(text, "go", "w") == "Worker"


def test_a_field_is_known_by_what_all_methods_ask_of_it() -> None:
    """One method calls this, another reads that."""
    text = WORKER + (
        "class Loop:\n    def __init__(self, worker):\n        self.worker = worker\n\n"
        "    def add(self, part):\n        self.worker.add_up(part)\n\n    def tell(self):\n        return self.worker.version\n"
    )
    assert resolved(text, "Loop.tell", "self.worker") == "Worker"


@pytest.mark.parametrize(
    "body",
    [
        "    w.add_up(part)\n",
        "    w.add_up(part)\n    w.close_down()\n",
        "    w.version\n    w.net.eval()\n",
    ],
    ids=["one member only", "a member it lacks", "no method of its own"],
)
def test_too_little_or_too_much_is_no_class(body: str) -> None:
    """One member, a member that the class has not, or fields alone say nothing."""
    assert resolved(WORKER + "def go(w, part):\n" + body, "go", "w") == ""


def test_two_classes_that_fit_are_none() -> None:
    """A second class with the same methods leaves it open."""
    text = WORKER + WORKER.replace("Worker", "Other") + "def go(w, part):\n    w.add_up(part)\n    w.apply_all()\n"
    assert resolved(text, "go", "w") == ""


def test_a_class_is_no_part_of_itself() -> None:
    """A wrapper with the methods of what it wraps wraps something else."""
    text = (
        "class Wrapper:\n    def __init__(self, inner):\n        self.inner = inner\n\n"
        "    def add_up(self, part):\n        return self.inner.add_up(part)\n\n"
        "    def apply_all(self):\n        return self.inner.apply_all()\n"
    )
    assert resolved(text, "Wrapper.add_up", "self.inner") == ""
