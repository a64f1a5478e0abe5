"""The gradient events of a function in order, helpers opened in place, each with its loops and branches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gyrecheck.model.facts import Block, Call
from gyrecheck.model.finding import Confidence, Evidence
from gyrecheck.program.flow import prefixes
from gyrecheck.program.program import Program, readable

CLEAR, BACK, STEP, SCHEDULE = "optimizer.zero_grad", "loss.backward", "optimizer.step", "scheduler.step"
CLIP = "grad.clip"
_WRAPPED = re.compile(r"(optim\w*)\._?optim\w*$")
"""The optimizer that another one wraps."""
_CLEARS = re.compile(r"^_?(?!zero_grad$)((zero|clear|reset)_(\w+_)?grad(s|ients)?(_\w+)?|set_grads?_(to_)?none)$")
_ROLES = (CLEAR, BACK, STEP, "scaler.step", SCHEDULE, CLIP)
_DEEP = 4


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `way`: (function, call) from the root down to the event's own call; `who`: its object, named in the root's terms."""

    role: str
    who: str
    way: tuple[tuple[int, int], ...]
    optimizer: bool
    """The object is an optimizer (not a module, an engine or something unknown)."""
    names: tuple[dict[str, str], ...] = ()
    """For each function on the way: what its parameters are called in the root."""

    @property
    def place(self) -> tuple[int, int]:
        """The function and call where it happens."""
        return self.way[-1]


def events(program: Program, root: int) -> list[Event]:
    """The events of `root` in evaluation order, those of its helpers at their call sites."""
    out: list[Event] = []
    _open(program, root, (), ({},), out, {root})
    return out


def _open(
    program: Program, number: int, way: tuple[tuple[int, int], ...], frames: tuple[dict[str, str], ...], out: list[Event], open_: set[int]
) -> None:
    names = frames[-1]
    fact = program.tree.functions[number].fact
    roles = {r.call: r.role for r in program.calls.roles[number] if r.role in _ROLES and r.confidence is not Confidence.HINT}
    below: dict[int, list[int]] = {}
    if len(way) < _DEEP:
        for edge in program.calls.edges[number]:
            if edge.kind in {"call", "override"} and edge.confidence is not Confidence.HINT and edge.callee not in open_:
                table = program.full.of[edge.callee]
                if any(r in table for r in _ROLES):
                    below.setdefault(edge.call, []).append(edge.callee)
    for bind in fact.binds:  # `p.grad = None` clears as well
        if bind.target.endswith(".grad") and bind.value == ("=None",):
            near = max((i for i, c in enumerate(fact.calls) if c.order <= bind.order), default=-1)
            if near >= 0:
                out.append(Event(CLEAR, "*", (*way, (number, near)), optimizer=False, names=frames))
    for at, call in enumerate(fact.calls):
        if at not in roles and _CLEARS.search(call.name.rpartition(".")[2]):  # `zero_optim_grads(self.optimizer)`
            given = _WRAPPED.sub(
                r"\1", next((a for arg in call.args[:1] for a in arg if isinstance(a, str) and not a.startswith("=")), "*")
            )
            out.append(Event(CLEAR, _renamed(given, names), (*way, (number, at)), optimizer=given != "*", names=frames))
            below.pop(at, None)
    for at in sorted({*roles, *below}, key=lambda i: fact.calls[i].order):
        call = fact.calls[at]
        if at in roles:
            role = roles[at]
            who, kind = _object(program, number, call, role)
            out.append(
                Event(STEP if role == "scaler.step" else role, _renamed(who, names), (*way, (number, at)), kind == "optimizer", frames)
            )
        for callee in below.get(at, ()):
            if at in roles and roles[at] in {STEP, CLEAR, SCHEDULE}:
                continue
            _open(program, callee, (*way, (number, at)), (*frames, arguments(program, call, callee, names)), out, open_ | {callee})


def _object(program: Program, number: int, call: Call, role: str) -> tuple[str, str]:
    """The object of an event and its kind: `self.opt.step()` -> (`self.opt`, optimizer); `scaler.step(opt)` -> (`opt`, optimizer)."""
    if role == "scaler.step":
        first = next((a for arg in call.args for a in arg if isinstance(a, str)), "")
        return first, "optimizer"
    who = call.name.rpartition(".")[0]
    if not who:
        return "", ""
    if role == STEP and call.name.rpartition(".")[2] != "step":
        return who, ""
    kind = program.calls.kind_of(program.resolver.path(number, who))
    if not kind:
        named = program.lexicon.named(_bare(who))
        kind = named.kind if named is not None else ""
    return who, kind


def _bare(path: str) -> str:
    while path.endswith("]"):
        path = path[: path.rfind("[")]
    return path.rpartition(".")[2]


def _renamed(who: str, names: dict[str, str]) -> str:
    for known in sorted(prefixes(who), key=len, reverse=True):
        if known in names:
            return names[known] + who[len(known) :]
    return who


