"""Does a thread act with the very network that is trained while it runs, reached through objects that both sides hold? (GYR108).

The network of the acting forward and the network of the optimizer are followed back to the function that starts the thread: through
parameters, fields and constructors. A lock around the forward, a load into it, a sign it waits for, or a join before the training
ends the question.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gyrecheck.model.finding import Confidence, Evidence
from gyrecheck.program.origin import Frame, Origin, frame_of, origin
from gyrecheck.program.program import ACTING, LEARNING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.forwards import forward
from gyrecheck.verdict.shapes.shared_model import given_to_both
from gyrecheck.verdict.shapes.steps import STEP
from gyrecheck.verdict.shapes.suspect import Suspect, at_call

_STARTS = frozenset({"Thread", "Process"})
_WAITS = frozenset({"join", "wait", "result", "gather", "as_completed"})
_SIGNS = frozenset({"wait", "wait_for", "acquire", "recv", "get_nowait", "join"})
_DEEP = 4


class _Part(NamedTuple):
    """A function that runs beside its starter, and what its parameters are there."""

    function: int
    call: int
    frame: Frame
    process: bool


def acting_on_trained(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every forward of an acting thread on a network that an optimizer of the same program changes meanwhile, once."""
    seen: set[tuple[int, int]] = set()
    known = {s.function for s in given_to_both(program)}
    for number in sorted({*program.doing("thread.start", hints=True), *program.calling(frozenset({"start"}))} - known):
        parts = _parts(program, number)
        step = _learning(program, number, parts) if parts else None
        if step is None:
            continue
        trained = _trained(program, number)
        if any(program.has(p.function, STEP, full=True) for p in parts):
            parts.append(_Part(number, min(p.call for p in parts), {}, process=False))
        for part in parts:
            if not _only_acts(program, part, number):
                continue
            for where, at, path, home in _acted(program, part):
                if home not in trained or (where, at) in seen or (part.process and not _shares_memory(program, number)):
                    continue
                seen.add((where, at))
                call, start = program.call(where, at), program.call(number, part.call)
                made = program.call(*trained[home])
                yield at_call(
                    program, where, at, "GYR108", f"`{path}` acts in `{program.name(where)}` while the same object is trained: "
                        "one trajectory mixes several policies",
                    evidence=(program.place(number, start.line, f"it is started here: {readable(start)}", "because", start.column + 1),
                              program.place(trained[home][0], made.line, f"the optimizer holds it: {readable(made)}", "because", made.column + 1),
                              step),
                    hint="give each sampler a copy of its own and load published weights between trajectories", key=call.name, side="sampling",
                    pure=True,
                )  # fmt: skip


def _only_acts(program: Program, part: _Part, starter: int) -> bool:
    """Samples for training, loads no weights, and takes no gradient; the starter itself may start what does."""
    fn = program.tree.functions[part.function]
    whole = program.name(part.function).lower()
    if "evaluation" in program.region(part.function) or "eval" in whole or not program.has(part.function, *ACTING):
        return False
    if part.function == starter:
        return not program.own(starter, *LEARNING, "weights.load") and fn.fact.name != "<module>"
    return not program.has(part.function, *LEARNING, "weights.load", "carrier.read", full=True) and not _takes_turns(program, part.function)


def _takes_turns(program: Program, number: int) -> bool:
    """It waits for a sign of the other side: whether weights change meanwhile cannot be read here."""
    reached = [number, *(e.callee for e in program.calls.edges[number] if e.confidence is not Confidence.HINT)]
    calls = [c for n in reached for c in program.tree.functions[n].fact.calls]
    return any(c.name.rpartition(".")[2] in _SIGNS and "." in c.name[1:] for c in calls) or any(
        c.name.endswith(".get") and not c.args for c in calls
    )


def _parts(program: Program, number: int) -> list[_Part]:
    """What the function starts: targets of threads, and instances of classes of ours that are threads."""
    fact = program.tree.functions[number].fact
    out = []
    for edge in program.calls.edges[number]:
        if edge.call < 0 or edge.confidence is Confidence.HINT:
            continue
        call = fact.calls[edge.call]
        last = call.name.rpartition(".")[2]
        if edge.kind == "passed" and last in _STARTS:
            out.append(_Part(edge.callee, edge.call, _target_frame(program, number, edge.call, edge.callee), last == "Process"))
    started = any(c.name.rpartition(".")[2] == "start" or c.name == ".start" for c in fact.calls)
    for at in range(len(fact.calls)) if started else ():
        target = program.resolver.callee(number, at)
        if target is None or target.kind != "class":
            continue
        base = next((b for b in program.resolver.bases(int(target.ref))[1] if b.rpartition(".")[2] in _STARTS), "")
        run = program.resolver.method(int(target.ref), "run")
        if base and run >= 0:
            me = program.tree.functions[run].fact.params
            out.append(_Part(run, at, {me[0].name: (number, f"@{at}")} if me else {}, base.endswith("Process")))
    return out


