"""Do the fields of a record say what they are: ends told apart (GYR309), reward and return not exchanged (GYR308)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Atoms, Bind, Call, Function
from gyrecheck.model.finding import Severity
from gyrecheck.program.flow import Reached, reach
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, at_bind, at_call
from gyrecheck.verdict.shapes.time_limit import carried_into_reward

_RETURNS = frozenset({"return", "returns", "returns_to_go", "rtg", "discounted_return", "discounted_returns", "return_to_go"})
_REWARDS = frozenset({"reward", "rewards", "rew", "rews"})


def record_fields(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Merged end flags that are stored, and rewards stored as returns or the reverse."""
    for number in program.doing("env.step"):
        cls = program.functions[number].cls
        measures = "evaluation" in program.region(number) and not program.functions[number].fact.name.startswith("play")
        if not (cls >= 0 and program.calls.class_kind(cls) == "env") and not measures:
            yield from _merged(program, number)
    for fn in program.functions:
        yield from _exchanged(program, fn.number)


# ---- GYR309


def _merged(program: Program, number: int) -> Iterator[Suspect]:
    fact = program.functions[number].fact
    for at, _ in program.own(number, "env.step"):
        call = fact.calls[at]
        ends = _ends(fact, at, call)
        if ends is None or carried_into_reward(program, number, at, ends[1]):
            continue
        for bind in fact.binds:
            if ({*(a for a in bind.value if isinstance(a, str))} >= set(ends) and bind.op in {"or", "|", "+"}) or (
                len(bind.value) == 1 and isinstance(bind.value[0], int) and _joins(fact.calls[bind.value[0]], ends)
            ):
                yield from _kept(program, number, bind, ends, paths=(bind.target,))
        for index, other in enumerate(fact.calls):
            if other.name == "{}" and _handed_over(program, number, index):
                merged = [k for k, v in other.keywords if {a for a in v if isinstance(a, str)} >= set(ends)]
                if merged and not any(v in {(ends[0],), (ends[1],)} for _, v in other.keywords):
                    yield at_call(program, number, index, "GYR309", _said(ends, merged[0]), hint=_HINT, side="sampling")
            given = (*other.args, *(v for _, v in other.keywords))
            row = len(given) >= 4 and _rewarded(fact, at, given)
            if (
                (_stores(program, number, index) or row)
                and any(sorted(map(str, v)) == sorted(ends) for v in given)
                and not {(e,) for e in ends} & set(given)
            ):
                yield at_call(program, number, index, "GYR309", _said(ends, readable(other)), hint=_HINT, side="sampling")


_HINT = "store terminated and truncated apart: bootstrap the value at a time limit, and not at an end"


def _rewarded(fact: Function, at: int, given: tuple[Atoms, ...]) -> bool:
    """The call is given the step's own reward beside the flag: a transition."""
    reward = next((b.target for b in fact.binds if b.value == (at,) and b.form == "1/5"), "")
    return bool(reward) and any(reward in atoms for atoms in given)


def _ends(fact: Function, at: int, call: Call) -> tuple[str, str] | None:
    """The names that an environment's step gives its two end flags."""
    if call.result != 5:
        return None
    names = {b.form.partition("/")[0]: b.target for b in fact.binds if b.value == (at,) and b.form.endswith("/5")}
    if "2" not in names or "3" not in names or "_" in {names["2"], names["3"]}:
        return None
    return names["2"], names["3"]


def _joins(call: Call, ends: tuple[str, str]) -> bool:
    last = call.name.rpartition(".")[2]
    given = {a for arg in (*call.args, *(v for _, v in call.keywords)) for a in arg if isinstance(a, str)} | {call.name.rpartition(".")[0]}
    return last in {"logical_or", "bitwise_or", "maximum", "any", "__or__", "add"} and given >= set(ends)


def _kept(program: Program, number: int, bind: Bind, ends: tuple[str, str], paths: tuple[str, ...]) -> Iterator[Suspect]:
    fact = program.functions[number].fact
    flow = reach(fact, paths=paths, binds=(bind,), cut=lambda c: not _carries(fact.calls[c]))
    sink = _sink(program, number, bind, flow)
    if sink is None:
        return
    line, words, apart = sink
    if set(ends) & apart or any(b is not bind and b.target.endswith("]") and ends[1] in b.value for b in fact.binds):
        return
    yield at_bind(
        number, bind, "GYR309", f"`{bind.target}` joins `{ends[0]}` and `{ends[1]}` and is stored: a time limit is taken for an end",
        evidence=(program.place(number, line, words, "because"),), hint=_HINT, side="sampling",
    )  # fmt: skip


