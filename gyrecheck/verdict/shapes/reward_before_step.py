"""Is a row stored before the environment is stepped, with the reward that the step before it gave? (GYR314).

`buf.store(obs, act, rew)` and only then `obs, rew, … = env.step(act)`: every reward stands beside the action after its own. Silent
where the row is one of arrivals (the end flag of that earlier step is in it, or the action of that step), where names say that the
reward is the previous one, where the reward is handed on again after the step, and where none is lost at an episode's end.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Atoms, Call, Function
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, at_call, in_tests

_EARLIER = ("prev", "last", "arriv", "incoming", "old")
_BRANCHES = frozenset({"then", "else", "except", "case", "tryelse"})


def reward_before_step(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every such store in a loop that acts."""
    for number in program.doing("env.step"):
        fact = program.tree.functions[number].fact
        taken = [at for at, _ in program.own(number, "env.step")]
        if len(taken) != 1 or "evaluation" in program.region(number) or in_tests(program, number):
            continue
        step = fact.calls[taken[0]]
        loop = program.loop_of(number, step.block)
        gives = {int(b.form.partition("/")[0]): b.target for b in fact.binds if taken[0] in b.value and b.form.endswith(("/4", "/5"))}
        reward = gives.get(1, "")
        if loop < 0 or not reward or reward.startswith("_") or _is_earlier(reward) or _in_branch(fact, step.block, loop):
            continue
        flags = {name for place, name in gives.items() if place > 1 and name != "_"}
        for at, call in enumerate(fact.calls):
            if not fact.blocks[loop].order < call.order < step.order or program.loop_of(number, call.block) != loop:
                continue
            if (
                _stores(program, number, at)
                and not _in_branch(fact, call.block, loop)
                and _is_shifted(fact, call, step, loop, reward, flags)
            ):
                yield at_call(
                    program, number, at, "GYR314", f"`{readable(call)}` stores `{reward}` before the step that gives it: "
                        "it is the reward of the action before",
                    evidence=(program.place(number, step.line, f"the reward of this action comes here: {readable(step)}", "because", step.column + 1),),
                    hint="store the row after the step, with the observation from before it", side="sampling", key=reward,
                )  # fmt: skip
                break


def _stores(program: Program, number: int, at: int) -> bool:
    head, _, last = program.call(number, at).name.rpartition(".")
    return program.role(number, at) == "buffer.put" or (bool(head) and last in program.words["stores"])


def _is_shifted(fact: Function, call: Call, step: Call, loop: int, reward: str, flags: set[str]) -> bool:
    """The row holds the reward as it was carried into this pass, and the action that was chosen in it and goes into the step."""
    start = fact.blocks[loop].order
    given = list(_given(fact, call, start))
    names = {path for path, _ in given}
    if reward not in names or flags & names or any(_is_earlier(path) or _is_earlier(key) for path, key in given):
        return False
    here = [b for b in fact.binds if b.order > start and b.order <= fact.blocks[loop].end_order]
    if any(b.target == reward and b.order < call.order for b in here):
        return False
    first = [b for b in fact.binds if b.target == reward and b.order < start]
    if not first or any("=None" in b.value for b in first):
        return False
    acts = {path for path, _ in _given(fact, step, start)} & names & {b.target for b in here if b.order < call.order}
    acts -= {b.target for b in here if b.form == "for"}
    if not acts or any(b.target in names and len(b.value) == 1 and b.value[0] in acts for b in here):
        return False
    return _is_lost(fact, loop, step, reward) and not _handed_on(fact, call, step, reward)


def _is_lost(fact: Function, loop: int, step: Call, reward: str) -> bool:
    """An episode's last reward is in no row: the name is set anew at the end, or each episode is a loop of its own."""
    head = fact.blocks[loop]
    anew = any(
        b.target == reward and step.order < b.order <= head.end_order and b.form == "=" and reward not in b.value
        and _in_branch(fact, b.block, loop) and all(isinstance(a, str) and a.startswith("=") for a in b.value)
        for b in fact.binds
    )  # fmt: skip
    outer = head.parent
    while outer >= 0 and fact.blocks[outer].kind not in {"for", "while"}:
        outer = fact.blocks[outer].parent
    each = outer >= 0 and any(b.target == reward and fact.blocks[outer].order < b.order < head.order for b in fact.binds)
    return anew or each or head.kind == "while"


def _handed_on(fact: Function, call: Call, step: Call, reward: str) -> bool:
    """After the step the reward goes into a call on the same store, or is written into a place of one."""
    holder = call.name.rpartition(".")[0]
    later = (
        c for c in fact.calls if c.order > step.order and (c.name.rpartition(".")[0] == holder or c.name.rpartition(".")[2] == "append")
    )
    if any(reward in (path for path, _ in _given(fact, c, step.order)) for c in later):
        return True
    return any(b.order > step.order and b.form == "=" and ("." in b.target or "[" in b.target) and reward in b.value for b in fact.binds)


def _given(fact: Function, call: Call, start: int) -> Iterator[tuple[str, str]]:
    """What stands in a call's arguments as itself, and under which key: `(path, key)`; rows and wrappers are looked into."""
    for key, atoms in (*(("", arg) for arg in call.args), *call.keywords):
        yield from _within(fact, atoms, key, start, call.order, 0)


def _within(fact: Function, atoms: Atoms, key: str, start: int, end: int, depth: int) -> Iterator[tuple[str, str]]:
    for atom in atoms:
        if isinstance(atom, int):
            inner = fact.calls[atom]
            last = inner.name.rpartition(".")[2]
            if last in {"{}", "dict"} or last[:1].isupper() or len(inner.args) == 1:
                for name, value in (*((key, arg) for arg in inner.args), *inner.keywords):
                    yield from _within(fact, value, name, start, end, depth + 1)
            if not inner.args and "." in inner.name:
                yield inner.name.rpartition(".")[0], key
            continue
        yield atom, key
        row = next((b for b in reversed(fact.binds) if b.target == atom and start < b.order < end), None)
        if row is not None and depth < 3 and _is_row(fact, row.value, row.op):
            yield from _within(fact, row.value, key, start, row.order, depth + 1)


def _is_row(fact: Function, atoms: Atoms, op: str) -> bool:
    """A dict, a tuple or a record is made."""
    if len(atoms) == 1 and isinstance(atoms[0], int):
        last = fact.calls[atoms[0]].name.rpartition(".")[2]
        return last in {"{}", "dict"} or last[:1].isupper()
    return op == "" and len(atoms) > 2  # a tuple


def _is_earlier(name: str) -> bool:
    lower = name.lower()
    return not lower.startswith(("=", "<")) and any(word in lower for word in _EARLIER)


def _in_branch(fact: Function, block: int, loop: int) -> bool:
    while block not in {loop, -1}:
        if fact.blocks[block].kind in _BRANCHES:
            return True
        block = fact.blocks[block].parent
    return False
