"""Is a part of the update behind a gate whose counter makes strides that do not fit it? (GYR226).

`steps % every == 0` with `steps += copies`: where the stride is a multiple of the gate's number, the gate is always open and the delay of
the second optimizer is none; where the number is no multiple of the stride, the gate is met more rarely than it says, or never. Asked only
where the code tells both numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from gyrecheck.model.facts import Bind, Block
from gyrecheck.program.program import LEARNING, Program
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, in_tests
from gyrecheck.verdict.shapes.told_number import told_number, told_once

_BRANCHES = frozenset({"then", "else", "except", "case", "tryelse", "finally"})
_MOVES = frozenset({"load_state_dict", "lerp_", "soft_update", "polyak_update", "update_target", "hard_update", "sync_target"})
_STEPS = ("optimizer.step", "scaler.step", "update.run")


def off_beat(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every gate on learning, or on moving a target, that its counter meets always, never or too rarely."""
    for fn in program.functions:
        if in_tests(program, fn.number):
            continue
        for at, block in enumerate(fn.fact.blocks):
            if block.kind == "then" and block.op in {"%==", "not %"} and _trains(program, fn.number, at):
                found = _judged(program, fn.number, at, block)
                if found is not None:
                    yield found


def _judged(program: Program, number: int, at: int, block: Block) -> Suspect | None:
    for name in (a for a in block.detail if isinstance(a, str) and not a.startswith(("=", "<"))):
        counted = _counter(program, number, at, name)
        rest = [a for a in block.detail if a != name]
        if counted is None or not rest or len(rest) > 2:
            continue
        where, bind = counted
        stride = _told(program, where, bind.value[0]) if len(bind.value) == 1 else None
        every = _told(program, number, rest[0])
        left = _told(program, number, rest[1]) if len(rest) > 1 else 0
        if stride is None or every is None or left is None or stride < 2 or every < 2:
            continue
        text = _text(program, number, at, stride, every, left, _start(program, where, name))
        if text:
            moved = program.place(where, bind.line, f"{name} moves by {stride}", "because", bind.column + 1)
            return Suspect(
                "GYR226", number, block.line, _column(program, number, at), f"`{name} % {rest[0]}`: `{name}` moves by {stride}, so {text}",
                evidence=(moved,), side="training", hint="count what the gate is about: updates for a delay, or compare quotients before and after",
                key=name,
            )  # fmt: skip
    return None


def _column(program: Program, number: int, at: int) -> int:
    inner = [c.column for c in program.tree.functions[number].fact.calls if c.block == at]
    return max(min(inner, default=4) - 4, 0)


def _text(program: Program, number: int, at: int, stride: int, every: int, left: int, start: int | None) -> str:
    common = gcd(stride, every)
    if start is not None and (left - start) % common:
        return f"{every} never fits and this part is never reached"
    if stride % every == 0 and stride > every and _steps_beside(program, number, at):
        return "the gate is open on every pass: the delay has no effect"
    if every > stride and every % stride:
        return f"the gate is met once in {every * stride // common}, not once in {every}"
    return ""


def _counter(program: Program, number: int, at: int, name: str) -> tuple[int, Bind] | None:
    """The one place where a counter moves on, once on every pass of the loop around the gate, or of a method of the same object."""
    fn = program.tree.functions[number]
    if "." not in name:
        loop = program.loop_of(number, at)
        binds = [b for b in fn.fact.binds if b.target == name]
        moves = [b for b in binds if b.form == "+=" and b.op == "+"]
        plain = [b for b in binds if b.form == "=" and (loop < 0 or not program.within(number, b.block, loop))]
        if loop < 0 or len(moves) != 1 or len(moves) + len(plain) != len(binds):
            return None
        return (number, moves[0]) if _each_pass(program, number, moves[0].block, loop) else None
    if not name.startswith("self.") or fn.cls < 0:
        return None
    found = [
        (m, b) for m in program.tree.classes[fn.cls].methods.values() for b in program.tree.functions[m].fact.binds if b.target == name
    ]
    moves_ = [(m, b) for m, b in found if b.form == "+=" and b.op == "+"]
    others = [m for m, b in found if b.form != "+=" and program.tree.functions[m].fact.name != "__init__"]
    if len(moves_) != 1 or others:
        return None
    where, bind = moves_[0]
    return (where, bind) if _each_pass(program, where, bind.block, program.loop_of(where, bind.block)) else None


