"""Do the passes over a rollout lie inside the loop over its mini-batches? (GYR219).

`for part in loader: for _ in range(epochs): step(part)` takes all the steps on one part in a row, where each pass should go over all of
them. Only where the parts are cut from rows that are already there; a batch that is sampled anew for each turn may well be stepped on often.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gyrecheck.model.facts import Atoms
from gyrecheck.model.finding import Confidence
from gyrecheck.program.program import ACTING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.steps import STEP
from gyrecheck.verdict.shapes.suspect import Suspect, in_tests

_CUTS = frozenset(
    {
        "chunk",
        "split",
        "array_split",
        "tensor_split",
        "minibatches",
        "mini_batches",
        "iter_minibatches",
        "minibatch_generator",
        "BatchSampler",
    }
)
_LOADERS = frozenset({"DataLoader"})
_ROWS = frozenset({"TensorDataset", "dataset_of", "randperm", "permutation"})
_ROLLS = re.compile(r"roll_?out|generat|experience|collect|play|respon|answer|complet|simulat|interact")
_MAKES = re.compile(r"^(?:make|build|new|create|init|deepcopy|clone|fork|fresh)")
_DEEP = 4
_FEW = 3


def passes_inside(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every loop over passes that stands in a loop over parts and steps on the one part each time."""
    for number in program.doing(STEP, "scaler.step"):
        yield from _asked(program, number)
    below = {e.caller for n in program.doing(STEP, "scaler.step") for e in program.callers[n] if e.confidence is not Confidence.HINT}
    for number in sorted(below):
        yield from _asked(program, number)


def _asked(program: Program, number: int) -> Iterator[Suspect]:
    fact = program.tree.functions[number].fact
    if in_tests(program, number):
        return
    for inner, block in enumerate(fact.blocks):
        if block.kind != "for" or not _counts_passes(program, number, block.detail):
            continue
        outer = program.loop_of(number, block.parent)
        if outer < 0 or fact.blocks[outer].kind != "for" or not _parts(program, number, fact.blocks[outer].detail, 0):
            continue
        part = next((b.target for b in fact.binds if b.form == "for" and b.block == outer), "")
        inside = [i for i, c in enumerate(fact.calls) if program.within(number, c.block, inner)]
        fresh = any(
            role in ACTING
            for i, c in enumerate(fact.calls)
            if program.within(number, c.block, outer)
            for role in (program.role(number, i),)
        )
        deeper = any(b.kind in {"for", "while"} and program.within(number, at, inner) for at, b in enumerate(fact.blocks) if at != inner)
        around = any(_counts_passes(program, number, fact.blocks[lp].detail) for lp in program.loops_of(number, fact.blocks[outer].parent))
        step = _step(program, number, inside)
        made = _made_inside(program, number, outer, part)
        if fresh or made or deeper or around or step is None or not any(part in _paths(program, number, i, part) for i in inside):
            continue
        call = program.call(number, step)
        yield Suspect(
            "GYR219", number, block.line, 4, f"the passes lie inside the loop over `{part}`: `{readable(call)}` steps on one part again and again "
                "before the next one is seen",
            evidence=(program.place(number, fact.blocks[outer].line, "the loop over the parts of the rows", "because"),),
            hint="put the loop over passes outside, and cut the rows anew in each pass", side="training", key=part,
        )  # fmt: skip


def _made_inside(program: Program, number: int, outer: int, part: str) -> bool:
    """The turn makes a network or an optimizer of its own, or generates the rows: the part is a task, or prompts."""
    fact = program.tree.functions[number].fact
    held = [i for i, c in enumerate(fact.calls) if program.within(number, c.block, outer)]
    edges = [e for e in program.calls.edges[number] if e.call in held]
    if any(program.has(e.callee, *ACTING, "optimizer.make") for e in edges):
        return True
    if any(program.role(number, i) == "optimizer.make" or _ROLLS.search(_last(fact.calls[i].name)) for i in held):
        return True
    bound = [b for b in fact.binds if b.form == "=" and len(b.value) == 1 and isinstance(b.value[0], int) and b.value[0] in held]
    return any(_MAKES.search(_last(fact.calls[int(b.value[0])].name)) or "optim" in b.target.lower() for b in bound if b.target != part)


def _last(name: str) -> str:
    return name.rpartition(".")[2].lower()


def _counts_passes(program: Program, number: int, detail: Atoms) -> bool:
    fact = program.tree.functions[number].fact
    for atom in detail:
        if isinstance(atom, int) and fact.calls[atom].name in {"range", "trange"}:
            given = [a for arg in fact.calls[atom].args for a in arg if isinstance(a, str)]
            return any("epoch" in a.lower() or "passes" in a.lower() for a in given)
    return False


def _parts(program: Program, number: int, atoms: Atoms, depth: int) -> bool:
    """What is walked is cut from rows that are there: chunks, a loader over tensors, a permutation."""
    fact = program.tree.functions[number].fact
    for atom in atoms if depth < _DEEP else ():
        if isinstance(atom, str):
            if atom.startswith("="):
                continue
            binds = [b for b in fact.binds if b.target == atom and b.form == "="]
            if len(binds) <= _FEW and any(_parts(program, number, b.value, depth + 1) for b in binds):
                return True
            continue
        call = fact.calls[atom]
        last = call.name.rpartition(".")[2]
        if last in _CUTS:
            return True
        given = (*call.receiver, *(a for arg in call.args for a in arg))
        if last in _LOADERS:
            made = [v for a in given if isinstance(a, str) for b in fact.binds if b.target == a for v in b.value] + list(given)
            if any(isinstance(v, int) and fact.calls[v].name.rpartition(".")[2] in _ROWS for v in made):
                return True
        elif last in {"enumerate", "tqdm", "iter", "list"} and _parts(program, number, given, depth + 1):
            return True
    return False


def _step(program: Program, number: int, inside: list[int]) -> int | None:
    own = next((at for at, _ in program.own(number, STEP, "scaler.step") if at in inside), None)
    if own is not None:
        return own
    for edge in program.calls.edges[number]:
        if edge.call in inside and edge.kind == "call" and edge.confidence is not Confidence.HINT and program.has(edge.callee, STEP):
            return edge.call
    return None


def _paths(program: Program, number: int, at: int, part: str) -> set[str]:
    """The names that a call is given; an index by a variable may be by the part."""
    call = program.call(number, at)
    given = [a for arg in (*call.args, *(v for _, v in call.keywords)) for a in arg if isinstance(a, str)]
    return {word for a in given for word in a.replace("[", ".").replace("]", ".").split(".")} | {part for a in given if "[]" in a}
