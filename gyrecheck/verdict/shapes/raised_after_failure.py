"""Does a version move on although the call that brings its weights to the samplers failed? (GYR412).

Ways to go on: a handler, however narrow, that only says it, here or in a helper that gives no answer; `suppress`; results of
`gather(..., return_exceptions=True)` that nobody looks at; an answer whose bad status is only mentioned.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Bind, Function
from gyrecheck.model.finding import Evidence
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.handler_end import under
from gyrecheck.verdict.shapes.suspect import Suspect, at_bind, at_call, in_tests
from gyrecheck.verdict.shapes.weight_delivery import always, brings, version_raised

_STATUS = frozenset({"status_code", "status", "ok", "success", "returncode", "is_success", "succeeded"})
_SAYING = frozenset({"debug", "info", "print", "log", "warning", "warn", "error", "exception", "critical", "str", "repr", "type", "format",
                     "print_exc", "len", "time", "monotonic", "perf_counter", "delete", "unlink", "remove", "close", "discard"})  # fmt: skip


def raised_after_failure(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Versions raised or told where the weights may not have arrived."""
    for fn in program.functions:
        fact = fn.fact
        if fact.name in {"__init__", "<module>"} or in_tests(program, fn.number) or len(fact.blocks) < 2:
            continue
        for at, block in enumerate(fact.blocks):
            if block.kind == "except":
                yield from _handled(program, fn.number, at)
                yield from _in_helper(program, fn.number, at)
            elif block.kind == "then":
                yield from _mentioned(program, fn.number, at)
    for number in program.calling(frozenset({"suppress"})):
        yield from _suppressed(program, number)
    for number in program.calling(frozenset({"gather"})):
        yield from _unlooked(program, number)


def _handled(program: Program, number: int, at: int) -> Iterator[Suspect]:
    fact = program.tree.functions[number].fact
    handler = fact.blocks[at]
    if not _goes_on(fact, at) or any(b.kind == "tryelse" and b.link == handler.link for b in fact.blocks):
        return
    after = max(b.end_order for b in fact.blocks if b.kind == "except" and b.link == handler.link)
    yield from _attempted(program, number, handler.link, after, program.place(number, handler.line, "the failure ends here", "because"))


def _attempted(program: Program, number: int, attempt: int, after: int, ends: Evidence) -> Iterator[Suspect]:
    """What lies in block `attempt` may fail, and the failure ends at `ends`."""
    fact = program.tree.functions[number].fact
    inside = [i for i, c in enumerate(fact.calls) if under(fact, c.block, attempt)]
    at = next((i for i in inside if brings(program, number, i)), -1)
    if at < 0 or any(under(fact, e.block, attempt) for e in fact.exits):
        return  # an attempt that leaves by itself when it succeeds is one of several
    around = fact.blocks[attempt].parent
    raised = version_raised(program, fact, after, around)
    others = (i for i, c in enumerate(fact.calls) if i not in inside and always(fact, c.block, around) and i != raised)
    if raised is None or any(brings(program, number, i) for i in others):
        return  # the weights go another way, too
    tries = fact.calls[at]
    tried = program.place(number, tries.line, f"may fail: {readable(tries)}", "because", tries.column + 1)
    hint = "leave the function where it fails: neither the version nor what counts as shipped may move"
    yield _said(program, number, raised, f"`{readable(tries)}` may have failed: what follows goes on", (tried, ends), hint)


def _in_helper(program: Program, number: int, at: int) -> Iterator[Suspect]:
    """The handler stands in a function that gives no answer, and its caller raises the version."""
    fact = program.tree.functions[number].fact
    handler = fact.blocks[at]
    tried = next((i for i, c in enumerate(fact.calls) if under(fact, c.block, handler.link) and brings(program, number, i)), -1)
    if tried < 0 or not _goes_on(fact, at) or any(e.items for e in fact.exits) or any(e.kind == "raise" for e in fact.exits):
        return
    if any(b.target.startswith("self.") for b in fact.binds):
        return  # it may keep what came of it
    ends = program.place(number, handler.line, "the failure ends here, and the caller is not told", "because")
    for edge in program.callers[number]:
        if edge.kind != "call" or edge.call < 0 or edge.caller == number:
            continue
        call = program.call(edge.caller, edge.call)
        outer = program.tree.functions[edge.caller].fact
        raised = version_raised(program, outer, call.order, call.block) if call.result in {-1, 0} else None
        if raised is not None:
            hint = "let the helper raise or tell, and raise the version only when all have the weights"
            why = f"`{readable(fact.calls[tried])}` may have failed in `{program.name(number)}`"
            yield _said(program, edge.caller, raised, why, (ends,), hint)