def _each_pass(program: Program, number: int, block: int, loop: int) -> bool:
    blocks = program.tree.functions[number].fact.blocks
    for at in program.blocks_up(number, block):
        if at == loop:
            return True
        if blocks[at].kind in _BRANCHES or blocks[at].kind in {"for", "while", "comp"}:
            return False
    return loop < 0


def _start(program: Program, number: int, name: str) -> int | None:
    """What a counter begins with, where one constant says it."""
    fn = program.tree.functions[number]
    begun = [(number, b) for b in fn.fact.binds if b.target == name and b.form == "="]
    if name.startswith("self.") and fn.cls >= 0:
        init = program.tree.classes[fn.cls].methods.get("__init__", -1)
        begun = [(init, b) for b in program.tree.functions[init].fact.binds if b.target == name] if init >= 0 else []
    return told_number(program, begun[0][0], begun[0][1].value[0]) if len(begun) == 1 and len(begun[0][1].value) == 1 else None


def _told(program: Program, number: int, atom: str | int) -> int | None:
    found = told_number(program, number, atom)
    return found if found is not None else told_once(program, number, atom)


def _trains(program: Program, number: int, at: int) -> bool:
    """The gate holds a learning step, or moves a target."""
    return _within(program, number, at, inside=True, moves=True)


def _steps_beside(program: Program, number: int, at: int) -> bool:
    """The gate holds an optimizer step, and another one is taken in the same loop or function outside of it."""
    return _within(program, number, at, inside=True, moves=False) and _within(program, number, at, inside=False, moves=False)


def _within(program: Program, number: int, at: int, *, inside: bool, moves: bool) -> bool:
    fact = program.tree.functions[number].fact
    loop = program.loop_of(number, at)
    roles = {r.call for r in program.calls.roles[number] if r.role in (LEARNING if moves else _STEPS)}
    below = {
        e.call for e in program.calls.edges[number]
        if e.kind in {"call", "override"} and e.call >= 0 and (program.has(e.callee, *(LEARNING if moves else _STEPS)) or (moves and _moves(program, e.callee)))
    }  # fmt: skip
    for index, call in enumerate(fact.calls):
        held = program.within(number, call.block, at)
        if not inside and _waits(program, number, call.block, at):
            continue  # it waits for an interval, too
        if held is not inside or (loop >= 0 and not program.within(number, call.block, loop)):
            continue
        if index in roles or index in below or (moves and call.name.rpartition(".")[2] in _MOVES):
            return True
    return False


def _waits(program: Program, number: int, block: int, gate: int) -> bool:
    """A block stands behind a gate of its own: a rest, a rest that has a name, or how far the same counter has moved since."""
    fact = program.tree.functions[number].fact
    around = set(program.blocks_up(number, gate))
    rests = {b.target for b in fact.binds if "%" in b.op}
    counted = {a for a in fact.blocks[gate].detail if isinstance(a, str) and not a.startswith("=")}
    for up in program.blocks_up(number, block):
        asked = {a for a in fact.blocks[up].detail if isinstance(a, str)}
        if "%" in fact.blocks[up].op:
            return True
        if up not in around and fact.blocks[up].kind == "then" and (asked & rests or ("-" in fact.blocks[up].op and asked & counted)):
            return True
    return False


def _moves(program: Program, number: int) -> bool:
    return any(c.name.rpartition(".")[2] in _MOVES for c in program.tree.functions[number].fact.calls)
