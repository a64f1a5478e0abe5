"""Does an update run on the batch of the pass before, because the queue had none? (GYR208)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Bind
from gyrecheck.model.finding import Confidence
from gyrecheck.program.flow import reach
from gyrecheck.program.program import Program, readable
from gyrecheck.verdict.shapes.handler_end import leaving, under
from gyrecheck.verdict.shapes.steps import BACK, STEP
from gyrecheck.verdict.shapes.suspect import Suspect, at_call

_NOTHING = frozenset(
    {"Empty", "queue.Empty", "TimeoutError", "asyncio.TimeoutError", "QueueEmpty", "asyncio.QueueEmpty", "StopIteration", "Exception"}
)


def used_again(program: Program, number: int) -> Iterator[Suspect]:
    """Takes of a batch, here or in a helper, that leave the last one in place when there is none, and go on to the step."""
    fact = program.tree.functions[number].fact
    backs = {at for at, _ in program.own(number, BACK)}
    edges = [
        e for e in program.calls.edges[number] if e.call >= 0 and e.confidence is not Confidence.HINT and BACK in program.full.of[e.callee]
    ]
    places = [(number, bind, -1) for bind in _kept(program, number)]
    for edge in program.calls.edges[number]:
        if edge.call >= 0 and edge.kind in {"call", "name"}:
            places += [(edge.callee, bind, edge.call) for bind in _kept(program, edge.callee)]
    for where, bind, call in places:
        if call >= 0:
            inner = program.tree.functions[where].fact
            if not any(bind.target in item for e in inner.exits if e.kind == "return" for item in e.items):
                continue
            flow = reach(fact, [call])
        else:
            flow = reach(fact, binds=[bind])
        if not (backs & (flow.calls | flow.taken)) and not any(e.call in flow.taken for e in edges):
            continue
        read = _read_of(program, where, bind)
        blocks = program.tree.functions[where].fact.blocks
        handler = next(b for b in blocks if b.kind == "except" and b.link in program.blocks_up(where, bind.block))
        step = next((program.call(number, a) for a, _ in program.own(number, STEP, "scaler.step")), None)
        places_ = [program.place(where, handler.line, "this handler goes on with what is there", "because")]
        if step is not None:
            places_.append(program.place(number, step.line, f"the update: {readable(step)}", "because", step.column + 1))
        yield at_call(
            program, where, read, "GYR208", f"when `{readable(program.call(where, read))}` finds nothing, `{bind.target}` is still the batch "
                "of the pass before, and the update runs on it again",
            evidence=tuple(places_), hint="leave the pass out when there is no new batch", side="training",
        )  # fmt: skip
        return


def _read_of(program: Program, number: int, bind: Bind) -> int:
    return next(a for a in bind.value if isinstance(a, int) and program.role(number, a) in {"carrier.read", "buffer.take"})


def _kept(program: Program, number: int) -> list[Bind]:
    """Bindings to what a queue gives, in a `try` whose handler goes on and binds nothing else, to a name that outlives the pass."""
    fact = program.tree.functions[number].fact
    reads = {at for at, _ in program.own(number, "carrier.read", "buffer.take")}
    out = []
    for bind in fact.binds:
        if bind.form != "=" or not reads & set(bind.value):
            continue
        held = next((b for b in program.blocks_up(number, bind.block) if fact.blocks[b].kind == "try"), -1)
        handlers = [i for i, b in enumerate(fact.blocks) if b.kind == "except" and b.link == held and set(map(str, b.detail)) & _NOTHING]
        if held < 0 or not handlers:
            continue
        if any(leaving(fact, h) or any(under(fact, b.block, h) and b.target == bind.target for b in fact.binds) for h in handlers):
            continue
        loop = program.loop_of(number, bind.block)
        begun = [b for b in fact.binds if b is not bind and b.target == bind.target]
        if bind.target.startswith("self."):
            lives = not begun
        else:
            lives = loop >= 0 and bool(begun) and not any(program.within(number, b.block, loop) for b in begun)
        if lives:
            out.append(bind)
    return out
