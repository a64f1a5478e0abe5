"""Does a broad handler around sampling or handing over go on as if nothing had happened? (GYR311, and GYR312 at the store).

A handler is in order when it is narrow, raises, leaves with a count or a loud word, or marks the record as failed. When it falls
through and a record is stored afterwards, the record may carry the defaults of fields that were never measured.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Function
from gyrecheck.program.flow import prefixes
from gyrecheck.program.program import ACTING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.handler_end import counts, ends_or_measures, first_column, last_name, leaving, lets_go, loud, marked, under
from gyrecheck.verdict.shapes.suspect import Suspect, at_bind, at_call

_WATCHED = (*ACTING, "reward.score", "policy.act", "buffer.put", "carrier.write")


def swallowed(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every handler that hides a failed sample, and every store that hands over what was never measured."""
    for fn in program.functions:
        fact = fn.fact
        handlers = [at for at, block in enumerate(fact.blocks) if block.kind == "except"]
        if not handlers or "evaluation" in program.region(fn.number):
            continue
        for at in handlers:
            yield from _handler(program, fn.number, at)


def _handler(program: Program, number: int, at: int) -> Iterator[Suspect]:
    fact = program.tree.functions[number].fact
    block = fact.blocks[at]
    if block.detail and not any(str(kind) in program.words["broad"] for kind in block.detail):
        return
    risky = _risky(program, number, block.link)
    if risky is None or (risky[1] in {"buffer.put", "carrier.write"} and _measures(program, number)):
        return
    leaves = leaving(fact, at)
    if "raise" in leaves or marked(program, fact, at) or _by_the_way(program, number, at) or _passed_on(fact, at):
        return
    counted = counts(program, number, at)
    call, role = risky
    first = program.call(number, call)
    around = program.place(number, first.line, f"{role} may fail here: {readable(first)}", "because", first.column + 1)
    if leaves:
        gone = lets_go(program, number, at, leaves)
        if counted or gone is None or loud(program, number, at):
            return
        yield Suspect(
            "GYR311", number, block.line, first_column(program, number, at), f"a broad `except` around `{readable(first)}` "
                f"drops the sample without a count ({gone})",
            evidence=(around,), hint="catch what can happen, count it as a drop with its reason",
            key=f"except>{first.name}", side="sampling",
        )  # fmt: skip
        return
    stored = _stored_after(program, number, at)
    defaults = _given_in(program, fact, at)
    if stored is None and not defaults and ends_or_measures(program, number, at, call, _SAYING):
        return
    if stored is None and (counted or (loud(program, number, at) and not defaults)):
        return
    evidence = [around]
    if stored is not None:
        put = program.call(number, stored[0])
        evidence.append(program.place(number, put.line, f"the sample is stored all the same: {readable(put)}", "because", put.column + 1))
    then = "and the sample is stored all the same" if stored is not None else "and goes on"
    yield Suspect(
        "GYR311", number, block.line, first_column(program, number, at), f"a broad `except` around `{readable(first)}` "
            f"catches every error {then}",
        evidence=tuple(evidence), hint="catch what can happen, count it as a drop with its reason, and leave the record out",
        key=f"except>{first.name}",
        side="sampling",
    )  # fmt: skip
    if stored is not None:
        yield from _unmeasured(program, number, at, stored, defaults)
    else:
        yield from _given_back(program, number, at)


def _measures(program: Program, number: int) -> bool:
    """A method of a class that keeps figures about the run or the machine: what it stores are no samples."""
    fn = program.tree.functions[number]
    return fn.cls >= 0 and program.tree.classes[fn.cls].fact.name.lower().endswith(
        ("monitor", "logger", "tracker", "profiler", "metrics", "telemetry", "dashboard")
    )


_CLOSING = frozenset(
    {
        "__del__",
        "__exit__",
        "__aexit__",
        "close",
        "shutdown",
        "stop",
        "cleanup",
        "teardown",
        "terminate",
        "finalize",
        "disconnect",
        "destroy",
    }
)
_SAYING = frozenset(
    {
        "debug",
        "info",
        "print",
        "log",
        "warning",
        "warn",
        "error",
        "exception",
        "critical",
        "str",
        "repr",
        "type",
        "format",
        "isinstance",
        "print_exc",
        "write",
    }
)


def _by_the_way(program: Program, number: int, at: int) -> bool:
    """Closing down, a failure while another one is being handled, and a script that says it and ends: no sample is at stake."""
    fn = program.tree.functions[number]
    if fn.fact.name in _CLOSING:
        return True
    if any(fn.fact.blocks[b].kind == "except" for b in program.blocks_up(number, fn.fact.blocks[at].parent)):
        return True
    spoken = any(under(fn.fact, c.block, at) and c.name.rpartition(".")[2] in _SAYING for c in fn.fact.calls)
    return fn.fact.name == "<module>" and spoken and program.loop_of(number, at) < 0


def _passed_on(fact: Function, at: int) -> bool:
    """The exception itself goes on: into a queue, a future, a list of failures, or the result that stands for the failed one."""
    name = next((b.target for b in fact.binds if b.form == "except" and b.block == at), "")
    if not name:
        return False
    for index, call in enumerate(fact.calls):
        last = call.name.rpartition(".")[2]
        passes = under(fact, call.block, at) and last not in _SAYING and call.name != "{}" and not call.name.startswith(("log", "self.log"))
        if passes and any(path.split(".")[0].split("[")[0] == name for path in _given(fact, index)):
            return True
    return False


