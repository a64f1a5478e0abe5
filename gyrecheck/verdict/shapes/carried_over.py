"""Do gradients of a window that is not full run into the first step of the next round? (GYR213).

Step and clear stand on one branch that holds on every n-th pass, the count begins anew in each round, and nothing steps or clears after the
loop. It is a warning where the next round's rows come from another policy, and a note elsewhere. Silent where the sizes are made or checked
to divide, or where anything else of the file steps or clears.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Atoms, Block
from gyrecheck.model.finding import Confidence, Evidence, Severity
from gyrecheck.program.flow import prefixes
from gyrecheck.program.program import ACTING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes import steps
from gyrecheck.verdict.shapes.steps import BACK, CLEAR, STEP, Event
from gyrecheck.verdict.shapes.suspect import Suspect
from gyrecheck.verdict.shapes.told_number import told_number


def carried_over(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every loop that steps on full windows only and leaves the rest in the gradients, once."""
    seen: set[tuple[int, int]] = set()
    for fn in program.functions:
        table = program.full.of[fn.number]
        if BACK not in table or (STEP not in table and "scaler.step" not in table) or fn.fact.name.startswith("test"):
            continue
        found = steps.events(program, fn.number)
        for step in (e for e in found if e.role == STEP):
            suspect = _rest(program, fn.number, found, step)
            if suspect is not None and (suspect.function, suspect.line) not in seen:
                seen.add((suspect.function, suspect.line))
                yield suspect


def _rest(program: Program, root: int, found: list[Event], step: Event) -> Suspect | None:
    around = [lp for lp in steps.loops(program, step) if lp[0] == 0]
    if not around or len(around) != len(steps.loops(program, step)):
        return None
    at = _gate(program, root, around[0], step)
    block = program.tree.functions[root].fact.blocks[at]
    window = _window(program, root, around[0][1], at, block) if at >= 0 else None
    if window is None:
        return None
    adds = [e for e in found if e.role == BACK]
    steady = [e for e in adds if steps.inside(program, e, step, around[0]) and next(steps.branches(program, e, around[0]), None) is None]
    outside = [e for e in found if e.role in {STEP, CLEAR} and not _behind(program, root, e, step, around[0], at)]
    clears = [e for e in found if e.role == CLEAR and e not in outside]
    if not steady or len(steady) != len(adds) or outside or not clears or _elsewhere(program, found):
        return None
    if _made_to_fit(program, root, around[0][1], at, window) or _divides(program, root, around[0][1], block):
        return None
    fresh = _fresh_rows(program, root, around[-1][1])
    head = program.tree.functions[root].fact.blocks[around[0][1]]
    return Suspect(
        "GYR213", root, block.line, 0, "the step runs on full windows only: what is left after the last one stays in the gradients and is "
            "added to the first step of the next round",
        evidence=(
            steps.evidence(program, steady[0], "gradients are added on every pass"), steps.evidence(program, clears[-1], "cleared only with a step"),
            program.place(root, head.line, "the count begins anew with this loop", "because"), *([fresh] if fresh else []),
        ),
        hint="step on the last pass as well, with the divisor of what the window holds", side="training", key="window",
        at_most=Severity.WARNING if fresh else Severity.NOTE,
    )  # fmt: skip


def _gate(program: Program, root: int, loop: tuple[int, int], step: Event) -> int:
    """The block whose condition lets the step happen: the one branch around it, or the one that goes on before it; -1 for neither."""
    branches = list(steps.branches(program, step, loop))
    if branches:
        return branches[0][1] if len(branches) == 1 and branches[0][0] == root else -1
    fact = program.tree.functions[root].fact
    order = program.call(*step.way[0]).order
    leaves = [e for e in fact.exits if e.kind == "continue" and e.order < order and program.loop_of(root, e.block) == loop[1]]
    return leaves[0].block if len(leaves) == 1 and fact.blocks[leaves[0].block].parent == loop[1] else -1


def _behind(program: Program, root: int, event: Event, step: Event, loop: tuple[int, int], at: int) -> bool:
    """The event happens only when the gate is open."""
    call = program.call(*event.way[0])
    if program.within(root, program.call(*step.way[0]).block, at):
        return program.within(root, call.block, at)
    return program.within(root, call.block, loop[1]) and call.order > program.tree.functions[root].fact.blocks[at].order


def _window(program: Program, root: int, loop: int, at: int, block: Block) -> frozenset[str] | None:
    """The names that say how many passes a window holds; None where the branch is no count that begins anew with the loop."""
    fact = program.tree.functions[root].fact
    paths = [a for a in block.detail if isinstance(a, str) and not a.startswith(("=", "<"))]
    if block.kind != "then" or len(paths) != sum(not str(a).startswith("=") for a in block.detail) or not paths:
        return None
    op = block.op.replace("+", "").replace("-", "")
    counted = {b.target for b in fact.binds if b.form == "for" and b.block == loop}
    gates = {"%==", "not %"} if program.loop_of(root, at) == loop and not _leaves(program, root, at) else {"%!=", "%"}
    if op in gates and paths[0] in counted and len(paths) <= 2:
        return frozenset(p.rpartition(".")[2] for p in paths[1:])
    counter = paths[0]
    begun = [b for b in fact.binds if b.target == counter and b.form == "="]
    grown = [b for b in fact.binds if b.target == counter and b.form == "+=" and program.within(root, b.block, loop)]
    anew = [b for b in begun if program.within(root, b.block, at)]
    before = [b for b in begun if not program.within(root, b.block, loop) and b.order <= fact.blocks[loop].order]
    if op in {"==", ">="} and not _leaves(program, root, at) and len(paths) <= 2 and counter.isidentifier() and grown and anew and before:
        return frozenset(p.rpartition(".")[2] for p in paths[1:])
    return None


