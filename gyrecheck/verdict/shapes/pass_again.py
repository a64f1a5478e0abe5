"""Does a call lie in passes over one and the same batch, with optimizer steps between? Here, or where its function is called."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Atom
from gyrecheck.model.finding import Confidence, Evidence
from gyrecheck.program.program import Program
from gyrecheck.verdict.shapes.steps import STEP

_INDEXES = frozenset({"randperm", "permutation", "arange", "range", "len", "enumerate", "zip", "tqdm", "trange", "shuffle", "list", "iter", "slice",
                      "reversed", "BatchSampler", "SubsetRandomSampler", "RandomSampler", "DataLoader", "TensorDataset", "items", "to", "view",
                      "reshape", "flatten", "int", "max", "min", "tensor", "as_tensor", "from_numpy", "cuda", "size", "randint",
                      "feed_forward_generator", "recurrent_generator", "mini_batch_generator", "get"})  # fmt: skip
"""Calls that only choose among rows which are already there."""
_CUTS = ("mini", "chunk", "split", "shuffle", "perm", "indice", "batches", "parts")


def same_rows_again(program: Program, number: int, at: int) -> tuple[Evidence, ...]:
    """The passes around call `at`, as evidence; empty when each pass has rows of its own or nothing is stepped between."""
    sites = [(number, at)]
    sites += [
        (e.caller, e.call) for e in program.callers[number] if e.kind == "call" and e.call >= 0 and e.confidence is not Confidence.HINT
    ]
    for where, call in sites:
        fact = program.tree.functions[where].fact
        for loop in program.loops_of(where, fact.calls[call].block):
            if _counts_passes(program, where, loop) and _steps(program, where, loop) and not _drawn(program, where, call, loop):
                return (program.place(where, fact.blocks[loop].line, "passes over the same rows", "because"),)
    return ()


def _counts_passes(program: Program, number: int, loop: int) -> bool:
    """`for _ in range(passes)`: a count, and not one of whole rounds."""
    fact = program.tree.functions[number].fact
    block = fact.blocks[loop]
    counted = [a for a in block.detail if isinstance(a, int) and fact.calls[a].name in {"range", "trange"}]
    if block.kind != "for" or not counted:
        return False
    names = [str(a) for c in counted for arg in fact.calls[c].args for a in arg if isinstance(a, str)]
    names += [b.target for b in fact.binds if b.form == "for" and b.block == loop]
    return any(program.words.has("reuse", n) for n in names) or not any(
        w in n.lower() for n in names for w in ("step", "round", "iter", "update")
    )


def _steps(program: Program, number: int, loop: int) -> bool:
    fact = program.tree.functions[number].fact
    if any(program.within(number, fact.calls[a].block, loop) for a, _ in program.own(number, STEP, "scaler.step", "update.run")):
        return True
    return any(
        e.call >= 0 and e.confidence is not Confidence.HINT and STEP in program.full.of[e.callee] and program.within(number, fact.calls[e.call].block, loop)
        for e in program.calls.edges[number]
    )  # fmt: skip


def _drawn(program: Program, number: int, at: int, loop: int) -> bool:
    """What the call is given is made or fetched anew within the loop, or nothing of it comes from before."""
    fact = program.tree.functions[number].fact
    call = fact.calls[at]
    before = False
    for atom in (a for arg in (*call.args, *(v for _, v in call.keywords)) for a in arg):
        for source in _sources(program, number, atom, loop, 6):
            if source == "=drawn":
                return True
            before = before or source not in {"self", "torch", "np"}
    return not before


def _sources(program: Program, number: int, atom: Atom, loop: int, depth: int) -> Iterator[str]:
    """The names from before the loop that an atom is made of; `=drawn` for a call that may give other rows each time."""
    fact = program.tree.functions[number].fact
    if depth < 0:
        yield "=drawn"
    elif isinstance(atom, int):
        call = fact.calls[atom]
        last = call.name.rpartition(".")[2]
        splits = last in _INDEXES or last in program.words["splitters"] or any(w in last.lower() for w in _CUTS)
        if call.name != "{}" and not splits and call.result != -2 and program.role(number, atom) != "grad.cut":
            yield "=drawn"
            return
        root = call.name.partition(".")[0].partition("[")[0]
        head = (root,) if "." in call.name and root not in {"", "torch", "np", "numpy", "random", "self"} else ()
        for inner in (*head, *call.receiver, *(a for arg in call.args for a in arg), *(a for _, v in call.keywords for a in v)):
            yield from _sources(program, number, inner, loop, depth - 1)
    elif not atom.startswith(("=", "<")):
        root = atom.partition(".")[0].partition("[")[0]
        made = [b for b in fact.binds if b.target.partition("[")[0] == root and program.within(number, b.block, loop) and b.form != "+="]
        if not made:
            yield root
        for bind in made:
            for inner in bind.value:
                if inner != root:
                    yield from _sources(program, number, inner, loop, depth - 1)
