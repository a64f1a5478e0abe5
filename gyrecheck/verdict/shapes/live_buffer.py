"""Is an observation stored that its environment writes over at the next step? (GYR413)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.program.flow import reach
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, at_call


def live_buffer(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Stores of an observation of a first-party environment that hands out its own array, without a copy before the next step."""
    live = {
        cls.number: found
        for cls in program.tree.classes
        if program.calls.class_kind(cls.number) == "env" and (found := _own_array(program, cls.number))
    }
    if not live:
        return
    for fn in program.functions:
        for at, _ in program.own(fn.number, "env.step"):
            base = program.resolver.receiver(fn.number, program.call(fn.number, at))
            if base is not None and base.kind == "inst" and int(base.ref) in live:
                yield from _stored(program, fn.number, at, live[int(base.ref)])
                break


def _own_array(program: Program, cls: int) -> tuple[str, int, int] | None:
    """The attribute that `step` both writes in place and returns as the observation, with where it writes it."""
    at = program.resolver.method(cls, "step")
    fact = program.functions[at].fact
    me = fact.params[0].name if fact.params else "self"
    for leave in fact.exits:
        if leave.kind != "return" or not leave.items or len(leave.items[0]) != 1 or not isinstance(leave.items[0][0], str):
            continue
        path = leave.items[0][0]
        if not path.startswith(f"{me}."):
            continue
        for call in fact.calls:
            head, _, last = call.name.rpartition(".")
            if head == path and (last.endswith("_") or last in {"fill", "put", "sort"}):
                return path, at, call.line
            if any(k == "out" and path in v for k, v in call.keywords):
                return path, at, call.line
            if call.name.startswith(".") and last.endswith("_") and reach(fact, paths=(path,)).any(call.receiver):
                return path, at, call.line
        for bind in fact.binds:
            if bind.target.startswith(f"{path}[") or (bind.target == path and bind.form == "+="):
                return path, at, bind.line
    return None


def _stored(program: Program, number: int, step: int, own: tuple[str, int, int]) -> Iterator[Suspect]:
    fact = program.functions[number].fact
    observed = {b.target for b in fact.binds if (b.form.startswith("0/") or b.form == "=") and any(
        isinstance(a, int) and program.role(number, a) in {"env.step", "env.reset"} for a in b.value)}  # fmt: skip
    observed = {p for p in observed if "[" not in p}
    for bind in fact.binds:  # `held = obs` is no copy
        if len(bind.value) == 1 and bind.value[0] in observed and bind.form == "=" and not bind.op and "[" not in bind.target:
            observed = observed | {bind.target}
    path, where, line = own
    for at, call in enumerate(fact.calls):
        if call.name.rpartition(".")[2] not in program.words["stores"] and program.role(number, at) not in {"buffer.put", "carrier.write"}:
            continue
        if program.loop_of(number, call.block) < 0:
            continue
        raw = _raw(program, number, at, observed)
        late = _late(program, number, at, observed, fact.calls[step].order, call.order)
        if raw is None and late is None:
            continue
        what = raw or late or ""
        how = "is stored as it is" if raw is not None else "is copied only after the next step"
        yield at_call(
            program, number, at, "GYR413", f"`{what}` {how}: the environment writes over it at every step",
            evidence=(program.place(where, line, f"{program.name(where)} writes {path} in place and hands it out", "because"),),
            hint=f"store {what}.clone() (or .copy()) before the next step", key=f"{readable(call)}>{what}", side="sampling",
        )  # fmt: skip


def _raw(program: Program, number: int, at: int, observed: set[str]) -> str | None:
    """An observed path among a call's arguments, not through a call that copies."""
    fact = program.functions[number].fact
    call = fact.calls[at]
    for atom in (*(a for arg in call.args for a in arg), *(a for _, v in call.keywords for a in v)):
        if isinstance(atom, int):
            if fact.calls[atom].name in {"{}", "dict", "tuple", "list"}:
                inner = _raw(program, number, atom, observed)
                if inner is not None:
                    return inner
        elif atom in observed:
            return atom
    return None


def _late(program: Program, number: int, at: int, observed: set[str], step: int, store: int) -> str | None:
    """A path that held the observation before the step and is copied in the store after it."""
    fact = program.functions[number].fact
    if store < step:
        return None
    call = fact.calls[at]
    held = {
        b.target for b in fact.binds if b.value and b.value[0] in observed and b.form == "=" and b.order < step and b.target in observed
    }
    for atom in (*(a for arg in call.args for a in arg), *(a for _, v in call.keywords for a in v)):
        if isinstance(atom, int) and fact.calls[atom].order > step:
            head = fact.calls[atom].name.rpartition(".")[0]
            if head in held:
                return head
    return None
