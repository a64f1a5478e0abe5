"""Is the old log-prob the one of the policy that acted, and of the action that is stored? (GYR315, GYR407)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Atoms, Bind, Call, Function
from gyrecheck.program.flow import prefixes, reach
from gyrecheck.program.program import ACTING, LEARNING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.ratio_sides import aside
from gyrecheck.verdict.shapes.steps import BACK, STEP
from gyrecheck.verdict.shapes.suspect import Suspect, at_bind, at_call

_CLIPS = frozenset({"clamp", "clip", "clamp_", "clip_", "round", "minimum", "maximum"})
_KEEPS = frozenset({"append", "add", "put", "push", "store", "insert", "put_nowait", "add_transition", "record"})

_PLACES = frozenset({"where", "nonzero", "argwhere", "flatnonzero"})
_AS_ARRAY = (".numpy", ".cpu", ".detach", ".float")

_LOGPROB = frozenset({"log_prob"})


def logprob_source(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Old log-probs taken from the policy that is being trained, and actions changed between their log-prob and the record."""
    asked = ((_recomputed, program.doing(BACK)), (_itself, program.doing(BACK)), (_changed, program.calling(_LOGPROB)))
    for question, numbers in asked:
        for number in numbers:
            if not program.functions[number].fact.name.startswith("test"):
                yield from question(program, number)


# ---- GYR407


def _recomputed(program: Program, number: int) -> Iterator[Suspect]:
    """Inside the passes over one batch, `old` and `new` are the same call on the same rows: the ratio is 1 on every pass."""
    fact = program.tree.functions[number].fact
    if not program.own(number, BACK) or not program.own(number, STEP, "scaler.step"):
        return
    taken = [fact.calls[a] for a, _ in program.own(number, STEP, "scaler.step")]
    for at, call in enumerate(fact.calls):
        loops = program.loops_of(number, call.block)
        if not loops or not _frozen(program, number, at) or not call.args or call.result == -2:
            continue
        if aside(program, number, at):
            continue
        twin = next(
            (i for i, c in enumerate(fact.calls) if i != at and c.name == call.name and _same(c, call) and not _frozen(program, number, i)
             and program.loops_of(number, c.block) == loops), None
        )  # fmt: skip
        if twin is None or not any(loops[0] in program.loops_of(number, s.block) for s in taken):
            continue
        if not _ratio(fact, at, twin) or not any(_counts_passes(program, fact, loop) for loop in loops):
            continue
        other = fact.calls[twin]
        yield at_call(
            program, number, at, "GYR407", f"`{readable(call)}` is the old log-prob and comes from the policy being trained, anew on every pass: "
                "the ratio is always 1",
            evidence=(program.place(number, other.line, f"the new log-prob is the same call: {readable(other)}", "because", other.column + 1),),
            side="training", hint="take the log-prob that the sampler recorded, or compute it once before the passes",
        )  # fmt: skip


def _itself(program: Program, number: int) -> Iterator[Suspect]:
    """`exp(logp - logp.detach())` in passes over one batch: from the second pass on the ratio should not be 1."""
    fact = program.tree.functions[number].fact
    taken = [fact.calls[a] for a, _ in program.own(number, STEP, "scaler.step")]
    for at, call in enumerate(fact.calls):
        if call.name.rpartition(".")[2] != "exp":
            continue
        atoms = call.receiver or (call.args[0] if call.args else ())
        path = next((a for a in atoms if isinstance(a, str) and not a.startswith("=")), "")
        cut = [
            a
            for a in atoms
            if isinstance(a, int) and program.role(number, a) == "grad.cut" and fact.calls[a].name.rpartition(".")[0] == path
        ]
        if not path or not cut or len(atoms) != 2:
            continue
        for loop in program.loops_of(number, call.block):
            if any(loop in program.loops_of(number, s.block) for s in taken) and _same_rows(program, number, loop):
                yield at_call(
                    program, number, at, "GYR407", f"`{path}` is compared with itself, and the same rows are walked again and again: the ratio "
                        "is always 1 and clipping never acts",
                    evidence=(program.place(number, fact.blocks[loop].line, "passes over the same rows", "because"),),
                    side="training", hint="compare with the log-prob that the sampler recorded", key=path,
                )  # fmt: skip
                return


def _same_rows(program: Program, number: int, loop: int) -> bool:
    """A loop that counts passes by name, and nothing in the function draws other rows."""
    fact = program.tree.functions[number].fact
    if not _counts_passes(program, fact, loop) or program.own(number, *ACTING, "buffer.take", "carrier.read"):
        return False
    return any(program.words.has("reuse", path) for atom in fact.blocks[loop].detail for path in _read(fact, atom))


def _frozen(program: Program, number: int, at: int) -> bool:
    """Without gradient: under a guard, or detached at once."""
    fact = program.tree.functions[number].fact
    if program.unrecorded(number, fact.calls[at].block):
        return True
    return any(program.role(number, i) == "grad.cut" and (at in c.receiver or c.receiver == (at,)) for i, c in enumerate(fact.calls))


def _same(one: Call, other: Call) -> bool:
    return one.args == other.args and one.keywords == other.keywords and all(isinstance(a, str) for arg in one.args for a in arg)


def _ratio(fact: Function, old: int, new: int) -> bool:
    """Both flow into one exponential."""
    a, b = reach(fact, [old]), reach(fact, [new])
    return any(
        c.name.rpartition(".")[2] == "exp" and (i in a.calls or i in a.taken) and (i in b.calls or i in b.taken)
        for i, c in enumerate(fact.calls)
    )


def _counts_passes(program: Program, fact: Function, loop: int) -> bool:
    """A loop over a mere count: the same rows are walked more than once."""
    del program
    block = fact.blocks[loop]
    return block.kind == "for" and any(isinstance(a, int) and fact.calls[a].name in {"range", "trange"} for a in block.detail)


