"""Are samples lost without a word, or matched with the wrong rows? (GYR313, GYR314).

GYR313: failures filtered out of gathered results, tasks whose failure nobody can see, a full queue that swallows the record.
GYR314: a list from which rows were left out is walked beside the whole one.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Bind, Call, Function
from gyrecheck.program.program import ACTING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.full_queue import full_queue
from gyrecheck.verdict.shapes.suspect import Suspect, at_bind, at_call

_SAMPLES = (*ACTING, "reward.score", "carrier.write", "buffer.put")
_GATHERS, _ZIPS = frozenset({"gather"}), frozenset({"zip"})
_SPAWNS = frozenset({"create_task", "ensure_future", "submit"})


def lost_records(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every place where a sample can vanish uncounted, and every pairing of a thinned list with a whole one."""
    for names, question in ((_GATHERS, _filtered), (_SPAWNS, _unseen), (_ZIPS, _misaligned)):
        for number in program.calling(names):
            if not _aside(program, number):
                yield from question(program, number)
    for number in program.doing("carrier.write"):
        if not _aside(program, number):
            yield from full_queue(program, number)


def _aside(program: Program, number: int) -> bool:
    return "evaluation" in program.region(number) or program.functions[number].fact.name.startswith("test")


# ---- GYR313


def _filtered(program: Program, number: int) -> Iterator[Suspect]:
    """`gather(..., return_exceptions=True)`, and then only the results that are none are kept."""
    fact = program.tree.functions[number].fact
    for at, call in enumerate(fact.calls):
        if call.name.rpartition(".")[2] != "gather" or not any(k == "return_exceptions" and v == ("=True",) for k, v in call.keywords):
            continue
        if not program.has(number, *_SAMPLES, full=True) and not _of_rewards(program, number):
            continue
        names = {b.target for b in fact.binds if at in b.value and b.form == "="}
        tests = [c for c in fact.calls if c.name == "isinstance" and c.order > call.order and _fails(c)]
        thinned = [
            b for b in fact.binds
            if b.op == "[]" and b.order > call.order and any(_comp(fact, b, c) and fact.blocks[c.block].op == "if" for c in tests)
            and any(n in fact.blocks[c.block].detail for n in names for c in tests if _comp(fact, b, c))
        ]  # fmt: skip
        swapped = _swapped(fact, tests)
        if swapped is not None and not _noted(program, fact, call.order):
            yield at_bind(
                number, swapped, "GYR312", f"`{swapped.target}` holds a made-up number wherever `{readable(call)}` returned a failure: "
                    "it is trained on as if measured",
                evidence=(program.place(number, call.line, "failures are returned as results here", "because", call.column + 1),),
                hint="leave the failed ones out with a count, mask them, or raise the first one", side="sampling", key=call.name,
            )  # fmt: skip
            continue
        if len(tests) != 1 or not thinned or _noted(program, fact, call.order):
            continue
        yield at_bind(
            number, thinned[0], "GYR313", f"`{thinned[0].target}` keeps only what did not fail: the failures of "
                f"`{readable(call)}` are neither counted nor raised",
            evidence=(program.place(number, call.line, "failures are returned as results here", "because", call.column + 1),),
            hint="count the failures with their reason, or raise the first one", side="sampling", key=call.name,
        )  # fmt: skip


def _of_rewards(program: Program, number: int) -> bool:
    """The file speaks of rewards or advantages: what is gathered in it is trained on."""
    module = program.functions[number].module
    for fn in program.tree.functions_of(module):
        words = [*(b.target for b in fn.fact.binds), *(k for c in fn.fact.calls for k, _ in c.keywords)]
        if any(program.words.field(w.rpartition(".")[2]) in {"reward", "advantage"} for w in words):
            return True
    return False


def _swapped(fact: Function, tests: list[Call]) -> Bind | None:
    """`[0.0 if isinstance(r, Exception) else r for r in results]`, or the same as a loop that appends."""
    for test in tests:
        for bind in fact.binds:
            numbers = [a for a in bind.value if isinstance(a, str) and a.startswith("=") and a[1:2] in "-0123456789"]
            if bind.op == "[]" and _comp(fact, bind, test) and numbers and fact.blocks[test.block].op != "if" and len(bind.value) > 1:
                return bind
        then = next((i for i, b in enumerate(fact.blocks) if b.kind == "then" and any(isinstance(a, int) and fact.calls[a] is test for a in b.detail)), -1)  # fmt: skip
        if then < 0 or "not" in fact.blocks[then].op:
            continue
        for call in fact.calls:
            head, _, last = call.name.rpartition(".")
            plain = (
                call.args and all(isinstance(a, str) and a[:1] == "=" and a[1:2] in "-0123456789" for a in call.args[0]) and call.args[0]
            )
            if call.block == then and last == "append" and plain:
                return next((b for b in fact.binds if b.target == head), None)
        for bind in fact.binds:
            if bind.block == then and bind.target.endswith("]") and len(bind.value) == 1 and str(bind.value[0])[1:2] in "-0123456789":
                return bind
    return None


