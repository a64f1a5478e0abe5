"""Is the observation that is stored beside an action the one that came after it? (GYR314).

`obs, rew, … = env.step(act)` and only then `obs_list.append(obs)`: the name holds the successor by then, and what the action was chosen from
is in no row. Asked of lists of the function's own only: how a store places what it is given is its own affair. Silent where the rows are
arrivals, which begin with the observation of a reset, and where a name says that it is the next one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gyrecheck.model.facts import Call, Function
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, at_call, in_tests

_NEXT = ("next", "succ", "nxt", "after", "new", "final", "last", "arriv", "frame", "render", "video", "hist", "seen", "log", "image", "img",
         "gif", "pixel", "screen", "plot", "path", "target", "label", "y_", "observed", "outcome", "result", "reached", "prime")  # fmt: skip


_COPIES = frozenset({"copy", "clone", "deepcopy", "concatenate", "concat", "cat", "hstack", "stack", "append", "array", "asarray", "as_tensor", "tensor", "from_numpy", "detach"})  # fmt: skip
_MADE_OF_IT = re.compile(r"encod|process|normal|embed|featur|feats?$|phi$|flatten|ravel|reshape|transform|pad|obs|state|tensor|^[xz]$")


def obs_after_step(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every such append in a loop that acts."""
    for number in program.doing("env.step"):
        fact = program.functions[number].fact
        taken = [at for at, _ in program.own(number, "env.step")]
        if len(taken) != 1 or "evaluation" in program.region(number) or in_tests(program, number):
            continue
        step = fact.calls[taken[0]]
        loop = program.loop_of(number, step.block)
        gives = {int(b.form.partition("/")[0]): b.target for b in fact.binds if taken[0] in b.value and b.form.endswith(("/4", "/5"))}
        obs, reward = gives.get(0, "_"), gives.get(1, "_")
        if loop < 0 or step.block != loop or obs == "_" or reward == "_" or _is_next(obs) or not _acts_on(program, number, loop, step, obs):
            continue
        lists = {b.target for b in fact.binds if b.op == "[]" and not b.value and not program.loops_of(number, b.block)}
        kept = [(at, c) for at, c in enumerate(fact.calls) if _keeps(program, c) and obs in _given(fact, c)]
        if any(c.name.rpartition(".")[0] not in lists for _, c in kept):
            continue
        if (
            not kept
            or any(c.order < step.order or c.block != loop for _, c in kept)
            or any(obs in b.value for b in fact.binds if b.form == "=")
        ):
            continue
        actions = _given(fact, step)
        if _copied_before(program, number, loop, step, obs):
            continue
        beside = [c for c in fact.calls if c.block == loop and _keeps(program, c) and actions & _given(fact, c)]
        rewarded = any(reward in _given(fact, c) for c in fact.calls if c.block == loop and _keeps(program, c))
        at, call = kept[0]
        if beside and rewarded and not _is_next(call.name) and not any(_is_next(k) for k, v in call.keywords if obs in v):
            yield at_call(
                program, number, at, "GYR314", f"`{readable(call)}` stores `{obs}` after the step has overwritten it: beside the action stands the "
                    "observation that came after it",
                evidence=(program.place(number, step.line, f"it is overwritten here: {readable(step)}", "because", step.column + 1),),
                hint="store it before the step, or keep the successor under another name", side="sampling", key=obs,
            )  # fmt: skip


def _copied_before(program: Program, number: int, loop: int, step: Call, obs: str) -> bool:
    """What the action was chosen from is copied or joined before the step, and that is stored."""
    fact = program.functions[number].fact
    copies = {
        b.target for b in fact.binds if b.order < step.order and program.within(number, b.block, loop) for a in b.value
        if isinstance(a, int) and _copies(fact.calls[a], b.target) and obs in _given(fact, fact.calls[a]) | {fact.calls[a].name.rpartition(".")[0]}
    }  # fmt: skip
    return any(_keeps(program, c) and copies & _given(fact, c) for c in fact.calls)


def _copies(call: Call, target: str) -> bool:
    last = call.name.rpartition(".")[2].lower()
    return last in _COPIES or bool(_MADE_OF_IT.search(last) or _MADE_OF_IT.search(target.lower()))


def _is_next(name: str) -> bool:
    own = name.removesuffix(".append").rpartition(".")[2]
    return any(word in name.lower() for word in _NEXT) or own.endswith(("_", "2", "1", "prime", "_p", "sp"))


def _keeps(program: Program, call: Call) -> bool:
    head, _, last = call.name.rpartition(".")
    return bool(head) and last in program.words["stores"]


def _given(fact: Function, call: Call) -> set[str]:
    """The names in a call's arguments, conversions and rows looked through."""
    out: set[str] = set()
    for atom in (*(a for arg in call.args for a in arg), *(a for _, v in call.keywords for a in v)):
        if isinstance(atom, int):
            inner = fact.calls[atom]
            out |= _given(fact, inner) | {inner.name.rpartition(".")[0]}
        elif not atom.startswith("="):
            out.add(atom)
    return out - {""}


def _acts_on(program: Program, number: int, loop: int, step: Call, obs: str) -> bool:
    """In the loop, before the step, something is computed from the observation, as an action is."""
    fact = program.functions[number].fact
    return any(
        c.order < step.order and program.loop_of(number, c.block) == loop and obs in _given(fact, c) and not _keeps(program, c)
        for c in fact.calls
    )
