"""Do optimizer and schedule live as long as the training does? (GYR212, GYR225).

GYR212: made anew in the very pass that steps them, so that moments and progress are lost. GYR225: a schedule is made, and nothing can
ever advance it.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Bind, Function
from gyrecheck.program.program import LEARNING, Program, readable, roots
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.steps import STEP
from gyrecheck.verdict.shapes.suspect import Suspect, at_call

_MADE = ("optimizer.make", "scheduler.make")
_LOOKS = frozenset({"get_last_lr", "get_lr", "state_dict", "load_state_dict"})


def remade(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Optimizers and schedules made anew on every pass, and schedules that nothing advances."""
    for fn in program.functions:
        if fn.fact.name.startswith("test"):
            continue
        made = program.own(fn.number, *_MADE)
        for at, role in made:
            bind = next((b for b in fn.fact.binds if b.value == (at,) and b.form == "="), None)
            if bind is None:
                continue
            yield from _each_pass(program, fn.number, at, role, bind)
            if role == "scheduler.make":
                yield from _each_call(program, fn.number, at, bind)
            if role == "scheduler.make":
                yield from _idle(program, fn.number, at, bind)


def _each_pass(program: Program, number: int, at: int, role: str, bind: Bind) -> Iterator[Suspect]:
    fact = program.tree.functions[number].fact
    call = fact.calls[at]
    loop = program.loop_of(number, call.block)
    if loop < 0 or call.block != loop:
        return  # behind a test: reset on purpose
    wanted = (STEP, "scaler.step", "update.run") if role == "optimizer.make" else ("scheduler.step",)
    used = [
        c for i, c in enumerate(fact.calls)
        if program.loop_of(number, c.block) == loop and c.order > call.order
        and (program.role(number, i) in wanted and (c.name.rpartition(".")[0] == bind.target or _given(c.args, bind.target)))
    ]  # fmt: skip
    if not used:
        return
    inside = {b.target for b in fact.binds if program.within(number, b.block, loop) and b is not bind}
    fed = set(roots(_all(fact, at)))
    if fed & {t.split(".")[0].split("[")[0] for t in inside}:
        return  # the network is made in the same pass
    what = "the optimizer, its moments and its step count start anew" if role == "optimizer.make" else "the schedule starts anew"
    line = fact.blocks[loop].line
    yield at_call(
        program, number, at, "GYR212", f"`{readable(call)}` is made again on every pass of the loop that steps it: {what}",
        evidence=(program.place(number, line, "in this loop", "because"),
                  program.place(number, used[0].line, f"stepped once: {readable(used[0])}", "because", used[0].column + 1)),
        side="training", hint="make it once before the loop",
    )  # fmt: skip


def _each_call(program: Program, number: int, at: int, bind: Bind) -> Iterator[Suspect]:
    """A schedule over an optimizer that outlives the function, made by a function that a loop calls again and again, and dropped at its end."""
    fact = program.tree.functions[number].fact
    call = fact.calls[at]
    params = {p.name for p in fact.params}
    over = next((a for arg in call.args[:1] for a in arg if isinstance(a, str)), "")
    lives = over.startswith("self.") or over in params
    fresh = any(b.target == over for b in fact.binds)
    if not lives or fresh or "." in bind.target or fact.name == "__init__" or program.loop_of(number, call.block) >= 0:
        return
    used = next((c for c in fact.calls if c.name == f"{bind.target}.step"), None)
    shared = any(bind.target in item for e in fact.exits for item in e.items) or any(bind.target in b.value for b in fact.binds)
    caller = next(
        (e for e in program.callers[number] if e.call >= 0 and program.loop_of(e.caller, program.call(e.caller, e.call).block) >= 0), None
    )
    if used is None or shared or caller is None:
        return
    where = program.call(caller.caller, caller.call)
    yield at_call(
        program, number, at, "GYR212", f"`{readable(call)}` begins the schedule anew with every call of `{program.name(number)}`, over an "
            "optimizer that goes on",
        evidence=(program.place(caller.caller, where.line, f"called again and again: {readable(where)}", "because", where.column + 1),
                  program.place(number, used.line, f"stepped here: {readable(used)}", "because", used.column + 1)),
        side="training", hint="make it once, beside the optimizer",
    )  # fmt: skip


def _given(args: tuple[tuple[str | int, ...], ...], path: str) -> bool:
    return any(path in atoms for atoms in args)


def _all(fact: Function, at: int) -> tuple[str, ...]:
    """The paths that a call is given, through calls among its arguments, with what those are called on."""
    call = fact.calls[at]
    out: list[str] = []
    for atom in (*(a for arg in call.args for a in arg), *(a for _, v in call.keywords for a in v)):
        if isinstance(atom, int):
            inner = fact.calls[atom]
            head = inner.name.rpartition(".")[0]
            out.extend([head] if head else [])
            out.extend(_all(fact, atom))
        else:
            out.append(atom)
    return tuple(out)


# ---- GYR225


def _idle(program: Program, number: int, at: int, bind: Bind) -> Iterator[Suspect]:
    fn = program.tree.functions[number]
    tail = bind.target.rpartition(".")[2]
    held = "." in bind.target
    if "[" in bind.target or (held and not bind.target.startswith("self.")):
        return
    places = program.functions if held else [fn, *(program.functions[c] for c in fn.children)]
    if any(_used(place.fact, bind, tail, held=held) for place in places):
        return
    if not held and (bind.target in fn.fact.globals or fn.fact.name == "<module>"):
        return
    if not any(program.has(other.number, *LEARNING, full=True) for other in program.tree.functions_of(fn.module)):
        return
    call = program.call(number, at)
    yield at_call(
        program, number, at, "GYR225", f"`{bind.target}` is made by `{readable(call)}` and never advanced: the rate stays where it began",
        side="training", hint="step it once for each unit that its length counts", key=bind.target,
    )  # fmt: skip


def _used(fact: Function, made: Bind, tail: str, *, held: bool) -> bool:
    """Stepped, handed on, stored, returned or looked at as a whole: anything that could lead to a step."""
    name = f".{tail}" if held else tail

    def is_it(path: object) -> bool:
        whole = path.partition("[")[0] if isinstance(path, str) else ""
        return whole == tail or (held and whole.endswith(name))

    for call in fact.calls:
        head, _, last = call.name.rpartition(".")
        if is_it(head) and last not in _LOOKS:
            return True
        if any(is_it(a) for atoms in (*call.args, *(v for _, v in call.keywords)) for a in atoms):
            return True
        if call.name in {"getattr", "vars"} and any(a == f"='{tail}'" for atoms in call.args for a in atoms):
            return True
    if any(b is not made and (any(is_it(a) for a in b.value) or (is_it(b.target) and b.form == "=")) for b in fact.binds):
        return True
    return any(is_it(a) for leave in fact.exits for item in leave.items for a in item) or any(
        is_it(a) for block in fact.blocks for a in block.detail
    )