def _fails(call: Call) -> bool:
    return any("Exception" in str(a) or "Error" in str(a) for arg in call.args[1:] for a in arg)


def _comp(fact: Function, bind: Bind, call: Call) -> bool:
    """The call stands in the comprehension that the binding is given."""
    block = fact.blocks[call.block]
    return block.kind == "comp" and block.order < call.order <= bind.order and block.line <= bind.line + 1 and block.end_order <= bind.order


def _noted(program: Program, fact: Function, order: int) -> bool:
    """After that a count rises, a loud word falls, the size is compared, or something is raised."""
    for call in fact.calls:
        last = call.name.rpartition(".")[2]
        if call.order > order and (last in program.words["loud"] or last == "len" or program.words.has("counts", last)):
            return True
    if any(b.order > order and b.form == "+=" for b in fact.binds):
        return True
    return any(b.order > order and program.words.has("counts", b.target) for b in fact.binds) or any(
        e.kind == "raise" and e.order > order for e in fact.exits
    )


def _unseen(program: Program, number: int) -> Iterator[Suspect]:
    """A task is started and dropped: when it fails, its sample is gone and nothing tells."""
    fact = program.tree.functions[number].fact
    for at, call in enumerate(fact.calls):
        head, _, last = call.name.rpartition(".")
        if last not in _SPAWNS or call.result != -1 or not call.args:
            continue
        if last == "create_task" and head not in {"asyncio", "loop", "self.loop", "self._loop"}:
            continue  # a task group raises what its tasks raise
        target = _started(program, number, call)
        if target is None or not _samples(program, target) or _guards_itself(program, target):
            continue
        yield at_call(
            program, number, at, "GYR313", f"`{readable(call)}` starts `{program.name(target)}` and keeps nothing: a failure there is never seen",
            evidence=(program.place(target, program.functions[target].fact.line, "the sample is made here", "because"),),
            hint="keep the task and await it, or add a done-callback that counts and raises", side="sampling", key=program.name(target),
        )  # fmt: skip


def _started(program: Program, number: int, call: Call) -> int | None:
    for atom in call.args[0]:
        if isinstance(atom, int):
            target = program.resolver.callee(number, atom)
        else:
            target = program.resolver.path(number, atom) if not atom.startswith(("=", "<")) else None
        if target is not None and target.kind == "func":
            return int(target.ref)
    return None


def _samples(program: Program, number: int) -> bool:
    """The task makes or hands over a sample; one that cancels or closes does not."""
    name = program.functions[number].fact.name.lower()
    if any(word in name for word in ("cancel", "close", "stop", "shutdown", "abort", "clean")):
        return False
    return bool(program.has(number, *ACTING, "reward.score", full=True) or program.own(number, "carrier.write", "buffer.put"))


def _guards_itself(program: Program, number: int) -> bool:
    """The task handles its own failures."""
    blocks = program.functions[number].fact.blocks
    return any(b.kind == "except" for b in blocks)


# ---- GYR314


def _misaligned(program: Program, number: int) -> Iterator[Suspect]:
    fact = program.tree.functions[number].fact
    for at, call in enumerate(fact.calls):
        if call.name != "zip" or len(call.args) < 2:
            continue
        if any(k == "strict" and v == ("=True",) for k, v in call.keywords):
            continue  # raises
        known = [(str(arg[0]), *_origin(fact, str(arg[0]), call.order)) for arg in call.args if len(arg) == 1 and isinstance(arg[0], str)]
        for name, base, thin in known:
            whole = next((n for n, b, t in known if n != name and b == base and t is None), "")
            if thin is not None and whole and base:
                yield at_call(
                    program, number, at, "GYR314", f"`{name}` leaves rows of `{base}` out, `{whole}` does not: "
                        "zip pairs rows that do not belong together",
                    evidence=(program.place(number, thin.line, f"rows are left out here: {thin.target}", "because", thin.column + 1),),
                    hint="filter the rows first, then take the columns from the same list; zip(..., strict=True)", key=f"{name}>{whole}",
                )  # fmt: skip
                return


def _origin(fact: Function, name: str, order: int) -> tuple[str, Bind | None]:
    """The list that a list was made from, element by element, and the comprehension that left some out."""
    thin: Bind | None = None
    for _ in range(6):
        made = [b for b in fact.binds if b.target == name and b.order < order]
        if len(made) != 1 or made[0].op != "[]" or made[0].form != "=":
            return name, thin
        bind = made[0]
        comp = [b for b in fact.blocks if b.kind == "comp" and b.end_order <= bind.order and b.order < bind.order and b.line == bind.line]
        comp = comp or [b for b in fact.blocks if b.kind == "comp" and bind.line <= b.line and b.end_order == bind.order - 1]
        if len(comp) != 1 or len(comp[0].detail) != 1 or not isinstance(comp[0].detail[0], str):
            return name, thin
        if comp[0].op == "if":
            thin = bind
        name, order = comp[0].detail[0], bind.order
    return name, thin
