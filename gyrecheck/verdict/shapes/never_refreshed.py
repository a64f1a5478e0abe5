"""Does a sampler that runs for ever take new weights only once, and does a store of trajectories never let go? (GYR406, GYR604)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gyrecheck.model.finding import Severity
from gyrecheck.program.program import ACTING, LEARNING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, at_bind, at_call

_LABELLED = frozenset(
    {"cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss", "mse_loss", "smooth_l1_loss", "kl_div", "binary_cross_entropy"}
)
"""Losses against labels."""
_RETURNS = re.compile(r"(?:^|_)(?:rew|adv|ret|gain|logp|log_?prob|ratio|value|target|td|q$)")
"""Parts of names that speak of an outcome under the policy that acted."""
_LETS_GO = frozenset({"clear", "pop", "popleft", "reset", "remove", "empty", "flush", "truncate"})


def never_refreshed(program: Program, layout: Layout) -> Iterator[Suspect]:
    """Endless acting loops whose only load stands before them; lists filled by sampling, given whole to training, never emptied."""
    acting = program.doing(*ACTING)
    groups = {id(group): group for n in acting for group in (layout.of_module[program.functions[n].module],)}
    publishing = {id(layout.of_module[program.functions[n].module]) for n in program.doing("weights.publish", hints=True)}
    for key in groups.keys() - publishing:
        if any(_gives_weights(program, fn.number) for m in groups[key].modules for fn in program.tree.functions_of(m)):
            publishing.add(key)
    for number in acting:
        if id(layout.of_module[program.functions[number].module]) in publishing:
            yield from _once(program, number)
    for cls in program.tree.classes:
        yield from _kept(program, cls.number)


def _gives_weights(program: Program, number: int) -> bool:
    if not program.has(number, *LEARNING, full=True):
        return False
    calls = program.tree.functions[number].fact.calls
    return any(isinstance(a, int) and calls[a].name.endswith(".state_dict") for c in calls for arg in c.args for a in arg)


def _once(program: Program, number: int) -> Iterator[Suspect]:
    fact = program.tree.functions[number].fact
    if program.has(number, *LEARNING, full=True):
        return
    for at, _ in program.own(number, *ACTING):
        loop = program.loop_of(number, fact.calls[at].block)
        if loop < 0 or fact.blocks[loop].kind != "while" or fact.blocks[loop].detail not in {("=True",), ("=1",)}:
            continue
        loads = [
            (i, c) for i, c in enumerate(fact.calls)
            if c.result != -2 and c.order < fact.calls[at].order
            and (program.role(number, i) == "weights.load" or ("." in c.name and c.name.rpartition(".")[2] in program.words["loads"] - {"load"}))
        ]  # fmt: skip
        outside = [(i, c) for i, c in loads if not program.within(number, c.block, loop)]
        if not outside or len(outside) != len(loads) or program.loop_of(number, outside[-1][1].block) >= 0:
            continue
        inside = [e for e in program.calls.edges[number] if e.call >= 0 and program.within(number, fact.calls[e.call].block, loop)]
        if any("weights.load" in program.full.of[e.callee] for e in inside) or _may_refresh(program, number, loop):
            continue
        if any(loader != number for loader in program.doing("weights.load")):
            return  # another function may load into the same object
        index, call = outside[-1]
        acting = fact.calls[at]
        yield at_call(
            program, number, index, "GYR406", f"`{readable(call)}` loads weights once, and the endless loop after it never does: "
                "what the trainer publishes never reaches this sampler",
            evidence=(program.place(number, acting.line, f"it samples for ever with those: {readable(acting)}", "because", acting.column + 1),),
            hint="load the newest weights between trajectories, then raise the version", side="sampling", at_most=Severity.WARNING,
        )  # fmt: skip
        return


def _may_refresh(program: Program, number: int, loop: int) -> bool:
    """Something in the loop has a name that speaks of weights, versions or syncing."""
    fact = program.tree.functions[number].fact
    words = ("weight", "sync", "refresh", "update", "load", "pull", "fetch", "param", "reload", "policy_from")
    return any(program.within(number, c.block, loop) and any(w in c.name.rpartition(".")[2].lower() for w in words) for c in fact.calls)


def _kept(program: Program, cls: int) -> Iterator[Suspect]:
    """A list of the class that its rollout fills and its update takes whole, and that nothing empties: old policies' rows train for ever."""
    owner = program.tree.classes[cls]
    start = owner.methods.get("__init__", -1)
    if start < 0:
        return
    methods = [program.functions[m] for m in owner.methods.values()]
    for bind in program.functions[start].fact.binds:
        path = bind.target
        if bind.op != "[]" or bind.value or not path.startswith("self."):
            continue
        tail = path.rpartition(".")[2]
        fills = [
            (m.number, at) for m in methods for at, c in enumerate(m.fact.calls)
            if c.name in {f"{path}.append", f"{path}.extend"} and program.own(m.number, *ACTING)
        ]  # fmt: skip
        takes = [
            (m.number, c) for m in methods for c in m.fact.calls
            if any(path in arg for arg in c.args) and c.name not in {"len", "print", "random.sample", "random.choices"}
            and program.own(m.number, "loss.backward") and not program.own(m.number, *ACTING)
        ]  # fmt: skip
        if not fills or not takes or _imitates(program, takes[0][0]) or _emptied(program, path, tail, bind.order, start):
            continue
        fill, (where, take) = fills[0], takes[0]
        first = program.call(*fill)
        yield at_bind(
            start, bind, "GYR604", f"`{path}` is never emptied: every update trains on the rows of all earlier policies, and memory grows",
            evidence=(program.place(fill[0], first.line, f"filled by sampling: {readable(first)}", "because", first.column + 1),
                      program.place(where, take.line, f"taken whole by the update: {readable(take)}", "because", take.column + 1)),
            hint="clear it after the update, or give it a bound and sample from it", side="handoff",
        )  # fmt: skip


def _imitates(program: Program, number: int) -> bool:
    """The update fits labels of an expert, whoever visited the rows: nothing in it is an outcome under the policy that acted."""
    fact = program.functions[number].fact
    names = [c.name for c in fact.calls] + [b.target for b in fact.binds]
    names += [a for c in fact.calls for arg in (*c.args, c.receiver) for a in arg if isinstance(a, str)]
    last = {name.rpartition(".")[2] for name in names}
    return bool(last & _LABELLED) and not any(_RETURNS.search(part.lower()) for part in last)


def _emptied(program: Program, path: str, tail: str, order: int, start: int) -> bool:
    for fn in program.functions:
        for call in fn.fact.calls:
            head, _, last = call.name.rpartition(".")
            if last in _LETS_GO and (head == path or head.endswith(f".{tail}")):
                return True
        for bind in fn.fact.binds:
            whole = bind.target.partition("[")[0]
            if (whole == path or whole.endswith(f".{tail}")) and not (fn.number == start and bind.order == order):
                return True
    return False
