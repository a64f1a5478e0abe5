"""Are the gradients that are clipped those of the step that follows? (GYR228). And is a gradient scaler used whole? (GYR229).

After a backward pass the parameters of one network are clipped, and the optimizer that steps holds another one: a line that was copied.
Asked only where every optimizer concerned is made from `X.parameters()` in plain sight.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Bind, Call, Function
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.optimizer_reach import given_to
from gyrecheck.verdict.shapes.steps import BACK, STEP
from gyrecheck.verdict.shapes.suspect import Suspect, at_call, in_tests

_CLIPS = frozenset({"clip_grad_norm_", "clip_grad_value_", "clip_grad_norm"})
_SCALER = "scaler.step"


def clip_beside(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every clip of a network that the next step does not move, and every scaler that is stepped without scaling or updating."""
    by_file: dict[int, dict[str, set[str]]] = {}
    for number in program.calling(_CLIPS):
        module = program.functions[number].module
        if module not in by_file:
            by_file[module] = _holders(program, module)
        if len(by_file[module]) > 1 and not in_tests(program, number):
            yield from _of_another(program, number, by_file[module])
    for number in program.doing(_SCALER):
        if not in_tests(program, number):
            yield from _half(program, number)


def _holders(program: Program, module: int) -> dict[str, set[str]]:
    """The last names of a file's optimizers, with those of the networks they are made over; one made otherwise holds everything."""
    out: dict[str, set[str]] = {}
    for fn in program.tree.functions_of(module):
        for at, _ in program.own(fn.number, "optimizer.make"):
            paths = given_to(program, fn.number, at)
            for bind in (b for b in fn.fact.binds if at in b.value):
                held = {_tail(p) for p in paths} if paths is not None else {"*"}
                out.setdefault(_tail(bind.target), set()).update(held)
    for fn in program.tree.functions_of(module):  # a second name, a part or a whole of a network goes by the first one
        for bind in fn.fact.binds:
            named = {_tail(a) for a in bind.value if isinstance(a, str) and not a.startswith("=")}
            named |= {part for a in bind.value if isinstance(a, str) and "." in a for part in a.split(".")}
            for held in out.values():
                if bind.form == "=" and (named & held or _tail(bind.target) in held):
                    held |= {_tail(bind.target), *(named - {"self"})}
    return out


def _tail(path: str) -> str:
    return path.rpartition(".")[2]


def _of_another(program: Program, number: int, holders: dict[str, set[str]]) -> Iterator[Suspect]:
    fact = program.tree.functions[number].fact
    backs = [fact.calls[at].order for at, _ in program.own(number, BACK)]
    taken = [(fact.calls[at].order, fact.calls[at]) for at, _ in program.own(number, STEP)]
    for at, call in enumerate(fact.calls):
        network = _clipped(program, number, call)
        before = [order for order in backs if order < call.order]
        if not network or not before:
            continue
        ends = min((order for order in backs if order > call.order), default=1 << 60)
        after = [c for order, c in taken if call.order < order < ends]
        names = [_tail(c.name.rpartition(".")[0]) for c in after]
        owners = [name for name, held in holders.items() if network in held]
        if _given_in(program, number, call, network) or _stepped_between(
            program, number, call, owners, min([ends, *(c.order for c in after)])
        ):
            continue
        moved = {held for name in names for held in holders.get(name, {"*"})}
        if not names or not owners or moved & {network, "*"} or _handed_in(fact, call, after):
            continue
        start = max(before)
        if any(start < c.order < max(s.order for s in after) and _clipped(program, number, c) in moved for c in fact.calls):
            continue  # what steps is clipped, too: the other clip only measures
        yield at_call(
            program, number, at, "GYR228", f"`{readable(call)}` clips `{network}`, and the step that follows is `{readable(after[0])}`, which moves "
                "another network: its gradients are not clipped",
            evidence=(program.place(number, after[0].line, f"the step: {readable(after[0])}", "because", after[0].column + 1),),
            side="training", hint="clip the parameters that this optimizer holds", key=f"{network}>{names[0]}",
        )  # fmt: skip


