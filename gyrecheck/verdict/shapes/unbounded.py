"""Is a store between the sides without bound: no size, no age limit, and nothing by which the reader holds the writer back? (GYR604)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Call, Function
from gyrecheck.program.program import ACTING, LEARNING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.apart import running_apart
from gyrecheck.verdict.shapes.suspect import Suspect, at_call, in_tests

_WAITS = frozenset({"acquire", "wait", "wait_for", "get", "take", "recv", "join"})
_FREES = frozenset({"release", "set", "notify", "notify_all", "put", "put_nowait", "task_done", "send", "clear"})
_LOOKS = frozenset({"qsize", "full", "empty", "len"})
_AGES = ("stale", "max_lag", "max_age", "age_limit", "too_old", "max_off", "freshness", "max_version_gap", "lag_limit")


def unbounded(program: Program, layout: Layout) -> Iterator[Suspect]:
    """A queue or deque made without a size, filled by sampling code and emptied by training code, or by what training code calls."""
    apart: set[int] | None = None
    for fn in (program.functions[n] for n in program.calling(program.words["sizeable"])):
        for bind in fn.fact.binds:
            made = next((a for a in bind.value if isinstance(a, int) and _boundless(program, fn.fact.calls[a])), None)
            if made is None or bind.form != "=" or in_tests(program, fn.number):
                continue
            if "." not in bind.target and fn.fact.name != "<module>" and not program.role(fn.number, made):
                continue  # a local name says little about a queue of the same name elsewhere
            tail = bind.target.rpartition(".")[2]
            filled = _user(program, layout, fn.module, tail, "stores", ACTING)
            emptied = _user(program, layout, fn.module, tail, "takes", LEARNING)
            if filled is None or emptied is None or filled[0] == emptied[0]:
                continue
            if not program.has(emptied[0], *LEARNING) or not program.has(filled[0], *ACTING):
                apart = running_apart(program) if apart is None else apart
                if filled[0] not in apart:
                    continue  # a driver may call both in turn
            writers, readers = _with_callers(program, filled[0]), _with_callers(program, emptied[0])
            if _held_back(writers, readers, tail):
                continue
            a, b = program.call(*filled), program.call(*emptied)
            yield at_call(
                program, fn.number, made, "GYR604", f"`{bind.target}` has no capacity: nothing stops sampling from running ahead of training",
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
    """The call that fills or empties the store, in a function of the side, or else in one that a function of the side calls."""
    group = layout.of_module[module].modules
    second: tuple[int, int] | None = None
    for fn in program.functions:
        if fn.module not in group:
            continue
        for at, call in enumerate(fn.fact.calls):
            head, _, last = call.name.rpartition(".")
            if head.rpartition(".")[2] != tail or last not in program.words[words]:
                continue
            if program.has(fn.number, *roles):
                return fn.number, at
            if second is None and any(program.has(e.caller, *roles) for e in program.callers[fn.number]):
                second = fn.number, at
    return second


def _with_callers(program: Program, number: int) -> tuple[Function, ...]:
    numbers = {number, *(e.caller for e in program.callers[number] if e.kind in {"call", "name", "override"})}
    return tuple(program.functions[n].fact for n in sorted(numbers))


def _held_back(writers: tuple[Function, ...], readers: tuple[Function, ...], tail: str) -> bool:
    """The writer waits for something that the reader frees, looks at how full the store is, or the reader has an age limit."""
    waited = {_object(c) for f in writers for c in f.calls if c.name.rpartition(".")[2] in _WAITS} - {tail, ""}
    freed = {_object(c) for f in readers for c in f.calls if c.name.rpartition(".")[2] in _FREES} - {""}
    if waited & freed or any(c.name.endswith(f"{tail}.join") for f in writers for c in f.calls):
        return True
    for call in (c for f in writers for c in f.calls if c.name.rpartition(".")[2] in _LOOKS):
        if _object(call) == tail or any(isinstance(a, str) and a.rpartition(".")[2] == tail for arg in call.args for a in arg):
            return True
    return any(word in name.lower() for f in readers for name in _names(f) for word in _AGES)


def _object(call: Call) -> str:
    return call.name.rpartition(".")[0].rpartition(".")[2]


def _names(fact: Function) -> Iterator[str]:
    for block in fact.blocks:
        yield from (a for a in block.detail if isinstance(a, str) and not a.startswith("="))
    for bind in fact.binds:
        yield bind.target
