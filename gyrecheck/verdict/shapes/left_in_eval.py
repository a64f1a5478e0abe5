"""Does an evaluation leave the network in evaluation mode for the training that follows? (GYR110)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gyrecheck.model.finding import Confidence
from gyrecheck.program.calls import Edge
from gyrecheck.program.program import ACTING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.steps import BACK
from gyrecheck.verdict.shapes.suspect import Suspect, at_call

_DEEP = 3
_FEW = 3


def left_in_eval(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every `eval()` that a training loop reaches and that nothing in the loop undoes."""
    if not _modal(program):
        return
    for fn in program.functions:
        if fn.fact.name.startswith("test") or "evaluation" in program.region(fn.number):
            continue
        backs = [at for at, _ in program.own(fn.number, BACK)]
        learning = [*backs, *(e.call for e in _sure(program, fn.number) if BACK in program.full.of[e.callee])]
        for loop in {loop for at in learning for loop in program.loops_of(fn.number, program.call(fn.number, at).block)[-1:]}:
            yield from _loop(program, fn.number, loop)


def _modal(program: Program) -> bool:
    """A layer whose behaviour depends on the mode, or a network that was loaded and may have some."""
    layers = program.words["modal_layers"]
    return any(
        c.name.rpartition(".")[2] in layers or c.name.endswith(".from_pretrained") for fn in program.functions for c in fn.fact.calls
    )


def _loop(program: Program, number: int, loop: int) -> Iterator[Suspect]:
    switched = list(_switches(program, number, loop, 0, frozenset({number})))
    if any(mode == "train" for mode, _, _ in switched):
        return
    meant = any(
        c.name.endswith(".train") and _turns_on(c.args) for c in program.tree.functions[number].fact.calls
    )  # training mode was asked for, once
    for mode, where, at in switched:
        del mode
        acts = program.has(where, *ACTING, full=True)
        if where == number and not (meant and acts):
            continue
        if ("evaluation" not in program.region(where) and not meant) or _switched_by_its_class(program, where):
            continue
        call = program.call(where, at)
        head = program.tree.functions[number].fact.blocks[loop]
        yield at_call(
            program, where, at, "GYR110", f"`{readable(call)}` is never undone: what `{program.name(number)}` trains after it runs in "
                "evaluation mode",
            evidence=(program.place(number, head.line, "training goes on in this loop", "because"),),
            hint=f"remember {call.name.rpartition('.')[0]}.training and restore it at the end", side="training",
        )  # fmt: skip


def _switched_by_its_class(program: Program, number: int) -> bool:
    """Another method of the class turns training mode on for a network it holds: its learning pass does so by itself."""
    cls = program.tree.functions[number].cls
    return cls >= 0 and any(
        c.name.startswith("self.") and c.name.endswith(".train") and c.name.count(".") > 1 and _turns_on(c.args)
        for fn in program.functions
        if fn.cls == cls
        for c in fn.fact.calls
    )


def _turns_on(args: tuple[tuple[str | int, ...], ...]) -> bool:
    return not args or args[0] != ("=False",)


def _switches(program: Program, number: int, loop: int, depth: int, seen: frozenset[int]) -> Iterator[tuple[str, int, int]]:
    """The mode calls that a loop, or a whole function (`loop` -1), reaches: (mode, function, call)."""
    fact = program.tree.functions[number].fact
    held = [at for at, c in enumerate(fact.calls) if c.result != -2 and (loop < 0 or program.within(number, c.block, loop))]
    for at in held:
        call = fact.calls[at]
        head, _, last = call.name.rpartition(".")
        if last == "eval" and head and not call.args and "env" not in head and not _frozen(program, number, head):
            yield "eval", number, at
        elif (last == "train" and head and _turns_on(call.args)) or last in {"set_training_mode", "train_mode"}:
            target = program.resolver.callee(number, at)
            if target is None or target.kind != "func":
                yield "train", number, at
    if depth >= _DEEP:
        return
    for edge in _sure(program, number):
        if edge.call in held and edge.confidence is not Confidence.HINT and edge.callee not in seen:
            yield from _switches(program, edge.callee, -1, depth + 1, seen | {edge.callee})
    if any(program.call(number, at).name.endswith((".eval", ".eval_mode")) for at in held) and any(
        "train" in str(a) for b in fact.binds for a in b.value if isinstance(a, str) and a.endswith(".training")
    ):
        yield "train", number, 0  # the mode is remembered, so it is restored some way


def _sure(program: Program, number: int) -> list[Edge]:
    """The calls whose callee is known, or one of few: of a method that many classes have, this program may run any one."""
    edges = [e for e in program.calls.edges[number] if e.call >= 0]
    many = Counter(e.call for e in edges)
    return [e for e in edges if many[e.call] <= _FEW]


def _frozen(program: Program, number: int, head: str) -> bool:
    """A target, a reference or a reward network: nothing trains it."""
    leaf = head.rpartition(".")[2].lower()
    named = program.lexicon.named(leaf)
    words = {*leaf.split("_")}
    if program.words["copies_of_policy"] & words or words & {"ref", "reference", "frozen", "teacher", "expert", "opponent", "reward", "rm"}:
        return True
    born = [b for b in program.tree.functions[number].fact.binds if b.target == head and b.form == "="]
    return (named is not None and named.kind in {"target", "reward"}) or bool(born)
