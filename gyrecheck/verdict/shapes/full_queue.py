"""Does a full queue swallow a sample, with no count and no second attempt? (GYR313)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Exit, Function
from gyrecheck.program.flow import prefixes
from gyrecheck.program.program import ACTING, Program, readable
from gyrecheck.verdict.shapes.handler_end import counts, under
from gyrecheck.verdict.shapes.suspect import Suspect

_FULL = frozenset({"Full", "QueueFull", "Again", "WouldBlock", "BlockingIOError"})
_QUIET = frozenset({"debug", "info", "print", "log", "len", "str", "repr", "qsize", "format", "time", "monotonic", "sum"})
"""Calls in a handler that neither count, nor raise an alarm, nor try again."""
_OTHER = frozenset({"log", "logs", "stat", "stats", "metric", "metrics", "report", "event", "events", "video", "frame", "frames", "status",
                    "weights", "params", "state_dict", "heartbeat", "progress", "render", "message", "telemetry", "request", "task"})  # fmt: skip
"""Words of what may be let go: it trains nobody, or a newer one replaces it."""


def full_queue(program: Program, number: int) -> Iterator[Suspect]:
    """`except queue.Full:` that goes on, or only mentions it below the level of a warning: the record is gone; `if q.full(): return`, too."""
    fact = program.tree.functions[number].fact
    yield from _not_even_tried(program, number)
    for at, block in enumerate(fact.blocks):
        if block.kind != "except" or not block.detail or not {str(d).rpartition(".")[2] for d in block.detail} <= _FULL:
            continue
        puts = [c for c, _ in program.own(number, "carrier.write") if program.within(number, fact.calls[c].block, block.link)]
        if not puts or not _quiet(program, number, at) or _tried_again(program, number, puts[0]) or not _sample(program, number, puts[0]):
            continue
        put = fact.calls[puts[0]]
        yield Suspect(
            "GYR313", number, block.line, 0, f"a full queue drops the record of `{readable(put)}` without a count",
            evidence=(program.place(number, put.line, "the record is lost when this finds no room", "because", put.column + 1),),
            hint="count the drop with its reason, or wait for room", side="sampling", key=f"full>{put.name}",
        )  # fmt: skip


def _not_even_tried(program: Program, number: int) -> Iterator[Suspect]:
    """A record that exists already is left when `q.full()` says so, or is put only when it does not."""
    fact = program.tree.functions[number].fact
    for at, block in enumerate(fact.blocks):
        asked = (
            [fact.calls[a].name for a in block.detail if isinstance(a, int) and fact.calls[a].name.endswith(".full")]
            if block.kind == "then"
            else []
        )
        if len(asked) != 1 or len(block.detail) != 1:
            continue
        queue = asked[0].rpartition(".")[0]
        puts = [c for c, _ in program.own(number, "carrier.write") if fact.calls[c].name.startswith(f"{queue}.")]
        if block.op == "not":
            lost = [p for p in puts if under(fact, fact.calls[p].block, at)]
            other = next((i for i, b in enumerate(fact.blocks) if b.kind == "else" and b.link == at), -1)
            quiet = other < 0 or _quiet(program, number, other)
            quiet = quiet and not _answered(fact, block.end_order) and not any(under(fact, e.block, at) and _answers(e) for e in fact.exits)
        else:
            leaves = any(e.block == at and e.kind in {"return", "continue"} for e in fact.exits)
            lost = [p for p in puts if fact.calls[p].order > block.end_order] if leaves else []
            quiet = _quiet(program, number, at)
        lost = [p for p in lost if _made_before(program, number, p, block.order)]
        if not lost or not quiet or _tried_again(program, number, lost[0]) or not _sample(program, number, lost[0]):
            continue
        put = fact.calls[lost[0]]
        yield Suspect(
            "GYR313", number, block.line, 0, f"the record of `{readable(put)}` is dropped without a count when the queue is full",
            evidence=(program.place(number, put.line, "it is handed over here otherwise", "because", put.column + 1),),
            hint="count the drop with its reason, or wait for room", side="sampling", key=f"full>{put.name}",
        )  # fmt: skip


def _made_before(program: Program, number: int, put: int, order: int) -> bool:
    """What would be put exists when the queue is asked: asked before anything is sampled, it is a brake."""
    fact = program.tree.functions[number].fact
    roots = {path.partition(".")[0].partition("[")[0] for path in _given(fact, put)}
    loop = program.loop_of(number, fact.calls[put].block)
    made = [b for b in fact.binds if b.target in roots and b.order < order and (loop < 0 or program.within(number, b.block, loop))]
    return bool(made) or bool(roots & {p.name for p in fact.params} - {"self"})


def _answered(fact: Function, order: int) -> list[Exit]:
    return [e for e in fact.exits if e.order > order and _answers(e)]


def _quiet(program: Program, number: int, at: int) -> bool:
    """The handler neither counts, keeps, raises, breaks off, answers nor tries again; a bare return gives no answer."""
    fact = program.tree.functions[number].fact
    if any(under(fact, b.block, at) and b.form != "except" for b in fact.binds) or counts(program, number, at):
        return False
    if any(
        under(fact, c.block, at) and (c.name.rpartition(".")[2] not in _QUIET or _metric(program, number, i))
        for i, c in enumerate(fact.calls)
    ):
        return False
    return not any(under(fact, e.block, at) and _answers(e) for e in fact.exits)


def _metric(program: Program, number: int, at: int) -> bool:
    """A call that logs a named number is a count that somebody may read."""
    call = program.call(number, at)
    fact = program.tree.functions[number].fact
    return program.role(number, at) == "log.metric" and any(
        isinstance(a, int) and fact.calls[a].name == "{}" for arg in call.args for a in arg
    )


def _answers(leave: Exit) -> bool:
    return leave.kind in {"raise", "break", "yield"} or (leave.kind == "return" and leave.items not in {(), (("=None",),)})


def _sample(program: Program, number: int, put: int) -> bool:
    """What is put is made by sampling: here, or by the caller that passes it in."""
    call = program.call(number, put)
    fact = program.tree.functions[number].fact
    spoken = {w for path in (call.name, *_given(fact, put)) for w in path.lower().replace(".", "_").replace("[", "_").split("_")}
    if spoken & _OTHER:
        return False
    if program.has(number, *ACTING, "reward.score", full=True) or any(r.role == "policy.act" for r in program.calls.roles[number]):
        return True
    passed = {p.name for p in fact.params}
    if not any(root in passed for path in _given(fact, put) for root in prefixes(path)):
        return False
    return any(program.has(e.caller, *ACTING, full=True) and e.kind in {"call", "name", "override"} for e in program.callers[number])


def _given(fact: Function, at: int) -> list[str]:
    """The paths among a call's arguments, and in displays and calls there."""
    call = fact.calls[at]
    out: list[str] = []
    for atom in (*(a for arg in call.args for a in arg), *(a for k, v in call.keywords if k not in {"timeout", "block"} for a in v)):
        if isinstance(atom, int):
            out += _given(fact, atom)
        elif not atom.startswith(("=", "<")):
            out.append(atom)
    return out


def _tried_again(program: Program, number: int, put: int) -> bool:
    """The record was made outside the loop around the put: the next pass offers the same one again."""
    fact = program.tree.functions[number].fact
    loop = program.loop_of(number, fact.calls[put].block)
    if loop < 0:
        return False
    given = {path.split(".")[0].split("[")[0] for path in _given(fact, put)}
    return not given & {b.target.split(".")[0].split("[")[0] for b in fact.binds if program.within(number, b.block, loop)}