def _leaves(program: Program, root: int, at: int) -> bool:
    return any(e.kind == "continue" and e.block == at for e in program.tree.functions[root].fact.exits)


def _elsewhere(program: Program, found: list[Event]) -> bool:
    """Another function of these files steps or clears as well: it may take the rest."""
    known = {e.place for e in found}
    used = {hop for e in found for hop in e.way}
    if any((c.caller, c.call) not in used for e in found if e.role in {STEP, CLEAR} for n, _ in e.way[1:] for c in program.callers[n]):
        return True
    modules = {program.tree.functions[e.place[0]].module for e in found}
    for module in modules:
        for fn in program.tree.functions_of(module):
            for at, _ in program.own(fn.number, STEP, CLEAR, "scaler.step", hints=True):
                callee = program.resolver.callee(fn.number, at)
                if (fn.number, at) not in known and (callee is None or callee.kind != "func"):
                    return True
    return False


def _made_to_fit(program: Program, root: int, loop: int, at: int, window: frozenset[str]) -> bool:
    """The window's size is part of how the passes are made, or a condition asks whether it divides them."""
    fn = program.tree.functions[root]
    atoms: list[str | int] = list(fn.fact.blocks[loop].detail)
    for atom in atoms:
        if isinstance(atom, int):
            call = fn.fact.calls[atom]
            atoms += [a for given in (*call.args, *(v for _, v in call.keywords), call.receiver) for a in given if a not in atoms]
            atoms += [p for p in prefixes(call.name) if p not in atoms]
        else:
            made = [a for b in fn.fact.binds if b.target == atom and b.form != "for" for a in b.value]
            if any(isinstance(a, str) and a.endswith("[]") for a in (atom, *made)):
                return True  # cut to a length: to one that fits, perhaps
            atoms += [a for a in made if a not in atoms]
    if _names(tuple(atoms)) & window or any(
        isinstance(a, int) and fn.fact.calls[a].name.rpartition(".")[2] in {"cycle", "count"} for a in atoms
    ):
        return True
    for other in program.tree.functions_of(fn.module):
        for index, block in enumerate(other.fact.blocks):
            asked = block.kind in {"then", "assert", "while"} and "%" in block.op and (other.number, index) != (root, at)
            if asked and (not window or _names(block.detail) & window):
                return True
    return False


def _divides(program: Program, root: int, loop: int, block: Block) -> bool:
    """The passes and the window are told as numbers, and the one is a multiple of the other."""
    fact = program.tree.functions[root].fact
    size = next((n for a in block.detail if (n := told_number(program, root, a)) is not None and n > 1), None)
    atoms: list[str | int] = list(fact.blocks[loop].detail)
    for atom in atoms if size else ():
        if isinstance(atom, str):
            atoms += [a for b in fact.binds if b.target == atom and b.form != "for" for a in b.value if a not in atoms]
            continue
        call = fact.calls[atom]
        last = call.name.rpartition(".")[2]
        if last in {"chunk", "array_split", "range"} and call.args:
            told = [told_number(program, root, a) for a in call.args[-1 if last != "chunk" else 0]]
            if len(told) == 1 and told[0] is not None and size is not None:
                return told[0] % size == 0
        atoms += [a for given in call.args[:1] for a in given if a not in atoms]
    return False


def _names(atoms: Atoms) -> set[str]:
    return {a.rpartition(".")[2].partition("[")[0] for a in atoms if isinstance(a, str) and not a.startswith(("=", "<"))}


def _fresh_rows(program: Program, root: int, loop: int) -> Evidence | None:
    """Where it shows that the next round's rows come from another policy: a version raised after the loop, a caller that samples anew."""
    fact = program.tree.functions[root].fact
    for bind in fact.binds:
        raised = (
            bind.form == "+=" and bind.target.rpartition(".")[2] in program.words["versions"] and not program.within(root, bind.block, loop)
        )
        if raised and bind.order > fact.blocks[loop].order:
            return program.place(root, bind.line, f"the next round is another policy's: {bind.target}", "because", bind.column + 1)
    above = [(e.caller, e.call) for e in program.callers[root] if e.call >= 0 and e.confidence is not Confidence.HINT]
    places = [(root, loop, -1), *((n, program.loop_of(n, program.call(n, at).block), at) for n, at in above)]
    for number, turn, learned in places:
        acts = [at for at, _ in program.own(number, *ACTING)]
        acts += [
            e.call for e in program.calls.edges[number] if e.call >= 0 and e.call != learned and program.has(e.callee, *ACTING, full=True)
        ]
        for at in sorted(acts):
            sampled = program.call(number, at)
            if turn >= 0 and program.within(number, sampled.block, turn):
                return program.place(number, sampled.line, f"each round samples anew: {readable(sampled)}", "because", sampled.column + 1)
    return None