# ---- GYR315


def _changed(program: Program, number: int) -> Iterator[Suspect]:
    """The log-prob is taken, then the action is clipped, and the clipped one is stored beside the log-prob of the other."""
    fact = program.tree.functions[number].fact
    for at, call in enumerate(fact.calls):
        if call.name.rpartition(".")[2] != "log_prob" or len(call.args) != 1 or len(call.args[0]) != 1:
            continue
        action = call.args[0][0]
        if not isinstance(action, str) or action.startswith("="):
            continue
        clip = next((b for b in fact.binds if b.order > call.order and (_clips(fact, b, action) or _replaces(fact, b, action))), None)
        if clip is None or program.loop_of(number, clip.block) != program.loop_of(number, call.block):
            continue
        flow = reach(fact, [at])
        for index, store in enumerate(fact.calls):
            head, _, last = store.name.rpartition(".")
            if store.order < clip.order or not ((head and last in _KEEPS) or _is_row(program, store, clip.target)):
                continue
            paths = _paths(fact, index)
            keeps_logp = any(p.split(".")[0] in {x.split(".")[0] for x in flow.paths} for p in paths if p != clip.target)
            whole = action in paths and action != clip.target
            if keeps_logp and clip.target in paths and not whole:
                yield at_call(
                    program, number, index, "GYR315", f"{_said(store)} stores `{clip.target}` after it was changed, with the log-prob of the "
                        "action before: the trainer's ratio is off",
                    evidence=(program.place(number, call.line, "the log-prob is of this action", "because", call.column + 1),
                              program.place(number, clip.line, "the action is changed here", "because", clip.column + 1)),
                    side="sampling", hint="store the action that the log-prob is of, and clip only what the environment is given",
                )  # fmt: skip
                return
        learns = program.has(number, *LEARNING, full=True) and not program.own(number, *ACTING)
        row = _row(fact, clip, {p for p in flow.paths if p != clip.target}, action) if not learns else None
        if row is not None:
            yield at_bind(
                number, row, "GYR315", f"`{row.target}` keeps `{clip.target}` after it was changed, beside the log-prob of the action before: the "
                    "trainer's ratio is off",
                evidence=(program.place(number, call.line, "the log-prob is of this action", "because", call.column + 1),
                          program.place(number, clip.line, "the action is changed here", "because", clip.column + 1)),
                side="sampling", hint="store the action that the log-prob is of, and clip only what the environment is given",
            )  # fmt: skip
            return


def _said(store: Call) -> str:
    return "the row" if store.name in {"{}", "dict"} else f"`{readable(store)}`"


def _is_row(program: Program, call: Call, changed: str) -> bool:
    """A mapping in which the changed value is called the action."""
    return call.name in {"{}", "dict"} and any(changed in value and program.words.field(key) == "action" for key, value in call.keywords)


def _row(fact: Function, clip: Bind, logps: set[str], action: str) -> Bind | None:
    """The binding that puts the changed action at an index of an array, where another puts the log-prob; none when the draw is kept, too."""
    rows = [b for b in fact.binds if b.target.endswith("]") and b.order > clip.order and b.form == "="]
    if not any(isinstance(a, str) and a in logps for b in rows for a in b.value):
        return None
    if action != clip.target and any(action in b.value for b in rows):
        return None
    return next((b for b in rows if clip.target in b.value), None)


def _clips(fact: Function, bind: Bind, action: str) -> bool:
    for atom in bind.value:
        if isinstance(atom, int):
            call = fact.calls[atom]
            head, _, last = call.name.rpartition(".")
            given: Atoms = tuple(a for arg in call.args for a in arg)
            through = {
                fact.calls[a].name.rpartition(".")[0] for a in given if isinstance(a, int) and fact.calls[a].name.endswith(_AS_ARRAY)
            }
            if last in _CLIPS and (head == action or action in given or action in through):
                return True
            if (
                isinstance(call.receiver, tuple)
                and any(isinstance(a, int) for a in call.receiver)
                and last in {"numpy", "cpu", "item", "tolist"}
            ):
                return any(_clips(fact, bind._replace(value=(a,)), action) for a in call.receiver if isinstance(a, int))
    return False


def _replaces(fact: Function, bind: Bind, action: str) -> bool:
    """The action's own name is bound to something that is not made of it: another draw, a random or a scripted one."""
    if bind.target != action or bind.form == "+=" or not bind.value or bind.form in {"for", "with", "except", "del"}:
        return False
    if any(isinstance(a, int) and fact.calls[a].name.rpartition(".")[2] in _PLACES for a in bind.value):
        return False  # where a comparison holds, whose sides are not kept: it may be the action in another form
    return not any(action in _read(fact, atom) for atom in bind.value)


def _read(fact: Function, atom: str | int) -> set[str]:
    """Every path that goes into an atom."""
    if isinstance(atom, str):
        return set(prefixes(atom))
    call = fact.calls[atom]
    inner = (*call.receiver, *(a for arg in call.args for a in arg), *(a for _, v in call.keywords for a in v))
    return set(prefixes(call.name)).union(*(_read(fact, a) for a in inner)) if inner else set(prefixes(call.name))


def _paths(fact: Function, index: int) -> set[str]:
    call = fact.calls[index]
    out: set[str] = set()
    for atom in (*(a for arg in call.args for a in arg), *(a for _, v in call.keywords for a in v)):
        if isinstance(atom, int):
            out |= _paths(fact, atom)
            out |= {fact.calls[atom].name.rpartition(".")[0]} - {""}
        elif not atom.startswith(("=", "<")):
            out.add(atom)
    return out
