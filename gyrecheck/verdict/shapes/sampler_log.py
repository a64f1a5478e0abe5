"""Does the sampler log what only a trainer knows (GYR104)? Is a store between the sides without bound (GYR604)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Call
from gyrecheck.program.program import ACTING, LEARNING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, at_call


def sampler_log(program: Program, layout: Layout) -> Iterator[Suspect]:
    """Training figures logged by functions that only sample; queues between the sides that may grow for ever."""
    for duty in layout.duties:
        if duty.duty == "sampler" and program.own(duty.function, *ACTING) and not program.has(duty.function, *LEARNING, full=True):
            yield from _figures(program, duty.function)
    yield from _unbounded(program, layout)


def _figures(program: Program, number: int) -> Iterator[Suspect]:
    fact = program.functions[number].fact
    for at, call in enumerate(fact.calls):
        last = call.name.rpartition(".")[2]
        if program.role(number, at) != "log.metric" and last not in program.words["log_methods"]:
            continue
        figure = _figure(program, number, call)
        if figure:
            yield at_call(
                program, number, at, "GYR104", f"`{readable(call)}` logs `{figure}` in a sampling function",
                hint="log it in the trainer; a sampler that knows a loss or a learning rate is not separate from it",
                side="sampling", key=figure,
            )  # fmt: skip


def _figure(program: Program, number: int, call: Call) -> str:
    words = program.words["training_figures"]
    fact = program.functions[number].fact
    for atom in _atoms(fact.calls, call):
        text = atom[2:-1] if atom.startswith("='") else atom
        if atom.startswith("=") and not atom.startswith("='"):
            continue
        leaf = text.rpartition("/")[2].rpartition(".")[2].lower().strip(" :=%.0123456789f{}")
        if leaf in words:
            return text if len(text) < 40 else leaf
        if atom.startswith("='") and any(w in text.lower().replace("=", " ").replace(":", " ").replace(",", " ").split() for w in words):
            return next(w for w in sorted(words) if w in text.lower())
    return ""


def _atoms(calls: tuple[Call, ...], call: Call) -> Iterator[str]:
    for key, value in call.keywords:
        yield f"='{key}'"
        yield from (a for a in value if isinstance(a, str))
        for a in value:
            if isinstance(a, int) and calls[a].name == "{}":
                yield from _atoms(calls, calls[a])
    for arg in call.args:
        for atom in arg:
            if isinstance(atom, str):
                yield atom
            elif calls[atom].name == "{}":
                yield from _atoms(calls, calls[atom])


def _unbounded(program: Program, layout: Layout) -> Iterator[Suspect]:
    """A queue or deque made without a size, filled by sampling code and emptied by training code."""
    for fn in (program.functions[n] for n in program.doing("carrier.make", "buffer.make")):
        for bind in fn.fact.binds:
            made = next(
                (a for a in bind.value if isinstance(a, int) and program.role(fn.number, a) in {"carrier.make", "buffer.make"}), None
            )
            if made is None or bind.form != "=":
                continue
            call = fn.fact.calls[made]
            if not _boundless(program, call):
                continue
            tail = bind.target.rpartition(".")[2]
            filled = _user(program, layout, fn.module, tail, "stores", ACTING)
            emptied = _user(program, layout, fn.module, tail, "takes", LEARNING)
            if filled is None or emptied is None or filled[0] == emptied[0]:
                continue
            a, b = program.call(*filled), program.call(*emptied)
            yield at_call(
                program, fn.number, made, "GYR604", f"`{bind.target}` has no capacity: nothing "
                    "stops sampling from running ahead of training",
                evidence=(program.place(filled[0], a.line, f"filled by sampling: {readable(a)}", "because", a.column + 1),
                          program.place(emptied[0], b.line, f"emptied by training: {readable(b)}", "because", b.column + 1)),
                hint="give it a maximum size, or drop what is older than an age limit and count it", key=bind.target, side="handoff",
            )  # fmt: skip


def _boundless(program: Program, call: Call) -> bool:
    last = call.name.rpartition(".")[2]
    if last not in program.words["sizeable"]:
        return False
    sizes = [v for k, v in call.keywords if k in {"maxsize", "maxlen", "max_size", "capacity", "size"}]
    if last == "deque":
        return len(call.args) < 2 and not any(v != ("=None",) for v in sizes)
    given = [*call.args, *sizes]
    return all(v in {("=0",), ("=-1",), ("=None",)} for v in given)


def _user(program: Program, layout: Layout, module: int, tail: str, words: str, roles: tuple[str, ...]) -> tuple[int, int] | None:
    group = layout.of_module[module].modules
    for fn in program.functions:
        if fn.module not in group or not program.has(fn.number, *roles):
            continue
        for at, call in enumerate(fn.fact.calls):
            head, _, last = call.name.rpartition(".")
            if head.rpartition(".")[2] == tail and last in program.words[words]:
                return fn.number, at
    return None
