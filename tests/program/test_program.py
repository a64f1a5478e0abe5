"""Names, receivers, edges and effects: what a call means follows through files, classes, wrappers and threads."""

from __future__ import annotations

from gyrecheck.model.facts import Module
from gyrecheck.program.duties import duties
from gyrecheck.program.program import Program
from gyrecheck.program.topology import layout
from gyrecheck.rulebook.lexicon import load_lexicon
from gyrecheck.rulebook.lint_words import load_lint_words
from gyrecheck.rulebook.regions import load_regions
from gyrecheck.source.read import read_source

LEXICON, REGIONS, WORDS = load_lexicon(), load_regions(), load_lint_words()


def program(**files: str) -> Program:
    """A program of files; `a__b` is `a/b.py`."""
    modules = []
    for name, text in files.items():
        found = read_source(text.encode(), name.replace("__", "/").replace("INIT", "__init__") + ".py")
        assert isinstance(found, Module), found
        modules.append(found)
    return Program(tuple(modules), LEXICON, REGIONS, WORDS)


def number(made: Program, name: str) -> int:
    """The function of this qualified name."""
    return next(fn.number for fn in made.functions if fn.fact.qualname == name)


def reaches(made: Program, name: str, role: str) -> list[str]:
    """The functions on the way from `name` to a call of `role`."""
    return [made.name(h.function) for h in made.full.chain(number(made, name), role)]


def test_method_of_attribute_through_base_class() -> None:
    """`self.h.run()` is found though `h` is set in the base's constructor and `run` is inherited."""
    made = program(
        a="class Base:\n    def __init__(self):\n        self.h = Worker()\nclass Mid:\n    def run(self, env):\n        return env.step(1)\n"
        "class Worker(Mid):\n    pass\nclass Top(Base):\n    def go(self, env):\n        return self.h.run(env)\n"
    )
    assert reaches(made, "Top.go", "env.step") == ["Top.go", "Mid.run"]


def test_override_of_abstract_method() -> None:
    """A base that calls its own abstract method reaches what a subclass does there."""
    made = program(
        a="class Algo:\n    def learn(self):\n        self.train()\n    def train(self):\n        raise NotImplementedError\n",
        b="from a import Algo\nclass Ppo(Algo):\n    def train(self):\n        self.optimizer.step()\n",
    )
    assert reaches(made, "Algo.learn", "optimizer.step") == ["Algo.learn", "Ppo.train"]


def test_partial_lambda_thread_and_nested() -> None:
    """Callables that are wrapped, written inline, passed to a thread or returned are followed."""
    made = program(
        a="import functools, threading\ndef leaf(env):\n    env.step(1)\ndef one(env):\n    functools.partial(leaf, env)()\n"
        "def two(env):\n    f = lambda: leaf(env)\n    f()\ndef three(env):\n    threading.Thread(target=leaf, args=(env,)).start()\n"
        "def make():\n    def inner(env):\n        leaf(env)\n    return inner\ndef four(env):\n    run = make()\n    run(env)\n"
    )
    for name in ("one", "two", "three", "four"):
        assert reaches(made, name, "env.step")[-1] == "leaf", name


def test_reexport_star_relative_and_namespace() -> None:
    """A name is found through a package's `__init__`, a star, a relative import and a folder without `__init__`."""
    made = program(
        pkg__INIT="from .impl import act as perform\n",
        pkg__impl="def act(env):\n    env.step(0)\n",
        space__tools="from pkg.impl import *\n",
        main="from pkg import perform\nfrom space.tools import act\ndef a(env):\n    perform(env)\ndef b(env):\n    act(env)\n",
    )
    assert reaches(made, "a", "env.step") == ["a", "act"]
    assert reaches(made, "b", "env.step") == ["b", "act"]


def test_src_layout_and_import_cycle() -> None:
    """`import pkg.x` finds `src/pkg/x.py`; two files that import each other end."""
    made = program(
        src__pkg__INIT="",
        src__pkg__x="from pkg.y import two\ndef one(env):\n    two(env)\n",
        src__pkg__y="from pkg.x import one\ndef two(env):\n    env.step(1)\n    one(env)\n",
    )
    assert reaches(made, "one", "env.step") == ["one", "two"]


def test_shortest_chain_wins_and_recursion_ends() -> None:
    """Of two ways the shorter is told; functions that call themselves or each other are no endless way."""
    made = program(a="def a(e):\n    b(e)\n    c(e)\n    a(e)\ndef b(e):\n    c(e)\n    a(e)\ndef c(env):\n    env.step(1)\n    b(env)\n")
    assert reaches(made, "a", "env.step") == ["a", "c"]


def test_parameter_is_what_callers_pass() -> None:
    """An unannotated parameter is typed by a call site: a scheduler's `step` is no environment's."""
    made = program(
        a="import torch\ndef tick(thing):\n    thing.step()\ndef main(opt):\n    s = torch.optim.lr_scheduler.StepLR(opt, 1)\n    tick(s)\n"
    )
    assert made.has(number(made, "tick"), "scheduler.step") == "scheduler.step"


def test_evaluation_is_a_barrier() -> None:
    """What an evaluation does is not its caller's."""
    made = program(
        a="def evaluate(env):\n    env.step(1)\ndef update(opt, loss, env):\n    loss.backward()\n    opt.step()\n    evaluate(env)\n"
    )
    assert made.has(number(made, "update"), "env.step") == ""


def test_duties() -> None:
    """A sampler, a trainer, the driver that calls both, a crossing, and an environment."""
    made = program(
        a="class W:\n    def reset(self):\n        return 0\n    def step(self, a):\n        return 0, 0, False, False, {}\n"
        "def collect(env):\n    env.step(1)\ndef learn_on(opt, loss):\n    loss.backward()\n    opt.step()\n"
        "def drive(env, opt, loss):\n    collect(env)\n    learn_on(opt, loss)\ndef update(env, opt, loss):\n    opt.step()\n    collect(env)\n"
    )
    table = {made.name(d.function): d.duty for d in duties(made)}
    assert table == {
        "W.reset": "environment",
        "W.step": "environment",
        "collect": "sampler",
        "learn_on": "trainer",
        "drive": "driver",
        "update": "crossing",
    }


def test_topologies() -> None:
    """One loop is synchronous, two processes with a queue are decoupled, a lone side is decoupled."""
    loop = program(a="def main(env, opt, loss):\n    env.step(1)\n    loss.backward()\n    opt.step()\n")
    assert layout(loop).overall.value == "synchronous"
    apart = program(
        a="import threading\ndef s(env, queue):\n    env.step(1)\n    queue.put(1)\ndef t(opt, loss, queue):\n    queue.get()\n    loss.backward()\n    opt.step()\n"
        "def main(e, q, o, l):\n    threading.Thread(target=s, args=(e, q)).start()\n    threading.Thread(target=t, args=(o, l, q)).start()\n"
    )
    assert layout(apart).overall.value == "decoupled"
    assert layout(program(a="def t(opt, loss):\n    loss.backward()\n    opt.step()\n")).overall.value == "decoupled"


def test_guards_nest() -> None:
    """`enable_grad` inside `no_grad` records again; the innermost guard decides."""
    made = program(
        a="import torch\ndef f(m, x):\n    with torch.no_grad():\n        a = m(x)\n        with torch.enable_grad():\n            b = m(x)\n"
    )
    at = number(made, "f")
    blocks = [c.block for c in made.functions[at].fact.calls if c.name == "m"]
    assert [made.unrecorded(at, b) for b in blocks] == [True, False]
