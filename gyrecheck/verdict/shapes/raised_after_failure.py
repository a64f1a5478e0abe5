"""Does a version move on although the call that brings its weights to the samplers failed? (GYR412).

Two ways to go on: a handler, however narrow, that only says it; results of `gather(..., return_exceptions=True)` that nobody looks at.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Bind, Call, Function
from gyrecheck.model.finding import Evidence
from gyrecheck.program.program import LEARNING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.handler_end import under
from gyrecheck.verdict.shapes.suspect import Suspect, at_bind, at_call

_SAYING = frozenset({"debug", "info", "print", "log", "warning", "warn", "error", "exception", "critical", "str", "repr", "type", "format",
                     "print_exc", "len", "time", "monotonic", "perf_counter", "delete", "unlink", "remove", "close", "discard"})  # fmt: skip
_TELLS = ("set_", "notify", "announce", "tell", "update_", "publish_", "bump", "put", "send")
_NOT = frozenset({"get", "append", "info", "format", "items", "result", "join", "parameters", "state_dict", "named_parameters", "update"})
_KEPT = (
    "hub",
    "upload",
    "download",
    "artifact",
    "backup",
    "save",
    "disk_cache",
    "optim",
    "sched",
    "wandb",
    "metric",
    "stats",
    "tokenizer",
    "config",
)
"""Parts of a call's name: weights go into a file or elsewhere for keeping."""
_BLOCKS = frozenset({"then", "else", "case", "except", "tryelse", "for", "while"})


def raised_after_failure(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Versions raised or told where the weights may not have arrived."""
    for fn in program.functions:
        fact = fn.fact
        if fact.name in {"__init__", "<module>"} or fact.name.startswith("test") or len(fact.blocks) < 2:
            continue
        for at, block in enumerate(fact.blocks):
            if block.kind == "except":
                yield from _handled(program, fn.number, at)
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
    at = next((i for i in inside if _brings(program, number, i)), -1)
    if at < 0 or any(under(fact, e.block, attempt) for e in fact.exits):
        return  # an attempt that leaves by itself when it succeeds is one of several
    around = fact.blocks[attempt].parent
    raised = _raised(program, fact, after, around)
    others = (i for i, c in enumerate(fact.calls) if i not in inside and _always(fact, c.block, around) and i != raised)
    if raised is None or any(_brings(program, number, i) for i in others):
        return  # the weights go another way, too
    brings = fact.calls[at]
    tried = program.place(number, brings.line, f"may fail: {readable(brings)}", "because", brings.column + 1)
    hint = "leave the function where it fails: neither the version nor what counts as shipped may move"
    yield _said(program, number, raised, f"`{readable(brings)}` may have failed: what follows goes on", (tried, ends), hint)


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
        brings = next((i for i in inside if _brings(program, number, i)), -1)
        raised = _raised(program, fact, call.order, call.block) if brings >= 0 else None
        if raised is not None:
            place = program.place(number, call.line, "failures are returned here, and nobody looks", "because", call.column + 1)
            hint = "look at the results, or let gather raise, before the version moves"
            yield _said(program, number, raised, f"`{readable(fact.calls[brings])}` may have failed for some", (place,), hint)


def _said(program: Program, number: int, raised: Bind | int, why: str, places: tuple[Evidence, ...], hint: str) -> Suspect:
    if isinstance(raised, int):
        name = readable(program.call(number, raised))
        words = f"`{name}` tells a version although {why}"
        return at_call(program, number, raised, "GYR412", words, evidence=places, hint=hint, side="training")
    return at_bind(number, raised, "GYR412", f"`{raised.target}` is raised although {why}", evidence=places, hint=hint, side="training")


def _brings(program: Program, number: int, at: int) -> bool:
    """A method call that by its name, or by what it is given, brings weights to somebody; one that trains or saves does not."""
    fact = program.tree.functions[number].fact
    call = fact.calls[at]
    name = call.name.removesuffix(".remote")
    head, _, last = name.rpartition(".")
    if (
        (not head and not call.receiver)
        or call.result == -2
        or last in _NOT
        or name == "ray.put"
        or "version" in last
        or any(word in name.lower() for word in _KEPT)
    ):
        return False
    role = program.known_role(number, at)
    if role is not None and role[0] in {*LEARNING, "target.update", "buffer.put", "scheduler.step"}:
        return False
    if not program.words.has("brings", last):
        return False
    return any(program.words.has("carried_weights", part) for part in (last, head)) or _of_weights(program, fact, call)


def _of_weights(program: Program, fact: Function, call: Call) -> bool:
    for atom in (*(a for arg in call.args for a in arg), *(a for _, v in call.keywords for a in v)):
        if isinstance(atom, int):
            if program.words.has("carried_weights", fact.calls[atom].name) or _of_weights(program, fact, fact.calls[atom]):
                return True
        elif not atom.startswith(("=", "<")) and program.words.has("carried_weights", atom):
            return True
    return False


def _goes_on(fact: Function, at: int) -> bool:
    """The handler neither leaves, nor keeps anything, nor tries otherwise."""
    if any(under(fact, e.block, at) for e in fact.exits):
        return False
    if any(under(fact, b.block, at) and b.form not in {"except", "for", "with"} for b in fact.binds):
        return False
    return all(c.name.rpartition(".")[2] in _SAYING for c in fact.calls if under(fact, c.block, at) and c.result != -2)


def _raised(program: Program, fact: Function, after: int, around: int) -> Bind | int | None:
    """The first version that is raised or told behind `after` on the same path; None when something asks, leaves or checks before that."""
    until = next((e.order for e in fact.exits if e.order > after and e.block in _up(fact, around)), 1 << 60)
    for bind in fact.binds:
        if not (
            after < bind.order < until and _always(fact, bind.block, around) and "." in bind.target and _is_version(program, bind.target)
        ):
            continue
        if bind.form == "+=" or (bind.form == "=" and any(not str(a).startswith("=") for a in bind.value)):
            return bind
    for index, call in enumerate(fact.calls):
        last = call.name.rpartition(".")[2].lower()
        if after < call.order < until and _always(fact, call.block, around) and "version" in last and last.startswith(_TELLS) and call.args:
            return index
    return None


def _up(fact: Function, block: int) -> tuple[int, ...]:
    out = []
    while block >= 0:
        out.append(block)
        block = fact.blocks[block].parent
    return tuple(out)


def _always(fact: Function, block: int, around: int) -> bool:
    """Reached whenever the attempt was: in its own block or one around it, or in a plain `with` there."""
    while block not in _up(fact, around):
        if fact.blocks[block].kind in _BLOCKS:
            return False
        block = fact.blocks[block].parent
    return True


def _is_version(program: Program, target: str) -> bool:
    leaf = target.rpartition(".")[2].lower().strip("_")
    return "version" in leaf or (leaf in program.words["versions"] and "step" not in leaf and leaf != "generation")
