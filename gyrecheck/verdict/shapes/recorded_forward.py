"""Does a network run with gradient recording on while sampling, and does the graph live on? (GYR103).

Not asked is whether `env.step` is under `no_grad`: it records nothing. Asked is whether a forward's result, its graph still on it,
is stored, sent, returned, kept on an object, or fed to the environment. `eval()` changes layers, not recording.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gyrecheck.model.facts import Call
from gyrecheck.model.finding import Confidence, Evidence, Severity
from gyrecheck.program.flow import Reached, reach
from gyrecheck.program.program import LEARNING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.forwards import cuts, forward
from gyrecheck.verdict.shapes.kept_by import keeper
from gyrecheck.verdict.shapes.meant_graph import is_meant, is_trained_on
from gyrecheck.verdict.shapes.returned_parts import numbers_apart, reached_parts
from gyrecheck.verdict.shapes.suspect import Suspect, at_call

_DEEP = 5
_WANTS = frozenset({"grad", "backward", "requires_grad_", "vjp", "jvp", "jacobian"})


def recorded_forward(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every forward whose graph outlives the step of a sampling function."""
    libraries = {symbol.partition(".")[0] for symbol, role in program.lexicon.symbols.items() if role == "guard.no_grad"}
    recording = {
        m
        for m, module in enumerate(program.tree.modules)
        if any((i.module or i.name).partition(".")[0] in libraries for i in module.imports)
    }
    seen: set[tuple[int, int]] = set()
    for number in program.doing("env.step", "policy.generate"):
        if _is_environment(program, number) or "simulation" in program.region(number):
            continue
        if program.has(number, *LEARNING) and not _some_guarded(program, number):
            continue  # the graph is meant: an online loop that takes the loss of what it has just done
        if is_meant(program, number) or _is_forward(program, number):
            continue
        if (
            (program.unrecorded_by_decorator(number) and not _on_again(program, number))
            or _shielded(program, number, frozenset())
            or _switched_off(program, number)
        ):
            continue
        yield from _last_of_each(program, list(_in_sampler(program, number, recording, seen)), seen)


def _on_again(program: Program, number: int) -> bool:
    """Recording is switched on within the function, and nothing there asks for a gradient."""
    fact = program.tree.functions[number].fact
    if any(c.name.rpartition(".")[2] in _WANTS for c in fact.calls):
        return False
    guards = {r.call for r in program.calls.roles[number] if r.role == "guard.grad"}
    return any(block.kind == "with" and guards & set(block.detail) for block in fact.blocks)


def _last_of_each(program: Program, found: list[Suspect], seen: set[tuple[int, int]]) -> Iterator[Suspect]:
    """One suspect for each function and place where its result is kept: the last forward; the others are evidence."""
    groups: dict[tuple[int, str, int], list[Suspect]] = {}
    for suspect in found:
        seen.add((suspect.function, suspect.line * 1000 + suspect.column))
        kept = next(e for e in suspect.evidence if e.text.startswith("it"))
        groups.setdefault((suspect.function, kept.path, kept.line), []).append(suspect)
    for group in groups.values():
        last = max(group, key=lambda s: (s.confidence.value == "bound", s.line, s.column))
        others = tuple(
            program.place(s.function, s.line, f"so does {s.message.split('`')[1]}", "because", s.column + 1) for s in group if s is not last
        )
        yield replace(last, evidence=(*last.evidence, *others[-3:]))


def _some_guarded(program: Program, number: int) -> bool:
    """Another forward of the function is under a guard: then the open one is an oversight."""
    fact = program.tree.functions[number].fact
    return any(
        forward(program, number, at, call) is not None and program.unrecorded(number, call.block) for at, call in enumerate(fact.calls)
    )


def _is_environment(program: Program, number: int) -> bool:
    fn = program.tree.functions[number]
    return fn.cls >= 0 and program.calls.class_kind(fn.cls) == "env"


def _is_forward(program: Program, number: int) -> bool:
    """The forward pass of a network that steps a problem to its end: whoever calls it trains on its log-probs, or does not."""
    fn = program.tree.functions[number]
    return fn.cls >= 0 and fn.fact.name in {"forward", "__call__"} and program.calls.class_kind(fn.cls) == "module"


