"""Does a function that is on one side by itself reach the other through a call, or do both where it should do one? (GYR101, 102, 204).

The finding stands at the call that crosses, with the chain from the function. Drivers, evaluation, imagination and outer loops are no
crossing; nor is a learning step behind a counter that draws from a buffer, which is how off-policy code is written.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Function
from gyrecheck.model.finding import Confidence
from gyrecheck.program.effects import Hop
from gyrecheck.program.flow import reach
from gyrecheck.program.program import ACTING, LEARNING, Program, readable, roots
from gyrecheck.program.topology import Layout, is_loop
from gyrecheck.verdict.shapes.input_gradient import of_an_input
from gyrecheck.verdict.shapes.suspect import Suspect, at_call

_MODES = frozenset({"training", "is_training", "train_mode", "training_mode"})
_PRELUDE = frozenset({"train", "eval", "zero_grad", "time", "perf_counter", "monotonic", "print", "info", "len", "next", "iter", "to"})
"""What a round may do before it samples: nothing that could belong to a loss."""
_TAKES = ("buffer.take", "carrier.read")
_DRAWS = frozenset({"sample", "draw", "sample_batch", "sample_transitions", "sample_minibatch"})
_STORES = ("buffer", "replay", "memory")
_CODE = {"loss.backward": "GYR101", "optimizer.step": "GYR102", "update.run": "GYR102"}


def crossing(program: Program, layout: Layout) -> Iterator[Suspect]:
    """Every crossing, once for each pair of function and crossing call."""
    by_number = {d.function: d.duty for d in layout.duties}
    for fn in program.functions:
        duty = by_number.get(fn.number)
        number = fn.number
        region = program.region(number)
        if region & {"evaluation", "simulation", "target", "loss", "dataset"}:
            continue
        if duty == "fused" and "rollout" in region and not _off_policy(program, number):
            yield from _own(program, number)
        listed = program.tree.qualified(number) in program.lexicon.drivers
        if duty == "fused" and "update" in region and "driver" not in region and not listed and not _off_policy(program, number):
            yield from _acts_itself(program, number)
        if duty != "crossing" or (is_loop(program, number) and not _declared_apart(layout, fn.module)):
            continue
        acts = program.own(number, *ACTING)
        if acts and _draws_itself(program, number):
            continue
        if acts:
            yield from _learning_below(program, number, acts[0][0])
        elif _declared_apart(layout, fn.module) or not _round_of_its_own(program, number):
            yield from _acting_below(program, number)


def _declared_apart(layout: Layout, module: int) -> bool:
    return layout.declared and layout.of_module[module].topology.value == "decoupled"


def _own(program: Program, number: int) -> Iterator[Suspect]:
    act = program.own(number, *ACTING)[0][0]
    call = program.call(number, act)
    for at, role in program.own(number, *LEARNING):
        if of_an_input(program, number, program.call(number, at)):
            continue
        yield at_call(
            program, number, at, _CODE[role], f"`{readable(program.call(number, at))}` in a sampling "
                f"function: `{program.name(number)}` collects",
            evidence=(program.place(number, call.line, f"it samples: {readable(call)}", "because", call.column + 1),),
            hint="let the sampler write the record and return; learn where the record is read", side="sampling", pure=True,
        )  # fmt: skip


def _acts_itself(program: Program, number: int) -> Iterator[Suspect]:
    learn = program.call(number, program.own(number, *LEARNING)[0][0])
    for at, _ in program.own(number, *ACTING, "env.reset"):
        yield at_call(
            program, number, at, "GYR204", f"`{readable(program.call(number, at))}` in an update: `{program.name(number)}` trains",
            evidence=(program.place(number, learn.line, f"it trains: {readable(learn)}", "because", learn.column + 1),),
            hint="collect in the sampler, record with the policy version, and read the record here", side="training", pure=True,
        )  # fmt: skip


def _off_policy(program: Program, number: int) -> bool:
    """The learning part draws its batch from a store, whoever's class it is, or from an iterator over one."""
    if program.has(number, *_TAKES, full=True):
        return True
    return any(c.name == "next" or _draws(*c.name.lower().rpartition(".")[::2]) for c in program.functions[number].fact.calls)


def _draws_itself(program: Program, number: int) -> bool:
    """The function that steps the environment draws from a memory what it hands to the learning step."""
    fact = program.functions[number].fact
    drawn = {at for at, c in enumerate(fact.calls) if program.role(number, at) in _TAKES or _draws(*c.name.lower().rpartition(".")[::2])}
    flow = reach(fact, drawn) if drawn else None
    return flow is not None and any(
        e.call in flow.taken and any(role in program.effects.of[e.callee] for role in LEARNING) for e in program.calls.edges[number]
    )


def _draws(owner: str, method: str) -> bool:
    return method in _DRAWS and any(word in owner.rpartition(".")[2] for word in _STORES)


def _learning_below(program: Program, number: int, act: int) -> Iterator[Suspect]:
    acting = program.call(number, act)
    because = program.place(number, acting.line, f"{program.name(number)} samples: {readable(acting)}", "because", acting.column + 1)
    for role, code in (("loss.backward", "GYR101"), ("optimizer.step", "GYR102")):
        effect = program.effects.of[number].get(role)
        if effect is None or effect.distance == 0 or effect.confidence is Confidence.HINT:
            continue
        hops = program.effects.chain(number, role)
        if hops[0].call < 0 or program.functions[hops[0].callee].parent == number:
            continue  # its own inner function is no other place
        if any(_off_policy(program, hop.function) or _is_environment(program, hop.function) for hop in hops[1:]):
            continue
        if any(_in_training_mode(program, hop) or _handed_over(program, hop) for hop in hops):
            continue
        last = hops[-1]
        call, crossed = program.call(last.function, last.call), program.call(number, hops[0].call)
        if of_an_input(program, last.function, call):
            continue
        yield at_call(
            program, number, hops[0].call, code, f"`{program.name(number)}` samples, and reaches "
                f"`{readable(call)}` through `{readable(crossed)}`",
            evidence=(because, *program.hops(hops[1:])), key=f"{program.name(number)}>{call.name}",
            hint="let the sampler write the record and return; learn where the record is read",
            side="sampling", confidence=effect.confidence,
            pure="rollout" in program.region(number),
        )  # fmt: skip