def _target_frame(program: Program, number: int, at: int, callee: int) -> Frame:
    """`Thread(target=f, args=(a, b))`: what the parameters of `f` are; of a bound method, what `self` is."""
    call, fn = program.call(number, at), program.tree.functions[callee]
    plain = [p.name for p in fn.fact.params if not p.kind]
    frame: Frame = {}
    target = next((a for k, v in call.keywords if k == "target" for a in v if isinstance(a, str)), "")
    if fn.cls >= 0 and plain:
        head = target.rpartition(".")[0]
        if head:
            frame[plain[0]] = origin(program, number, head)
        plain = plain[1:]
    given = next((v for k, v in call.keywords if k == "args"), ())
    if all(isinstance(a, str) for a in given):
        frame.update(
            (name, origin(program, number, str(a))) for name, a in zip(plain, given, strict=False) if not str(a).startswith(("=", "<"))
        )
    return frame


def _learning(program: Program, number: int, parts: list[_Part]) -> Evidence | None:
    """The optimizer's step that runs beside the parts: in another part, or in the starter after them with no wait between."""
    for part in parts:
        if program.has(part.function, STEP, full=True) and not program.has(part.function, *ACTING, full=True):
            return _step(program, part.function)
    fact = program.tree.functions[number].fact
    first = min(fact.calls[p.call].order for p in parts)
    waits = [c.order for c in fact.calls if c.name.rpartition(".")[2] in _WAITS and c.order > first]
    later = [at for at, _ in program.own(number, STEP)]
    later += [e.call for e in program.calls.edges[number] if e.kind == "call" and e.call >= 0 and program.has(e.callee, STEP, full=True)]
    for at in sorted(later):
        order = fact.calls[at].order
        if order > first and not any(first < w < order for w in waits):
            return _step(program, number)
    return None


def _step(program: Program, number: int) -> Evidence:
    last = program.full.chain(number, STEP)[-1]
    call = program.call(last.function, last.call)
    return program.place(last.function, call.line, f"it is changed by {readable(call)}", "because", call.column + 1)


def _acted(program: Program, part: _Part) -> Iterator[tuple[int, int, str, Origin]]:
    """The forwards of a part and of what it calls, with the origin of their network; none under a lock."""
    queue: list[tuple[int, Frame, int]] = [(part.function, part.frame, 0)]
    visited = {part.function}
    for number, frame, depth in queue:
        fact = program.tree.functions[number].fact
        for at, call in enumerate(fact.calls):
            if _locked(program, number, call.block):
                continue
            head, _, last = call.name.rpartition(".")
            if call.name[:1] not in {".", "{"} and forward(program, number, at, call) is not None:
                named = program.lexicon.named(last)
                direct = program.resolver.callee(number, at) is not None or (named is not None and named.kind == "module") or not head
                for path in (call.name, head) if not direct else (call.name,):
                    if path:
                        yield number, at, path, origin(program, number, path, frame)
        for edge in program.calls.edges[number] if depth < _DEEP else ():
            if edge.kind != "call" or edge.call < 0 or edge.confidence is Confidence.HINT or edge.callee in visited:
                continue
            if not _locked(program, number, fact.calls[edge.call].block):
                visited.add(edge.callee)
                queue.append((edge.callee, frame_of(program, number, edge.call, edge.callee, frame), depth + 1))


def _locked(program: Program, number: int, block: int) -> bool:
    """Under a `with` over a plain object: a lock, a condition."""
    blocks = program.tree.functions[number].fact.blocks
    held = (blocks[b] for b in program.blocks_up(number, block) if blocks[b].kind == "with")
    return any(isinstance(a, str) or "lock" in program.call(number, a).name.lower() for b in held for a in b.detail)


def _trained(program: Program, number: int) -> dict[Origin, tuple[int, int]]:
    """Networks that optimizers hold, by origin: optimizers made in the starter, in what it calls and makes, and in its own class."""
    out: dict[Origin, tuple[int, int]] = {}
    fn = program.tree.functions[number]
    queue: list[tuple[int, Frame | None, int]] = [(number, None, 0)]
    if fn.cls >= 0:
        queue += [(m, None, 1) for m in program.tree.classes[fn.cls].methods.values() if m != number]
    visited = {n for n, _, _ in queue}
    for at_, frame, depth in queue:
        for made, _ in program.own(at_, "optimizer.make"):
            for path in _held(program, at_, made):
                out.setdefault(origin(program, at_, path, frame), (at_, made))
        for edge in program.calls.edges[at_] if depth < _DEEP else ():
            if edge.kind in {"call", "make"} and edge.call >= 0 and edge.confidence is not Confidence.HINT and edge.callee not in visited:
                visited.add(edge.callee)
                queue.append((edge.callee, frame_of(program, at_, edge.call, edge.callee, frame), depth + 1))
    return out


def _held(program: Program, number: int, at: int) -> Iterator[str]:
    """The paths before `.parameters()` in what an optimizer is given."""
    fact = program.tree.functions[number].fact
    todo = [a for atoms in (*fact.calls[at].args[:1], *(v for k, v in fact.calls[at].keywords if k == "params")) for a in atoms]
    for atom in todo:
        if isinstance(atom, int):
            call = fact.calls[atom]
            head, _, last = call.name.rpartition(".")
            if last in {"parameters", "named_parameters"} and head:
                yield head
            todo += [a for arg in (*call.args, *(v for _, v in call.keywords)) for a in arg if isinstance(a, int)]


def _shares_memory(program: Program, number: int) -> bool:
    module = program.tree.functions[number].module
    return any(
        c.name.rpartition(".")[2] in {"share_memory", "share_memory_"} for fn in program.tree.functions_of(module) for c in fn.fact.calls
    )