def arguments(program: Program, call: Call, callee: int, names: dict[str, str]) -> dict[str, str]:
    """What the callee's parameters are called in the root."""
    fn = program.tree.functions[callee]
    plain = [p.name for p in fn.fact.params if not p.kind.startswith("*")]
    out: dict[str, str] = {}
    method = fn.cls >= 0 and fn.fact.params and not any(d.name.endswith("staticmethod") for d in fn.fact.decorators)
    if method:
        head, _, last = call.name.rpartition(".")
        if program.lexicon.names.get(last) == "wrap.self":  # `worker.update.remote(...)`
            head = head.rpartition(".")[0]
        out[plain[0]] = _renamed(head or "self", names)
        plain = plain[1:]
    for name, atoms in (*zip(plain, call.args, strict=False), *call.keywords):
        path = next((a for a in atoms if isinstance(a, str) and not a.startswith(("=", "<"))), None)
        if path is not None:
            out[name] = _renamed(path, names)
    return out


# ---- where events stand to each other


def fork(first: Event, second: Event) -> int:
    """The depth at which the ways of two events part; both have a call of the same function there."""
    at = 0
    while at < len(first.way) - 1 and at < len(second.way) - 1 and first.way[at] == second.way[at]:
        at += 1
    return at if first.way[at][0] == second.way[at][0] else at - 1  # two callees of one call are alternatives, not a sequence


def block_at(program: Program, event: Event, depth: int) -> int:
    """The block, in the function at `depth`, of the call that leads to the event."""
    number, call = event.way[depth]
    return program.call(number, call).block


def loops(program: Program, event: Event) -> list[tuple[int, int]]:
    """The loops around an event, innermost first, as (depth, block)."""
    out: list[tuple[int, int]] = []
    for depth in range(len(event.way) - 1, -1, -1):
        number, _ = event.way[depth]
        out.extend((depth, block) for block in program.loops_of(number, block_at(program, event, depth)))
    return out


def turns(program: Program, event: Event) -> list[tuple[int, int]]:
    """The loops and comprehensions around an event, innermost first, as (depth, block)."""
    out: list[tuple[int, int]] = []
    for depth in range(len(event.way) - 1, -1, -1):
        number, _ = event.way[depth]
        blocks = program.tree.functions[number].fact.blocks
        out.extend(
            (depth, b) for b in program.blocks_up(number, block_at(program, event, depth)) if blocks[b].kind in {"for", "while", "comp"}
        )
    return out


def inside(program: Program, event: Event, like: Event, loop: tuple[int, int]) -> bool:
    """Whether `event` happens in the loop (of `like`'s way)."""
    depth, block = loop
    if len(event.way) <= depth or event.way[:depth] != like.way[:depth]:
        return False
    return event.way[depth][0] == like.way[depth][0] and program.within(event.way[depth][0], block_at(program, event, depth), block)


def before(program: Program, first: Event, second: Event) -> bool:
    """Evaluation order where their ways part."""
    depth = fork(first, second)
    a, b = program.call(*first.way[depth]), program.call(*second.way[depth])
    return a.order < b.order


def branches(program: Program, event: Event, down_to: tuple[int, int] | None = None) -> Iterator[tuple[int, int, Block]]:
    """The conditional blocks around an event, innermost first, up to a loop: (function, block number, block)."""
    for depth in range(len(event.way) - 1, -1, -1):
        number, _ = event.way[depth]
        blocks = program.tree.functions[number].fact.blocks
        for at in program.blocks_up(number, block_at(program, event, depth)):
            if down_to is not None and (depth, at) == down_to:
                return
            if blocks[at].kind in {"then", "else", "except", "case", "tryelse"}:
                yield number, at, blocks[at]
        if down_to is not None and depth == down_to[0]:
            return


def always_after(program: Program, first: Event, second: Event) -> bool:
    """Once `first` has happened in a pass, `second` follows in it: second's branches are all first's too, and it comes later."""
    if not before(program, first, second):
        return False
    depth = fork(first, second)
    number = first.way[depth][0]
    blocks = program.tree.functions[number].fact.blocks
    own = set(program.blocks_up(number, block_at(program, first, depth)))
    for at in program.blocks_up(number, block_at(program, second, depth)):
        if at in own:
            break
        if blocks[at].kind in {"then", "else", "except", "case", "for", "while"}:
            return False
    return not any(True for _ in _own_branches(program, second, depth))


def _own_branches(program: Program, event: Event, depth: int) -> Iterator[int]:
    for deeper in range(depth + 1, len(event.way)):
        number, _ = event.way[deeper]
        blocks = program.tree.functions[number].fact.blocks
        for at in program.blocks_up(number, block_at(program, event, deeper)):
            if blocks[at].kind in {"then", "else", "except", "case"}:
                yield at


def evidence(program: Program, event: Event, words: str) -> Evidence:
    """An event as a secondary place."""
    call = program.call(*event.place)
    return program.place(event.place[0], call.line, f"{words}: {readable(call)}", "because", call.column + 1)