def _given_in(program: Program, number: int, clip: Call, network: str) -> bool:
    """The network is a parameter of the function, which says nothing of other places; or the clip only measures; or another clip follows."""
    fact = program.tree.functions[number].fact
    if any(p.name == network and network not in {b.target for b in fact.binds} for p in fact.params):
        return True
    bound = [a for arg in (*clip.args[1:], *(v for _, v in clip.keywords)) for a in arg]
    text = [str(a) for i in bound if isinstance(i, int) for arg in fact.calls[i].args for a in arg] + [str(a) for a in bound]
    return any("inf" in t.lower() for t in text)


def _handed_in(fact: Function, clip: Call, after: list[Call]) -> bool:
    """The network's owner or an optimizer is a parameter: callers pair them, and the file's names say nothing of them."""
    params = {p.name for p in fact.params} - {b.target for b in fact.binds} - {"self", "cls"}
    owner = fact.calls[clip.args[0][0]].name if isinstance(clip.args[0][0], int) else ""
    return owner.partition(".")[0] in params or any(c.name.partition(".")[0] in params for c in after)


def _stepped_between(program: Program, number: int, clip: Call, owners: list[str], ends: int) -> bool:
    """Before the next step a helper steps, or is given an optimizer that holds the network."""
    fact = program.tree.functions[number].fact
    below = {e.call for e in program.calls.edges[number] if program.has(e.callee, STEP, _SCALER)}
    for at, call in enumerate(fact.calls):
        given = {_tail(a) for arg in (*call.args, *(v for _, v in call.keywords)) for a in arg if isinstance(a, str)}
        if clip.order < call.order < ends and (at in below or given & set(owners)):
            return True
    return False


def _clipped(program: Program, number: int, call: Call) -> str:
    """The last name of the one network whose parameters are clipped."""
    if _tail(call.name) not in _CLIPS or not call.args or len(call.args[0]) != 1 or not isinstance(call.args[0][0], int):
        return ""
    owner, _, last = program.call(number, call.args[0][0]).name.rpartition(".")
    return _tail(owner) if last == "parameters" else ""


def _is_scaler(program: Program, number: int, bind: Bind) -> bool:
    """The name is bound to a scaler that is made there, to nothing else."""
    calls = program.tree.functions[number].fact.calls
    return len(bind.value) == 1 and isinstance(bind.value[0], int) and "Scaler" in calls[bind.value[0]].name


def _half(program: Program, number: int) -> Iterator[Suspect]:
    """`scaler.step(opt)` where nothing in the file scales a loss, or nothing updates the scale."""
    fn = program.tree.functions[number]
    for at, _ in program.own(number, _SCALER):
        call = fn.fact.calls[at]
        scaler = _tail(call.name.rpartition(".")[0])
        asked = {_tail(c.name) for f in program.functions for c in f.fact.calls if _tail(c.name.rpartition(".")[0]) == scaler}
        handed = any(
            isinstance(a, str) and _tail(a) == scaler for f in program.functions for c in f.fact.calls for v in (*c.args, *(v for _, v in c.keywords)) for a in v
        )  # fmt: skip
        binds = [(f.number, b) for f in program.functions for b in f.fact.binds]
        given_in = scaler in {p.name for p in fn.fact.params}
        plain = not given_in and all(_is_scaler(program, n, b) for n, b in binds if _tail(b.target) == scaler)
        named = any(isinstance(a, str) and _tail(a.partition("[")[0]) == scaler for _, b in binds for a in b.value)
        if not scaler or handed or named or not plain or not program.own(number, BACK):
            continue
        said = "is stepped and no loss is scaled by it: its steps are divided by a scale that the gradients do not have" if "scale" not in asked else (
            "is stepped and never updated: after one overflow every step is skipped" if "update" not in asked else ""
        )  # fmt: skip
        if said:
            yield at_call(
                program, number, at, "GYR229", f"`{scaler}` {said}", side="training", key=scaler,
                hint="scaler.scale(loss).backward(), scaler.step(optimizer), scaler.update()",
            )  # fmt: skip
            return
