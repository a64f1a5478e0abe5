"""Are records passed over as too old, or rollouts left behind at a time limit, without a count? (GYR313)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Call
from gyrecheck.program.program import ACTING, Program, readable, roots
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.handler_end import under
from gyrecheck.verdict.shapes.suspect import Suspect, at_call


def left_behind(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Records dropped by their age and tasks cut off by a time limit, uncounted."""
    for number in program.doing("carrier.read", "buffer.take", hints=True):
        yield from _too_old(program, number)
    for number in program.calling(frozenset({"wait"})):
        yield from _unfinished(program, number)


def _too_old(program: Program, number: int) -> Iterator[Suspect]:
    """`if row.version < oldest: continue` where records are taken, and nothing in the branch."""
    fact = program.tree.functions[number].fact
    for leave in fact.exits:
        block = fact.blocks[leave.block]
        loop = program.loop_of(number, leave.block)
        if leave.kind != "continue" or block.kind != "then" or loop < 0 or not _about_age(program, number, leave.block):
            continue
        spoken = [c for c in fact.calls if under(fact, c.block, leave.block) and c.name.rpartition(".")[2] not in {"debug", "len", "str"}]
        inside = bool(spoken) or any(under(fact, b.block, leave.block) for b in fact.binds)
        taken = [at for at, _ in program.own(number, "carrier.read", "buffer.take", hints=True) if under(fact, fact.calls[at].block, loop)]
        if inside or not taken or _counted(program, number, loop):
            continue
        call = fact.calls[taken[0]]
        yield Suspect(
            "GYR313", number, leave.line, leave.column, f"a record of `{readable(call)}` that is too old is passed over without a count",
            leave.line, leave.column + 8,
            evidence=(program.place(number, block.line, "dropped when this holds", "because"),
                      program.place(number, call.line, f"it was taken here: {readable(call)}", "because", call.column + 1)),
            hint="count the drop with its reason", side="training", key="too old",
        )  # fmt: skip


def _about_age(program: Program, number: int, block: int) -> bool:
    """The test compares the version of a record."""
    held = program.tree.functions[number].fact.blocks[block]
    leaves = [
        str(a).rstrip("]").rpartition("[")[2].rpartition(".")[2].lower()
        for a in held.detail
        if isinstance(a, str) and not a.startswith("=")
    ]
    versions = [leaf for leaf in leaves if program.words.field(leaf) == "version" or leaf in program.words["versions"]]
    aged = any(w in leaf for leaf in leaves for w in ("staleness", "lag", "age_of", "off_policy"))
    return bool(versions or aged) and any(op in held.op for op in ("<", ">"))


def _counted(program: Program, number: int, loop: int) -> bool:
    """The loop keeps a count of what came or went in some other way."""
    fact = program.tree.functions[number].fact
    return any(b.form == "+=" and under(fact, b.block, loop) and program.words.has("counts", b.target) for b in fact.binds)


def _unfinished(program: Program, number: int) -> Iterator[Suspect]:
    """`done, pending = await asyncio.wait(tasks, timeout=...)`: what is pending is cancelled or forgotten, and nobody knows how much it was."""
    fact = program.tree.functions[number].fact
    for at, call in enumerate(fact.calls):
        if call.name.rpartition(".")[2] != "wait" or not any(k == "timeout" and v != ("=None",) for k, v in call.keywords):
            continue
        rest = next((b.target for b in fact.binds if at in b.value and b.form == "1/2"), "")
        if not rest or not _samples(program, number) or "evaluation" in program.region(number) or _waits_again(program, number, call):
            continue
        later = [c for c in fact.calls if c.order > call.order]
        told = any(rest in arg for c in later for arg in (*c.args, *(v for _, v in c.keywords)))
        kept = any(rest in b.value and b.form != "for" for b in fact.binds) or any(rest in item for e in fact.exits for item in e.items)
        asked = any(rest in b.detail for b in fact.blocks if b.kind in {"then", "while"})
        counted = any(b.form == "+=" and b.order > call.order for b in fact.binds)
        if told or kept or asked or counted:
            continue
        yield at_call(
            program, number, at, "GYR313", f"what `{readable(call)}` leaves in `{rest}` at the time limit is gone without a count",
            evidence=(*(program.place(number, c.line, f"only these go on: {readable(c)}", "because", c.column + 1) for c in later if c.name.endswith(".result")),),
            hint="count what did not finish, and hand its prompts out again or drop the whole group", side="sampling", key=rest,
        )  # fmt: skip


def _waits_again(program: Program, number: int, call: Call) -> bool:
    """The next turn of the loop waits for the same tasks: nothing in it puts others in their place."""
    loop = program.loop_of(number, call.block)
    fact = program.tree.functions[number].fact
    awaited = set(roots(call.args[0])) if call.args else set()
    changed = {root for b in fact.binds if program.within(number, b.block, loop) for root in roots((b.target,))}
    return loop >= 0 and bool(awaited) and not awaited & changed


def _samples(program: Program, number: int) -> bool:
    """A sample is made by the function, or by a task that it starts."""
    if program.has(number, *ACTING, "reward.score", full=True):
        return True
    return any(program.has(e.callee, *ACTING, "reward.score", full=True) for e in program.calls.edges[number])