def _shielded(program: Program, number: int, seen: frozenset[int]) -> bool:
    """Every known caller runs it with recording off."""
    if number in seen:
        return True
    edges = [e for e in program.callers[number] if e.confidence is not Confidence.HINT]
    if not edges:
        return False
    for edge in edges:
        call_block = program.call(edge.caller, edge.call).block if edge.call >= 0 else 0
        if edge.call >= 0 and program.unrecorded(edge.caller, call_block):
            continue
        if not _shielded(program, edge.caller, seen | {number}):
            return False
    return True


def _switched_off(program: Program, number: int) -> bool:
    """`torch.set_grad_enabled(False)` as a statement, in the function, its callers or at module level; or frozen parameters."""
    fn = program.tree.functions[number]
    places = {number, program.tree.first_function[fn.module], *(e.caller for e in program.callers[number])}
    for at in places:
        fact = program.tree.functions[at].fact
        for index, call in enumerate(fact.calls):
            if (
                call.result == -1
                and call.args
                and "=False" in call.args[0]
                and (program.role(at, index).startswith("guard.") or call.name.endswith(".requires_grad_"))
            ):
                return True
    return False


def _in_sampler(program: Program, sampler: int, recording: set[int], seen: set[tuple[int, int]]) -> Iterator[Suspect]:
    """Forwards of the function itself and of the functions it calls with recording on."""
    queue: list[tuple[int, tuple[tuple[int, int], ...]]] = [(sampler, ())]
    visited = {sampler}
    torch = any(program.tree.functions[n].module in recording for n in (sampler,))
    for number, way in queue:
        fact = program.tree.functions[number].fact
        here = torch or program.tree.functions[number].module in recording
        for at, call in enumerate(fact.calls):
            if program.unrecorded(number, call.block):
                continue
            known = forward(program, number, at, call) if here else None
            if known is not None and (number, call.line * 1000 + call.column) not in seen:
                if number == sampler and not _beside_step(program, sampler, call):
                    continue
                kept = _kept(program, (*way, (number, at)))
                if kept is not None and not is_trained_on(program, sampler, number, at):
                    yield _suspect(program, sampler, number, at, way, known, kept)
        if len(way) >= _DEEP:
            continue
        for edge in program.calls.edges[number]:
            if edge.call < 0 or edge.confidence is Confidence.HINT or edge.callee in visited or edge.kind in {"make", "passed"}:
                continue
            if program.unrecorded(number, program.call(number, edge.call).block) or program.unrecorded_by_decorator(edge.callee):
                continue
            if number == sampler and not _beside_step(program, sampler, program.call(number, edge.call)):
                continue
            if (
                _is_environment(program, edge.callee)
                or program.has(edge.callee, *LEARNING)
                or program.region(edge.callee) & {"loss", "update", "simulation"}
            ):
                continue
            visited.add(edge.callee)
            queue.append((edge.callee, (*way, (number, edge.call))))


def _beside_step(program: Program, sampler: int, call: Call) -> bool:
    """In a function that also learns, only what stands in the loop of the step is sampling; elsewhere everything is."""
    if not program.has(sampler, *LEARNING):
        return True
    loops = {program.loop_of(sampler, program.call(sampler, at).block) for at, _ in program.own(sampler, "env.step", "policy.generate")}
    return any(loop in program.loops_of(sampler, call.block) for loop in loops)


def _kept(program: Program, way: tuple[tuple[int, int], ...]) -> Evidence | None:
    """Follow the result up the calls of `way` (innermost last): the place where its graph is kept, or None."""
    told = numbers_apart(program, *way[-1])
    for number, at in reversed(way):
        fact = program.tree.functions[number].fact
        parts = [b for b in fact.binds if at in b.value and b.form in {f"{i}/{told[0]}" for i in told[1]}]
        if told[0] > 1 and fact.calls[at].result == told[0]:  # unpacked: only the parts that carry a graph are followed
            flow = reach(fact, binds=parts, cut=lambda c, n=number: cuts(program, n, c))  # type: ignore[misc]
        else:
            flow = reach(fact, [at], cut=lambda c, n=number: cuts(program, n, c))  # type: ignore[misc]
        told = reached_parts(fact, flow)
        sink = _sink(program, number, at, flow, local=(number, at) == way[0])
        if sink is not None:
            return sink
        if not flow.returned:
            return None
        if (number, at) == way[0]:
            return program.place(number, flow.returned[0], "its result leaves the sampling function with the graph on it", "because")
    return None


