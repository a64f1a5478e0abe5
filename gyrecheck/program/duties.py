"""The duty of every function with an effect, and why: which side it is on, or that it stands between them on purpose or by mistake."""

from __future__ import annotations

from typing import NamedTuple

from gyrecheck.model.finding import Confidence
from gyrecheck.program.program import ACTING, LEARNING, SAMPLING, TRAINING, Program
from gyrecheck.program.tree import Fn

_HANDOFF = ("buffer.put", "buffer.take", "carrier.write", "carrier.read")
_SYNC = ("weights.publish", "weights.load")


class Duty(NamedTuple):
    """`duty`: sampler trainer driver fused crossing evaluation environment reward handoff sync target model simulation, or unsure."""

    function: int
    duty: str
    why: str


def duties(program: Program) -> list[Duty]:
    """One entry for each function that has an effect; what fits nowhere is `unsure`, for a person to judge."""
    return [found for fn in program.functions if not _is_idle(program, fn) and (found := duty_of(program, fn.number)) is not None]


def _is_idle(program: Program, fn: Fn) -> bool:
    """No role, no effect, and no name that is a duty by itself: nine functions of ten."""
    number = fn.number
    if program.calls.roles[number] or program.full.of[number] or fn.fact.name in {"step", "reset"}:
        return False
    return not program.is_listed(number) and "target" not in program.region(number)


def duty_of(program: Program, number: int) -> Duty | None:
    """The duty of one function, or None when it touches neither side."""
    fn = program.tree.functions[number]
    region = program.region(number)
    own_s, own_t = program.own(number, *SAMPLING), program.own(number, *TRAINING)
    sampling, learning = program.has(number, *ACTING), program.has(number, *LEARNING)
    if fn.cls >= 0 and program.calls.class_kind(fn.cls) == "env" and not own_t:
        return Duty(number, "environment", "a method of an environment") if own_s or fn.fact.name in {"step", "reset"} else None
    for name in ("evaluation", "simulation", "target"):
        if name in region and (own_s or own_t or sampling or learning or name == "target"):
            return Duty(number, name, "by its name")
    acts, learns = program.own(number, *ACTING), program.own(number, *LEARNING)
    if acts and learns:
        return Duty(number, "fused", f"{_said(program, number, acts[0])} and {_said(program, number, learns[0])} in one function")
    if program.is_driver(number):
        return Duty(number, "driver", "reaches both sides and does neither by itself")
    if acts and learning:
        return Duty(number, "crossing", f"{_said(program, number, acts[0])}, and reaches {learning} through a call")
    if learns and sampling:
        return Duty(number, "crossing", f"{_said(program, number, learns[0])}, and reaches {sampling} through a call")
    for pair, name in ((own_s, "sampler"), (own_t, "trainer")):
        if pair and name == "sampler" and all(role == "reward.score" for _, role in pair):
            return Duty(number, "reward", _said(program, number, pair[0]))
        if pair:
            return Duty(number, name, _said(program, number, pair[0]))
    if sampling:
        return Duty(number, "sampler", f"reaches {sampling}")
    if learning:
        return Duty(number, "trainer", f"reaches {learning}")
    for roles, name in ((_SYNC, "sync"), (_HANDOFF, "handoff")):
        found = program.own(number, *roles)
        if found:
            return Duty(number, name, _said(program, number, found[0]))
    return _by_hint(program, number)


def _by_hint(program: Program, number: int) -> Duty | None:
    sides = program.lexicon.roles
    hinted = [
        r for r in program.calls.roles[number] if r.confidence is Confidence.HINT and sides[r.role].side.value in {"sampling", "training"}
    ]
    if not hinted:
        return None
    call = program.call(number, hinted[0].call)
    return Duty(number, "unsure", f"{hinted[0].role} at line {call.line}, by name only ({call.name})")


def _said(program: Program, number: int, found: tuple[int, str]) -> str:
    return f"{found[1]} at line {program.call(number, found[0]).line}"