def _mentioned(program: Program, number: int, at: int) -> Iterator[Suspect]:
    """`if answer.status_code != 200: log.error(...)`, and on."""
    fact = program.tree.functions[number].fact
    block = fact.blocks[at]
    roots = {a.partition(".")[0] for a in block.detail if isinstance(a, str) and a.rpartition(".")[2] in _STATUS and "." in a}
    if not roots or not any(op in block.op.split() or op in block.op for op in ("not", "!=", ">=")) or not _goes_on(fact, at):
        return
    if not any(c.name.rpartition(".")[2] in program.words["loud"] for c in fact.calls if under(fact, c.block, at)):
        return
    if any(b.kind == "else" and b.link == at for b in fact.blocks):
        return
    for bind in fact.binds:
        asked = next((a for a in bind.value if isinstance(a, int) and brings(program, number, a, by_keys=True)), -1)
        if bind.target not in roots or bind.order > block.order or asked < 0:
            continue
        raised = version_raised(program, fact, block.end_order, block.parent)
        if raised is not None:
            place = program.place(number, block.line, "a failure is only mentioned here", "because")
            hint = "raise or leave where an engine did not take the weights"
            yield _said(program, number, raised, f"`{readable(fact.calls[asked])}` may have been refused", (place,), hint)
            return


def _suppressed(program: Program, number: int) -> Iterator[Suspect]:
    """`with suppress(ConnectionError):` is a handler that says nothing at all."""
    fact = program.tree.functions[number].fact
    for at, block in enumerate(fact.blocks):
        if block.kind == "with" and any(isinstance(a, int) and fact.calls[a].name.rpartition(".")[2] == "suppress" for a in block.detail):
            place = program.place(number, block.line, "the failure ends here", "because")
            yield from _attempted(program, number, at, block.end_order, place)


def _unlooked(program: Program, number: int) -> Iterator[Suspect]:
    fact = program.tree.functions[number].fact
    for at, call in enumerate(fact.calls):
        if call.name.rpartition(".")[2] != "gather" or call.result != -1 or ("return_exceptions", ("=True",)) not in call.keywords:
            continue
        inside = [i for i, c in enumerate(fact.calls) if call.line <= c.line and c.end_line <= call.end_line and i != at]
        first = next((i for i in inside if brings(program, number, i)), -1)
        raised = version_raised(program, fact, call.order, call.block) if first >= 0 else None
        if raised is not None:
            place = program.place(number, call.line, "failures are returned here, and nobody looks", "because", call.column + 1)
            hint = "look at the results, or let gather raise, before the version moves"
            yield _said(program, number, raised, f"`{readable(fact.calls[first])}` may have failed for some", (place,), hint)


def _said(program: Program, number: int, raised: Bind | int, why: str, places: tuple[Evidence, ...], hint: str) -> Suspect:
    if isinstance(raised, int):
        name = readable(program.call(number, raised))
        words = f"`{name}` tells a version although {why}"
        return at_call(program, number, raised, "GYR412", words, evidence=places, hint=hint, side="training")
    return at_bind(number, raised, "GYR412", f"`{raised.target}` is raised although {why}", evidence=places, hint=hint, side="training")


def _goes_on(fact: Function, at: int) -> bool:
    """The handler neither leaves, nor keeps anything, nor tries otherwise."""
    if any(under(fact, e.block, at) for e in fact.exits):
        return False
    if any(under(fact, b.block, at) and b.form not in {"except", "for", "with"} for b in fact.binds):
        return False
    return all(c.name.rpartition(".")[2] in _SAYING for c in fact.calls if under(fact, c.block, at) and c.result != -2)
