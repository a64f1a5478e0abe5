"""Do all gradient steps on a replay memory get the rows of one draw? (GYR219).

The draw stands outside a loop that counts gradient steps, here or in a function that is handed the rows, and each turn steps an optimizer
on them whole. Passes over a rollout are epochs and no matter; a big draw cut into one part a step is none either.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Atom, Call
from gyrecheck.model.finding import Confidence, Severity
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.steps import BACK, STEP
from gyrecheck.verdict.shapes.suspect import Suspect, at_call, in_tests

_DRAWS = frozenset({"sample", "sample_batch", "draw", "sample_minibatch", "sample_transitions", "sample_many", "get_batch"})
_ON_POLICY = ("rollout", "expert", "demo", "dataset", "prefer", "trajector", "prior", "dist", "space", "env")
_COUNTS = ("grad", "update", "utd", "replay_ratio", "train_step", "train_iter", "learn_step", "optim", "train_freq", "updates_per", "fits")
_OTHER = ("critic", "ensemble", "agent", "head", "member", "task", "player", "particle", "dual", "inner", "eval", "target")


def drawn_once(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Draws whose rows every turn of a loop over gradient steps gets again."""
    for number in program.calling(_DRAWS):
        fact = program.functions[number].fact
        if "evaluation" in program.region(number) or in_tests(program, number):
            continue
        for at, call in enumerate(fact.calls):
            if call.name.rpartition(".")[2] not in _DRAWS or not _replay(program, number, at):
                continue
            names = {b.target for b in fact.binds if at in b.value and b.form != "+="}
            place = _turns(program, number, names, call) if names else None
            place = place or _handed(program, number, at, names)
            if place is None:
                continue
            where, loop, step = place
            line = program.functions[where].fact.blocks[loop].line
            stepping = program.call(where, step)
            yield at_call(
                program, number, at, "GYR219", f"`{readable(call)}` is drawn once, and every gradient step of the loop gets the same rows",
                evidence=(program.place(where, line, "the loop over gradient steps", "because"),
                          program.place(where, stepping.line, f"each turn steps on them: {readable(stepping)}", "because", stepping.column + 1)),
                hint="draw inside the loop, or draw one part for each step", side="training", at_most=Severity.WARNING,
            )  # fmt: skip


def _replay(program: Program, number: int, at: int) -> bool:
    name = program.call(number, at).name.lower()
    head = name.rpartition(".")[0]
    return bool(head) and program.role(number, at) == "buffer.take" and not any(word in head for word in _ON_POLICY)


def _handed(program: Program, number: int, at: int, names: set[str]) -> tuple[int, int, int] | None:
    """The rows go whole to a function that loops over them."""
    fact = program.functions[number].fact
    for edge in program.calls.edges[number]:
        if edge.call < 0 or edge.kind not in {"call", "override"} or edge.confidence is Confidence.HINT:
            continue
        fn = program.functions[edge.callee]
        plain = [p.name for p in fn.fact.params if not p.kind]
        if fn.cls >= 0 and not any(d.name.endswith("staticmethod") for d in fn.fact.decorators):
            plain = plain[1:]
        call = fact.calls[edge.call]
        given = {p for p, atoms in (*zip(plain, call.args, strict=False), *call.keywords) if at in atoms or set(atoms) & names}
        found = _turns(program, edge.callee, given, None) if given else None
        if found is not None:
            return found
    return None


def _turns(program: Program, number: int, names: set[str], draw: Call | None) -> tuple[int, int, int] | None:
    """A loop over gradient steps, outside the draw, each turn of which steps on the whole rows: (function, loop, stepping call)."""
    fact = program.functions[number].fact
    around = set(program.loops_of(number, draw.block)) if draw is not None else set()
    for loop, block in enumerate(fact.blocks):
        if block.kind != "for" or loop in around or (draw is not None and block.order < draw.order) or not _of_steps(program, number, loop):
            continue
        inside = [i for i, c in enumerate(fact.calls) if program.within(number, c.block, loop)]
        if any(program.role(number, i) in {"buffer.take", "carrier.read", "env.step"} for i in inside) or _cut(
            program, number, loop, names
        ):
            continue
        step = _steps_on(program, number, inside, names)
        if step is not None:
            return number, loop, step
    return None


def _of_steps(program: Program, number: int, loop: int) -> bool:
    fact = program.functions[number].fact
    counts = [a for a in fact.blocks[loop].detail if isinstance(a, int) and fact.calls[a].name in {"range", "trange"}]
    names = [str(a).lower() for c in counts for arg in fact.calls[c].args for a in _deep(program, number, arg)]
    names += [b.target.lower() for b in fact.binds if b.form == "for" and b.block == loop]
    if any(program.words.has("reuse", n) or any(w in n for w in _OTHER) for n in names):
        return False
    return any(word in n for n in names for word in _COUNTS)


def _deep(program: Program, number: int, atoms: tuple[Atom, ...]) -> Iterator[str]:
    fact = program.functions[number].fact
    for atom in atoms:
        if isinstance(atom, int):
            for arg in fact.calls[atom].args:
                yield from _deep(program, number, arg)
        elif not atom.startswith("="):
            yield atom


def _cut(program: Program, number: int, loop: int, names: set[str]) -> bool:
    """In the loop the rows are bound anew, indexed by a name, or cut."""
    fact = program.functions[number].fact
    if any(b.target.partition("[")[0] in names and program.within(number, b.block, loop) for b in fact.binds):
        return True
    for call in fact.calls:
        if not program.within(number, call.block, loop):
            continue
        head, _, last = call.name.rpartition(".")
        if head in names and last in {*program.words["splitters"], "sample", "shuffle", "get", "select", "slice", "index_select", "next"}:
            return True
        given = [a for arg in (*call.args, call.receiver, *(v for _, v in call.keywords)) for a in arg if isinstance(a, str)]
        if any(f"{n}[]" in a for n in names for a in (*given, call.name)):
            return True
    return any(f"{n}[]" in str(a) for n in names for b in fact.binds if program.within(number, b.block, loop) for a in b.value)


def _steps_on(program: Program, number: int, inside: list[int], names: set[str]) -> int | None:
    """A call in the loop that is given the rows and steps once on them, or the optimizer's own step behind a backward pass there."""
    fact = program.functions[number].fact
    for edge in program.calls.edges[number]:
        if edge.call not in inside or edge.confidence is Confidence.HINT or STEP not in program.full.of[edge.callee]:
            continue
        call = fact.calls[edge.call]
        whole = any(a in names for arg in (*call.args, *(v for _, v in call.keywords)) for a in arg)
        own = [program.call(edge.callee, a).block for a, _ in program.own(edge.callee, STEP)]
        if whole and not any(program.loops_of(edge.callee, b) for b in own):
            return edge.call
    backs = [a for a, _ in program.own(number, BACK) if a in inside]
    steps = [a for a, _ in program.own(number, STEP, "scaler.step") if a in inside]
    read = any(
        isinstance(a, str) and a.partition(".")[0].partition("[")[0] in names
        for i in inside for arg in (*fact.calls[i].args, *(v for _, v in fact.calls[i].keywords)) for a in arg
    )  # fmt: skip
    return steps[0] if backs and steps and read else None
