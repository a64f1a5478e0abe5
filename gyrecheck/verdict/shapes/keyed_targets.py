"""Does a part of the update put targets or advantages with the critic's graph into the batch, and the loss take them from there? (GYR214).

The two ends meet in a key of a mapping, so both must stand in one file: a function that learns nothing writes it, one that takes the
gradient reads it. Silent where any guard, decorator or cut lies between, or where the writer's callers switch recording off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gyrecheck.model.facts import Bind
from gyrecheck.program.flow import prefixes, reach
from gyrecheck.program.program import LEARNING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.forwards import cuts
from gyrecheck.verdict.shapes.steps import BACK
from gyrecheck.verdict.shapes.suspect import Suspect, at_call, in_tests

_KEY = re.compile(r"\[(\w+)\]$")
_FIXED = re.compile(r"(?:^|_)(?:target|advantage|adv$|returns?$|ret$|goal|td_)")
_NETWORK = re.compile(r"^(?:compute_|get_|predict_)?(?:values?|critic|vf|value_fn|value_function|forward_critic)$")
_OWNER = frozenset({"module", "model", "net", "network", "policy", "agent", "critic", "self", "learner", "actor_critic", "ac"})


def keyed_targets(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every network value that is stored under a target's key with its graph, and differentiated where it is read."""
    for number in program.doing(BACK):
        if in_tests(program, number):
            continue
        module = program.functions[number].module
        for fn in program.tree.functions_of(module):
            if fn.number == number or not fn.fact.binds or program.has(fn.number, *LEARNING, full=True):
                continue
            found = _stored(program, fn.number)
            if found is None or _guarded(program, module, fn.number, found[1].target):
                continue
            at, bind, key = found
            back = _differentiated(program, number, key)
            if (
                back is None
                or _cut_where_read(program, number, key, fn.fact.name)
                or _without_graph(program, program.call(fn.number, at).name)
            ):
                continue
            value, end = program.call(fn.number, at), program.call(number, back)
            yield at_call(
                program, fn.number, at, "GYR214", f"`{readable(value)}` records a graph, and what is made of it is stored as `{key}` and reaches "
                    f"`{readable(end)}` with it",
                evidence=(program.place(fn.number, bind.line, f"stored here: {bind.target}", "because", bind.column + 1),
                          program.place(number, end.line, f"the gradient runs through it: {readable(end)}", "because", end.column + 1)),
                hint="compute values for targets and advantages under torch.no_grad()", side="training", key=key,
            )  # fmt: skip


def _stored(program: Program, number: int) -> tuple[int, Bind, str] | None:
    """A value forward whose graph flows into a key that is named as a fixed number: call, binding, key."""
    fact = program.tree.functions[number].fact
    if program.unrecorded_by_decorator(number):
        return None
    for at, call in enumerate(fact.calls):
        owner, _, last = call.name.rpartition(".")
        if not _NETWORK.match(last) or not call.args or program.unrecorded(number, call.block):
            continue
        if owner.rpartition(".")[2].lower() not in _OWNER and owner not in _OWNER:
            continue
        flow = reach(fact, [at], cut=lambda c: cuts(program, number, c))
        for bind in flow.kept:
            key = _KEY.search(bind.target)
            if key and _FIXED.search(key.group(1).lower()) and bind.form == "=" and not program.unrecorded(number, bind.block):
                return at, bind, key.group(1)
    return None


def _differentiated(program: Program, number: int, key: str) -> int | None:
    """The backward pass that a value read under the key reaches, its graph not cut on the way."""
    fact = program.tree.functions[number].fact
    atoms = [a for b in fact.binds for a in b.value]
    atoms += [a for c in fact.calls for arg in (*c.args, c.receiver, *(v for _, v in c.keywords)) for a in arg]
    paths = {p for a in atoms if isinstance(a, str) for p in prefixes(a) if p.endswith(f"[{key}]")}
    owners = {c.name.rpartition(".")[0] for c in fact.calls}
    if any(o.endswith(f"[{key}]") and f"{o}.detach" in {c.name for c in fact.calls} for o in owners) or not paths:
        return None
    flow = reach(fact, paths=paths, cut=lambda c: cuts(program, number, c))
    return next((at for at, _ in program.own(number, BACK) if at in flow.calls or at in flow.taken), None)


def _cut_where_read(program: Program, number: int, key: str, writer: str) -> bool:
    """The reader detaches the batch, or makes the entry anew without a graph."""
    fact = program.tree.functions[number].fact
    whole = {p.name for p in fact.params}
    if any(b.target.endswith(f"[{key}]") and program.unrecorded(number, b.block) for b in fact.binds):
        return True
    made = [b for b in fact.binds if b.target in whole and b.form == "="]
    if any(not (isinstance(a, int) and fact.calls[a].name.rpartition(".")[2] == writer) for b in made for a in b.value):
        return True
    return any(
        c.name.rpartition(".")[2] in {"detach", "detach_", "tree_map", "map"} and c.name.rpartition(".")[0] in {*whole, "v", "x", "t"}
        for c in fact.calls
    )


def _without_graph(program: Program, name: str) -> bool:
    """A function of the tree with this name records nothing, or gives back what is cut."""
    last = name.rpartition(".")[2]
    for fn in program.functions:
        if fn.fact.name != last:
            continue
        calls = fn.fact.calls
        if program.unrecorded_by_decorator(fn.number):
            return True
        for given in fn.fact.exits:
            names = {calls[a].name.rpartition(".")[2] for item in given.items for a in item if isinstance(a, int)}
            if given.kind == "return" and (program.unrecorded(fn.number, given.block) or names & {"detach", "numpy", "item", "tolist"}):
                return True
        own = [c for c in calls if c.name.startswith("self") and c.result > -2]
        if own and all(program.unrecorded(fn.number, c.block) for c in own):
            return True
    return False


def _guarded(program: Program, module: int, writer: int, target: str) -> bool:
    """Something in the file may switch recording off around the writer, or cut what it stores."""
    batch = target.partition("[")[0]
    for fn in program.tree.functions_of(module):
        edges = [e for e in program.calls.edges[fn.number] if e.callee == writer and e.call >= 0]
        if edges and program.unrecorded_by_decorator(fn.number):
            return True
        if any(program.unrecorded(fn.number, program.call(fn.number, e.call).block) for e in edges):
            return True
        for call in fn.fact.calls:  # a pipeline that runs its parts under a guard: the batch is handed on there
            given = {a.partition("[")[0] for arg in call.args for a in arg if isinstance(a, str)}
            if fn.number != writer and batch in given and program.unrecorded(fn.number, call.block):
                return True
        if any(batch == b.target and program.unrecorded(fn.number, b.block) for b in fn.fact.binds if fn.number != writer):
            return True
        key = target[len(batch) :]
        cut = (f"{key}.detach", f"{key}.detach_", f"{key}.data")
        if any(c.name.endswith(cut) for c in fn.fact.calls) or any(str(a).endswith(f"{key}.data") for b in fn.fact.binds for a in b.value):
            return True
    name = program.tree.functions[writer].fact.name
    for number in program.calling(frozenset({name})):  # also where the receiver's class is not known
        calls = program.functions[number].fact.calls
        if program.unrecorded_by_decorator(number) or any(
            program.unrecorded(number, c.block) for c in calls if c.name.rpartition(".")[2] == name
        ):
            return True
    return any(program.unrecorded_by_decorator(e.caller) for e in program.callers[writer])