def _in_training_mode(program: Program, hop: Hop) -> bool:
    """The call stands behind `if self.training`: whether it runs is up to the mode that the caller has set."""
    if hop.call < 0:
        return False
    blocks = program.tree.functions[hop.function].fact.blocks
    return any(
        blocks[at].kind == "then" and "not" not in blocks[at].op and any(str(a).rpartition(".")[2] in _MODES for a in blocks[at].detail)
        for at in program.blocks_up(hop.function, program.call(hop.function, hop.call).block)
    )


def _handed_over(program: Program, hop: Hop) -> bool:
    """The function is only given to a constructor, which keeps it for later."""
    if hop.call < 0 or not program.call(hop.function, hop.call).name.rpartition(".")[2][:1].isupper():
        return False
    return any(e.call == hop.call and e.callee == hop.callee and e.kind == "passed" for e in program.calls.edges[hop.function])


def _round_of_its_own(program: Program, number: int) -> bool:
    """A whole round in one function: rows are sampled before all else, or before the loop over passes, and then trained on."""
    fact = program.functions[number].fact
    learning = [fact.calls[at] for at, _ in program.own(number, *LEARNING)]
    first = min(call.order for call in learning)
    passes = {loop for call in learning for loop in program.loops_of(number, call.block)}
    sampling = [
        e for e in program.calls.edges[number]
        if e.call >= 0 and e.confidence is not Confidence.HINT and any(role in program.effects.of[e.callee] for role in ACTING)
    ]  # fmt: skip
    calls = [fact.calls[e.call] for e in sampling]
    given = _is_given_rows(fact, frozenset(e.call for e in sampling))
    if not calls or (given and not all(_records_nothing(program, e.callee) for e in sampling)):
        return False
    begun = any(c.order < min(k.order for k in calls) and c.name.rpartition(".")[2] not in _PRELUDE for c in fact.calls if c.result != -2)
    return (bool(passes) or not (begun or given)) and all(
        call.result > -1 and call.order < first and not any(program.within(number, call.block, loop) for loop in passes) for call in calls
    )


def _is_given_rows(fact: Function, sampling: frozenset[int]) -> bool:
    """The function reads something of its parameters (itself excepted) elsewhere than in the sampling calls."""
    names = {p.name for p in fact.params} - {"self", "cls"}
    read = [arg for at, c in enumerate(fact.calls) if at not in sampling for arg in (*c.args, *(v for _, v in c.keywords), c.receiver)]
    read += [b.value for b in fact.binds]
    return any(name in names for atoms in read for name in roots(atoms))


def _records_nothing(program: Program, number: int) -> bool:
    """A sampling function that acts without a graph: by its decorator, or around each of its acting calls."""
    acts = [program.call(number, at) for at, _ in program.own(number, *ACTING)]
    return program.unrecorded_by_decorator(number) or (bool(acts) and all(program.unrecorded(number, call.block) for call in acts))


def _acting_below(program: Program, number: int) -> Iterator[Suspect]:
    learn = program.own(number, *LEARNING)[0][0]
    learning = program.call(number, learn)
    because = program.place(number, learning.line, f"{program.name(number)} trains: {readable(learning)}", "because", learning.column + 1)
    for role in ACTING:
        effect = program.effects.of[number].get(role)
        if effect is None or effect.distance == 0 or effect.confidence is Confidence.HINT:
            continue
        hops = program.effects.chain(number, role)
        if hops[0].call < 0 or program.functions[hops[0].callee].parent == number or (role == "rollout.run" and len(hops) == 1):
            continue
        if any(
            program.region(hop.function) & {"simulation", "evaluation", "loss", "dataset"} for hop in hops
        ):  # pure sides speak for themselves
            continue
        if _to_show(program, number, hops[0].call):
            continue
        last = hops[-1]
        call, crossed = program.call(last.function, last.call), program.call(number, hops[0].call)
        yield at_call(
            program, number, hops[0].call, "GYR204", f"`{program.name(number)}` trains, and reaches "
                f"`{readable(call)}` through `{readable(crossed)}`",
            evidence=(because, *program.hops(hops[1:])), key=f"{program.name(number)}>{call.name}",
            hint="collect in the sampler, record with the policy version, and read the record here",
            side="training", confidence=effect.confidence,
            pure="update" in program.region(number),
        )  # fmt: skip


def _to_show(program: Program, number: int, at: int) -> bool:
    """The call stands behind a condition that speaks of logs, videos or pictures: what it samples is looked at and trains nothing."""
    blocks = program.tree.functions[number].fact.blocks
    for block in (blocks[b] for b in program.blocks_up(number, program.call(number, at).block) if blocks[b].kind == "then"):
        words = {word for a in block.detail if isinstance(a, str) for word in a.rpartition(".")[2].lower().split("_")}
        if words & program.words["by_the_way"] and program.call(number, at).result == -1:
            return True
    return False


def _is_environment(program: Program, number: int) -> bool:
    fn = program.tree.functions[number]
    return fn.cls >= 0 and program.calls.class_kind(fn.cls) == "env"
