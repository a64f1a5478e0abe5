"""Does a graph live on from one update to the next: a recurrent state never detached, a sum of losses, a graph retained? (GYR215).

Each backward pass frees its graph. What still holds on to it makes the next one run through all earlier updates, or fills memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Atoms, Bind, Call, Function
from gyrecheck.model.finding import Severity
from gyrecheck.program.flow import prefixes, reach
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.forwards import cuts, forward
from gyrecheck.verdict.shapes.steps import BACK
from gyrecheck.verdict.shapes.suspect import Suspect, at_bind, at_call


def kept_graph(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Recurrent states that no update cuts, losses summed with their graph, and graphs retained for nothing."""
    learns = [n for n in program.doing(BACK) if not program.functions[n].fact.name.startswith("test")]
    for number in sorted({*learns, *(e.callee for n in learns for e in program.calls.edges[n])}):
        if "evaluation" not in program.region(number):
            yield from _carried(program, number)
    for number in learns:
        yield from _summed(program, number)
        yield from _retained(program, number)


# ---- a recurrent state


def _carried(program: Program, number: int) -> Iterator[Suspect]:
    """`self.h = cell(x, self.h)` on the way to a loss, in a class that never detaches `self.h`."""
    fn = program.tree.functions[number]
    for bind in fn.fact.binds:
        made = _from_itself(program, number, bind)
        if made is None or program.unrecorded(number, bind.block):
            continue
        place = _updates_beyond(program, number, bind)
        if place is None or _let_go(program, number, bind):
            continue
        where, back = place
        call = program.call(where, back)
        yield at_bind(
            number, bind, "GYR215", f"`{bind.target}` is fed back into `{readable(fn.fact.calls[made])}` and never detached: its graph runs "
                "through every earlier update",
            evidence=(program.place(where, call.line, f"each update goes back through it: {readable(call)}", "because", call.column + 1),),
            hint=f"detach it where an update ends: {bind.target} = {bind.target}.detach()", side="training",
        )  # fmt: skip


def _from_itself(program: Program, number: int, bind: Bind) -> int | None:
    """The network's call whose result is bound to what it was given."""
    fact = program.tree.functions[number].fact
    if bind.form == "+=" or bind.form in {"for", "with", "del", "except"} or "[" in bind.target:
        return None
    for atom in bind.value:
        if not isinstance(atom, int):
            continue
        call = fact.calls[atom]
        given = [a for arg in (*call.args, *(v for _, v in call.keywords)) for a in arg]
        if bind.target in given and forward(program, number, atom, call) is not None:
            return atom
    return None


def _updates_beyond(program: Program, number: int, bind: Bind) -> tuple[int, int] | None:
    """A backward pass that runs again and again while the state lives on: in a caller's loop, or in the loop around."""
    fn = program.tree.functions[number]
    if bind.target.startswith("self."):
        if fn.cls < 0:
            return None
        around = [number, *(e.caller for e in program.callers[number])]
        for owner in around:
            for at, _ in program.own(owner, BACK):
                if program.loop_of(owner, program.call(owner, at).block) >= 0 or owner != number or program.callers[owner]:
                    return owner, at
        return None
    for at, _ in program.own(number, BACK):
        loops = program.loops_of(number, program.call(number, at).block)
        begun = [b for b in fn.fact.binds if b.target == bind.target and b is not bind and b.order < bind.order]
        if (
            loops
            and begun
            and not any(program.within(number, b.block, loops[-1]) for b in begun)
            and program.within(number, bind.block, loops[-1])
        ):
            return number, at
    return None


def _let_go(program: Program, number: int, bind: Bind) -> bool:
    """Somewhere the state is detached, or begun anew outside the constructor without asking."""
    fn = program.tree.functions[number]
    held = fn.cls >= 0 and bind.target.startswith("self.")
    places = list(program.tree.classes[fn.cls].methods.values()) if held else [number]
    if held and _begun_from_outside(program, bind.target.rpartition(".")[2]):
        return True
    retained = any(_retains(c.keywords) for n in places for c in program.tree.functions[n].fact.calls)
    for place in places:
        fact = program.tree.functions[place].fact
        for at in range(len(fact.calls)):
            if program.role(place, at) == "grad.cut" and _touches(fact, bind.target, at):
                return True
        for other in fact.binds:
            anew = other.target == bind.target and other is not bind and _from_itself(program, place, other) is None
            if not anew or fact.name == "__init__" or (other.order < bind.order and place == number and not _inner(program, number, other)):
                continue
            if not retained or not _asked(program, place, other.block):
                return True
    return False