def _carries(call: Call) -> bool:
    return call.name.rpartition(".")[2] in {
        "tensor",
        "Tensor",
        "as_tensor",
        "array",
        "asarray",
        "to",
        "float",
        "int",
        "bool",
        "astype",
        "copy",
        "clone",
        "from_numpy",
        "view",
        "FloatTensor",
        "BoolTensor",
        "stack",
        "zeros_like",
        "list",
        "unsqueeze",
        "{}",
    }


def _sink(program: Program, number: int, bind: Bind, flow: Reached) -> tuple[int, str, frozenset[str]] | None:
    """Where the joined flag is stored, and what else is stored there."""
    fact = program.functions[number].fact
    for index, call in enumerate(fact.calls):
        given = (*(a for arg in call.args for a in arg), *(a for _, v in call.keywords for a in v))
        if _stores(program, number, index) and flow.any(given):
            return call.line, f"stored by {readable(call)}", frozenset(_all_paths(fact, index))
    stored = {a for b in fact.binds if b.target.endswith("]") for a in b.value if isinstance(a, str)}
    for other in fact.binds:
        if other is not bind and other.target.endswith("]") and flow.any(other.value) and other.form == "=":
            return other.line, f"stored in {other.target}", frozenset(stored)
    if bind.target.endswith("]"):
        return bind.line, f"stored in {bind.target}", frozenset(stored)
    return None


def _all_paths(fact: Function, index: int) -> set[str]:
    call = fact.calls[index]
    out: set[str] = set()
    for atom in (*(a for arg in call.args for a in arg), *(a for _, v in call.keywords for a in v)):
        if isinstance(atom, int):
            out |= _all_paths(fact, atom)
        else:
            out.add(atom)
    return out


def _stores(program: Program, number: int, index: int) -> bool:
    call = program.call(number, index)
    if program.role(number, index) in {"buffer.put", "carrier.write"}:
        return True
    head, _, last = call.name.rpartition(".")
    return bool(head) and last in program.words["stores"] and call.result == -1


def _handed_over(program: Program, number: int, index: int) -> bool:
    """A display that a storing call is given."""
    fact = program.functions[number].fact
    return any(_stores(program, number, at) and any(index in a for a in call.args) for at, call in enumerate(fact.calls))


def _said(ends: tuple[str, str], where: str) -> str:
    return f"`{where}` stores `{ends[0]}` and `{ends[1]}` as one flag: a time limit is taken for an end"


# ---- GYR308


def _exchanged(program: Program, number: int) -> Iterator[Suspect]:
    fact = program.functions[number].fact
    for index, call in enumerate(fact.calls):
        if len(call.keywords) < 2:
            continue
        fields = {k.lower() for k, _ in call.keywords}
        if len(fields & _KNOWN) < 2 or call.name.rpartition(".")[2] in {"log", "info", "print", "debug", "update", "format"}:
            continue
        for key, value in call.keywords:
            wrong = _wrong(key, value)
            if wrong:
                yield at_call(program, number, index, "GYR308", f"the field `{key}` is given `{wrong}`",
                hint="store the step's own reward, and the return under its own name",
                              at_most=Severity.WARNING, key=f"{key}={wrong}", side="sampling")  # fmt: skip
    for bind in fact.binds:
        if bind.target.endswith("]") and bind.form == "=" and not bind.op.strip("item"):
            wrong = _wrong(bind.target[bind.target.rfind("[") + 1 : -1], bind.value)
            if wrong:
                yield at_bind(number, bind, "GYR308", f"the field `{bind.target}` is given `{wrong}`", at_most=Severity.WARNING,
                              hint="store the step's own reward, and the return under its own name")  # fmt: skip


_KNOWN = frozenset(
    {
        "obs",
        "observation",
        "state",
        "action",
        "act",
        "actions",
        "logp",
        "logprob",
        "log_prob",
        "next_obs",
        "done",
        "terminated",
        "truncated",
        "value",
        "policy_version",
        "tokens",
        "ids",
        "prompt",
        "reward",
        "returns",
        "return",
        "rew",
        "advantage",
        "adv",
    }
)


def _wrong(key: str, value: Atoms) -> str:
    if len(value) != 1 or not isinstance(value[0], str) or value[0].startswith("="):
        return ""
    leaf = value[0].rstrip("]").rpartition("[")[2].rpartition(".")[2].lower()
    if key.lower() in _REWARDS and leaf in _RETURNS:
        return value[0]
    return value[0] if key.lower() in _RETURNS and leaf in _REWARDS else ""