def _sink(program: Program, number: int, start: int, flow: Reached, *, local: bool) -> Evidence | None:
    """Where the value is kept; a list of the function's own counts only in the sampling function itself (`local`)."""
    fact = program.tree.functions[number].fact
    own = {b.target for b in fact.binds} - {p.name for p in fact.params} - set(fact.globals)
    filled = {c.name.rpartition(".")[0] for c in fact.calls if c.name.rpartition(".")[2] in program.words["stores"]} - own - {""}
    for at in sorted(flow.taken):
        call = fact.calls[at]
        if at == start:
            continue
        role = program.role(number, at)
        if role == "env.step":
            return program.place(number, call.line, f"it is fed to {readable(call)}", "because", call.column + 1)
        head, _, last = call.name.rpartition(".")
        into = role in {"buffer.put", "carrier.write"} or (head and last in program.words["stores"])
        if (into and (local or head not in own)) or (head in filled and call.result == -1):
            return program.place(number, call.line, f"it is stored by {readable(call)}", "because", call.column + 1)
    edge = keeper(program, number, flow)
    if edge is not None:
        call = fact.calls[edge.call]
        return program.place(number, call.line, f"it is kept by {readable(call)}", "because", call.column + 1)
    for bind in flow.kept:
        root = bind.target.split(".")[0].split("[")[0]
        if (bind.target.startswith("self.") or (bind.target.endswith("]") and (local or root not in own))) and bind.form != "with":
            return program.place(number, bind.line, f"it is kept in {bind.target}", "because", bind.column + 1)
    return None


def _suspect(
    program: Program, sampler: int, number: int, at: int, way: tuple[tuple[int, int], ...], known: Confidence, kept: Evidence
) -> Suspect:
    call = program.call(number, at)
    step = program.own(sampler, "env.step", "policy.generate")[0][0]
    chain = [
        program.place(
            n, program.call(n, c).line, f"{program.name(n)} calls {readable(program.call(n, c))}", "through", program.call(n, c).column + 1
        )
        for n, c in way
    ]
    others = _other_sites(program, number, way)
    acting = program.call(sampler, step)
    first = program.place(sampler, acting.line, f"{program.name(sampler)} samples: {readable(acting)}", "because", acting.column + 1)
    where = "" if sampler == number else f", reached from `{program.name(sampler)}`"
    return at_call(
        program, number, at, "GYR103", f"`{readable(call)}` records a graph while sampling{where}: no guard found on the way",
        evidence=(*chain, *others, kept, first), confidence=known, side="sampling", key=call.name, at_most=_grave(program, sampler, kept),
        hint=f"decorate `{program.name(sampler)}` with @torch.no_grad(), or open the guard around this call",
    )  # fmt: skip


def _grave(program: Program, sampler: int, kept: Evidence) -> Severity:
    """A note in an evaluation that stores nothing, and where whoever takes the result, perhaps with recording off, is not known."""
    known = any(e.confidence is not Confidence.HINT for e in program.callers[sampler])
    apart = len(program.tree.modules) > 1 and not known and kept.text.startswith("its result leaves")
    measures = "evaluation" in program.region(sampler) and not kept.text.startswith(("it is stored", "it is kept"))
    return Severity.NOTE if apart or measures or _toggled(program) else Severity.ERROR


def _toggled(program: Program) -> bool:
    """Recording is switched off by a statement somewhere: it stays off for whatever runs next, wherever that is."""
    return any(
        program.call(number, at).result == -1 and "=False" in (program.call(number, at).args or ((),))[0]
        for number in program.calling(frozenset({"set_grad_enabled"}))
        for at, call in enumerate(program.functions[number].fact.calls)
        if call.name.rpartition(".")[2] == "set_grad_enabled"
    )


def _other_sites(program: Program, number: int, way: tuple[tuple[int, int], ...]) -> list[Evidence]:
    out = []
    for edge in program.callers[number]:
        if (
            edge.call >= 0
            and (edge.caller, edge.call) not in way
            and not program.unrecorded(edge.caller, program.call(edge.caller, edge.call).block)
        ):
            call = program.call(edge.caller, edge.call)
            out.append(program.place(edge.caller, call.line, f"{program.name(edge.caller)} calls it too", "through", call.column + 1))
    return out[:4]