def _begun_from_outside(program: Program, name: str) -> bool:
    """The owner of the network begins the state anew through it: `self.net.state = None`."""
    return any(
        b.target.endswith(f".{name}") and b.target.count(".") > 1 and b.form == "=" and b.value in {("=None",), ()}
        for fn in program.functions
        for b in fn.fact.binds
    )


def _inner(program: Program, number: int, bind: Bind) -> bool:
    return program.loop_of(number, bind.block) >= 0 or bind.target.startswith("self.")


def _asked(program: Program, number: int, block: int) -> bool:
    blocks = program.tree.functions[number].fact.blocks
    return any(blocks[b].kind in {"then", "else", "except", "case"} for b in program.blocks_up(number, block))


def _touches(fact: Function, path: str, at: int) -> bool:
    """The cutting call works on the path, by name or as an element of it."""
    call = fact.calls[at]
    head = call.name.rpartition(".")[0]
    if path in prefixes(head) or path in call.receiver or any(path in arg for arg in call.args):
        return True
    return any(b.target == head and b.form == "for" and path in b.value for b in fact.binds)


# ---- a sum of losses


def _summed(program: Program, number: int) -> Iterator[Suspect]:
    """`total += loss` beside `loss.backward()`: the sum holds the graph of every pass."""
    fact = program.tree.functions[number].fact
    backs = [fact.calls[at] for at, _ in program.own(number, BACK)]
    for back in backs:
        loss = back.name.rpartition(".")[0]
        loop = program.loop_of(number, back.block)
        if not loss or "." in loss or loop < 0:
            continue
        for bind in fact.binds:
            if bind.form != "+=" or loss not in bind.value or not program.within(number, bind.block, loop):
                continue
            begun = [b for b in fact.binds if b.target == bind.target and b.form == "="]
            if any(program.within(number, b.block, loop) for b in begun) or any(_root(b.name, bind.target) for b in backs):
                continue
            flow = reach(fact, binds=[bind], cut=lambda c: cuts(program, number, c))
            if any(at in flow.calls or at in flow.taken for at, _ in program.own(number, BACK)):
                continue
            yield at_bind(
                number, bind, "GYR215", f"`{bind.target}` adds up `{loss}` with its graph: every pass stays in memory",
                evidence=(program.place(number, back.line, f"the loss has been used here: {readable(back)}", "because", back.column + 1),),
                hint=f"add {loss}.item()", side="training",
            )  # fmt: skip


def _root(name: str, target: str) -> bool:
    return name.rpartition(".")[0] == target


# ---- a graph retained


def _retained(program: Program, number: int) -> Iterator[Suspect]:
    """`backward(retain_graph=True)` as the last backward pass of a loop: nothing uses what it keeps, unless a fault needs it."""
    fact = program.tree.functions[number].fact
    backs = [(at, fact.calls[at]) for at, _ in program.own(number, BACK)]
    for at, call in backs:
        if not _retains(call.keywords):
            continue
        later = [c for i, c in backs if i != at and c.order > call.order]
        if later or program.loop_of(number, call.block) < 0 or _made_before(program, number, call):
            continue
        yield at_call(
            program, number, at, "GYR215", f"`{readable(call)}` keeps its graph although no other backward pass follows: something from "
                "before this update is still in it",
            hint="leave retain_graph out, and detach what was made before this update", side="training", at_most=Severity.NOTE,
        )  # fmt: skip


def _made_before(program: Program, number: int, call: Call) -> bool:
    """What is differentiated was made outside the loop: every turn goes back through the same graph."""
    fact = program.tree.functions[number].fact
    loop = program.loop_of(number, call.block)
    paths = {a for a in call.args[0] if isinstance(a, str)} if call.args else {call.name.rpartition(".")[0]}
    return bool(paths) and not any(b.target in paths and program.within(number, b.block, loop) for b in fact.binds)


def _retains(keywords: tuple[tuple[str, Atoms], ...]) -> bool:
    return any(k == "retain_graph" and v == ("=True",) for k, v in keywords)