def _risky(program: Program, number: int, block: int) -> tuple[int, str] | None:
    """The first call of the try body that samples, scores or hands over, by itself or through what it calls."""
    fact = program.tree.functions[number].fact
    for at, call in enumerate(fact.calls):
        if not program.within(number, call.block, block):
            continue
        role = program.role(number, at)
        if role in _WATCHED and not (role == "carrier.write" and program.words.has("counts", call.name)):
            return at, role
    for edge in program.calls.edges[number]:
        if edge.call >= 0 and edge.kind in {"call", "override"} and program.within(number, fact.calls[edge.call].block, block):
            deep = program.has(edge.callee, "env.step", "policy.generate", "reward.score", full=True)
            if deep and not program.has(edge.callee, "loss.backward", full=True):
                return edge.call, deep
    return None


def _stored_after(program: Program, number: int, at: int) -> tuple[int, str] | None:
    """The first call after the handler that stores a record which existed before or was filled in the try body."""
    fact = program.tree.functions[number].fact
    end = fact.blocks[at].end_order
    attempt = fact.blocks[at].link
    touched = {
        b.target.split(".")[0].split("[")[0] for b in fact.binds
        if under(fact, b.block, attempt) and b.target != "self"
    } | {b.target.split(".")[0].split("[")[0] for b in fact.binds if under(fact, b.block, at) and b.form == "="}  # fmt: skip
    for index, call in enumerate(fact.calls):
        if call.order <= end or under(fact, call.block, at):
            continue
        role = program.role(number, index)
        last = call.name.rpartition(".")[2]
        if role not in {"buffer.put", "carrier.write"} and last not in program.words["stores"]:
            continue
        for atom in _given(fact, index):
            root = atom.split(".")[0].split("[")[0]
            if root in touched and root != "self":
                return index, root
    for leave in fact.exits:
        if leave.kind in {"return", "yield"} and leave.order > end:
            return None
    return None


def _given(fact: Function, index: int) -> list[str]:
    """The paths in a call's arguments, those of nested displays and calls too."""
    call = fact.calls[index]
    out: list[str] = []
    for atom in (*(a for arg in call.args for a in arg), *(a for _, v in call.keywords for a in v)):
        if isinstance(atom, int):
            out.extend(_given(fact, atom))
        elif not atom.startswith(("=", "<")):
            out.append(atom)
    return out


def _given_in(program: Program, fact: Function, at: int) -> list[str]:
    """Fields that the handler itself sets to a constant."""
    return [
        b.target for b in fact.binds
        if under(fact, b.block,
        at) and b.value and all(isinstance(a, str) and a.startswith("=") for a in b.value) and program.words.field(last_name(b.target))
    ]  # fmt: skip


def _given_back(program: Program, number: int, at: int) -> Iterator[Suspect]:
    """A field that the handler sets to a constant and the function then gives back in a record, as if measured."""
    fact = program.tree.functions[number].fact
    end = fact.blocks[at].end_order
    for bind in fact.binds:
        if not under(fact, bind.block, at) or bind.target not in _given_in(program, fact, at) or not bind.target.isidentifier():
            continue
        if bind.value == ("=None",):
            continue
        held = [c for c in fact.calls if c.order > end and c.name == "{}" and any(bind.target in v for _, v in c.keywords)]
        if held:
            yield at_bind(
                number, bind, "GYR312", f"`{bind.target}` is {_shown(bind.value)} after an "
                    "error, and the record is given back as if measured",
                evidence=(program.place(number, held[0].line, "the record", "because", held[0].column + 1),),
                hint="give no record back, or mark it as failed, and count it", side="sampling",
            )  # fmt: skip


def _unmeasured(program: Program, number: int, at: int, stored: tuple[int, str], defaults: list[str]) -> Iterator[Suspect]:
    fact = program.tree.functions[number].fact
    index, root = stored
    attempt = fact.blocks[at].link
    measured = sorted(
        {
            last_name(b.target)
            for b in fact.binds
            if under(fact, b.block, attempt) and b.target != root and any(p == root for p in prefixes(b.target))
        }
    )
    known = _constructed(program, number, root, fact.blocks[attempt].order)
    fields = [f"{name} = {known[name]}" if name in known else name for name in measured] or [
        f"{last_name(d)} (set in the handler)" for d in defaults
    ]
    if not fields:
        return
    call = fact.calls[index]
    yield at_call(
        program, number, index, "GYR312", f"`{readable(call)}` may store `{root}` with defaults as if measured: {', '.join(fields)}",
        evidence=(program.place(number, fact.blocks[at].line, "after an error the fields keep their defaults", "because"),),
        hint="do not store the record; count it as dropped, with the reason", side="sampling",
    )  # fmt: skip


def _constructed(program: Program, number: int, root: str, order: int) -> dict[str, str]:
    """The defaults of a record made before the try body: of its dataclass, or of its dict display."""
    fact = program.tree.functions[number].fact
    out: dict[str, str] = {}
    for bind in fact.binds:
        if bind.target != root or bind.order > order:
            continue
        for atom in bind.value:
            if not isinstance(atom, int):
                continue
            call = fact.calls[atom]
            if call.name == "{}":
                out.update({k: _shown(v) for k, v in call.keywords if not any(isinstance(a, str) and not a.startswith("=") for a in v)})
            target = program.resolver.callee(number, atom)
            if target is not None and target.kind == "class":
                body = program.tree.functions[program.tree.classes[int(target.ref)].body].fact
                out.update({b.target: _shown(b.value) for b in body.binds if b.form == "="})
    return out


def _shown(atoms: tuple[str | int, ...]) -> str:
    first = next((str(a)[1:] for a in atoms if isinstance(a, str) and a.startswith("=")), "")
    return first or "empty"
