"""Is an absent field of a trajectory replaced by a made-up value instead of raising? (GYR304, GYR312).

Reading side: `.get(field, 0)`, `.get(field) or 0`, `getattr(x, field, 0.0)`, zeros in the branch that found the key missing or in a
handler of KeyError. A default of None decides nothing yet and is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Atoms, Bind
from gyrecheck.model.finding import Severity
from gyrecheck.program.program import LEARNING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, at_bind, at_call, is_evaluation

_RESTORING = frozenset(
    {"from_json", "from_dict", "from_state", "load_state", "load_state_dict", "__setstate__", "deserialize", "from_metadata", "from_config"}
)
"""Functions that read back what their own class has written."""
_CORE = frozenset(
    {
        "reward",
        "return",
        "advantage",
        "logprob",
        "obs",
        "next_obs",
        "action",
        "value",
        "tokens",
        "terminated",
        "truncated",
        "done",
        "version",
    }
)


_READS = frozenset({"get", "setdefault", "pop", "getattr"})


def missing_field(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every place where a field that is not there gets a value."""
    for number in program.calling(_READS):
        if "evaluation" not in program.region(number) and not is_evaluation(program.path(number)):
            yield from _gets(program, number)
    for fn in program.functions:
        if fn.fact.binds and "evaluation" not in program.region(fn.number):
            yield from _branches(program, fn.number)
            yield from _either(program, fn.number)


def _gets(program: Program, number: int) -> Iterator[Suspect]:
    fact = program.tree.functions[number].fact
    for at, call in enumerate(fact.calls):
        last = call.name.rpartition(".")[2]
        if last in {"get", "setdefault", "pop"} and "." in call.name and call.args:
            key, default = (
                _constant(call.args[0]),
                call.args[1] if len(call.args) > 1 else next((v for k, v in call.keywords if k == "default"), ()),
            )
            holder = call.name.rpartition(".")[0]
        elif call.name == "getattr" and len(call.args) == 3:
            key, default = _constant(call.args[1]), call.args[2]
            holder = next((a for a in call.args[0] if isinstance(a, str)), "")
        else:
            continue
        field = program.words.field(key) if key else ""
        if field not in _CORE or not is_record(program, holder):
            continue
        if key in program.words["ambiguous_ends"] and not _in_company(program, number, holder, field):
            continue
        made = _made_up(program, number, default)
        if made is None and not default:
            made = _or_value(program, number, at)
        if made is None:
            continue
        if field == "version" and program.tree.functions[number].fact.name in _RESTORING:
            continue
        grave, side = _grave(program, number)
        if field == "truncated":
            grave = Severity.WARNING  # older records have one end flag
        code = "GYR304" if side == "training" else "GYR312"
        yield at_call(
            program, number, at, code, f"`{readable(call)}({key!r}, …)` makes up {made} when the field `{key}` is absent",
            hint="raise, naming the key and what is there, and mend the field in the sampler's writer",
            at_most=grave, side=side, key=f"{holder}.{key}",
        )  # fmt: skip


def _in_company(program: Program, number: int, holder: str, field: str) -> bool:
    """Another field of a trajectory is read from the same holder: alone, a word like `timeout` may be a tool's or a socket's."""
    fact = program.tree.functions[number].fact
    keys = [_constant(c.args[0]) for c in fact.calls if c.args and c.name.rpartition(".")[0] == holder]
    paths = [a for c in fact.calls for arg in (*c.args, *(v for _, v in c.keywords)) for a in arg]
    paths += [a for b in fact.binds for a in b.value]
    keys += [_leaf(a) for a in paths if isinstance(a, str) and a.startswith((f"{holder}[", f"{holder}."))]
    return any(program.words.field(k) in _CORE - {field} for k in keys if k)


def _or_value(program: Program, number: int, at: int) -> str | None:
    """`x.get(k) or 0`, `x.get(k) if … else 0`: the constant beside the call in a binding."""
    fact = program.tree.functions[number].fact
    for bind in fact.binds:
        if bind.op in {"or", "if"} and at in bind.value:
            rest = tuple(a for a in bind.value if a != at)
            return _made_up(program, number, rest)
    for call in fact.calls:
        for atoms in (*call.args, *(v for _, v in call.keywords)):
            if at in atoms and len(atoms) == 2:
                rest = tuple(a for a in atoms if a != at)
                if all(isinstance(a, str) and a.startswith("=") for a in rest):
                    return _made_up(program, number, rest)
    return None


def _branches(program: Program, number: int) -> Iterator[Suspect]:
    """`if key not in record: record[key] = zeros`, and the handler of a KeyError that fills."""
    fact = program.tree.functions[number].fact
    for bind in fact.binds:
        if bind.form != "=" or not bind.value:
            continue
        leaf = _leaf(bind.target)
        field = program.words.field(leaf)
        if field not in _CORE:
            continue
        made = _made_up(program, number, bind.value)
        if made is None:
            continue
        reason = _absent(program, number, bind, leaf)
        if reason is None or field == "value" or _masked(program, number, bind):  # not every method has a critic
            continue
        grave, side = _grave(program, number)
        code = "GYR304" if side == "training" else "GYR312"
        line, words = reason
        yield at_bind(
            number, bind, code, f"the absent field `{leaf}` is replaced by {made}",
            evidence=(program.place(number, line, words, "because"),),
            hint="raise, naming the key and what is there, and mend the field in the sampler's writer", at_most=grave, side=side,
        )  # fmt: skip


def _masked(program: Program, number: int, bind: Bind) -> bool:
    """A mask is set beside the fill, so that the filled places are left out of the loss."""
    blocks = program.tree.functions[number].fact.blocks
    around = blocks[bind.block].parent
    return around >= 0 and any(
        "mask" in _leaf(other.target).lower() and other.form == "=" and program.within(number, other.block, around)
        for other in program.tree.functions[number].fact.binds
    )


def _either(program: Program, number: int) -> Iterator[Suspect]:
    """`batch[k] if k in batch else zeros`."""
    fact = program.tree.functions[number].fact
    for bind in fact.binds:
        if bind.op == "or" and bind.form == "=":
            yield from _or_nothing(program, number, bind)
        if bind.op != "if" or bind.form != "=" or len(bind.value) < 2 or not isinstance(bind.value[0], str):
            continue
        path = bind.value[0]
        key = _leaf(path)
        if not path.endswith("]") or program.words.field(key) not in _CORE or not is_record(program, path[: path.rfind("[")]):
            continue
        made = _made_up(program, number, bind.value[1:])
        if made is None:
            continue
        grave, side = _grave(program, number)
        code = "GYR304" if side == "training" else "GYR312"
        yield at_bind(
            number, bind, code, f"`{bind.target}` is made up as {made} when the field `{key}` is absent", at_most=grave, side=side,
            hint="raise, naming the key and what is there, and mend the field in the sampler's writer",
        )  # fmt: skip


def _or_nothing(program: Program, number: int, bind: Bind) -> Iterator[Suspect]:
    """`row["reward"] = verdict.value or 0.0`: a field of a record gets a number whenever the answer was nothing."""
    target, key = bind.target, _leaf(bind.target)
    if not target.endswith("]") or program.words.field(key) not in {"reward", "advantage", "logprob", "return"}:
        return
    if not is_record(program, target[: target.rfind("[")]) or len(bind.value) != 2:
        return
    first, made = bind.value[0], _made_up(program, number, bind.value[1:])
    if made is None or (isinstance(first, str) and first.startswith("=")) or _made_up(program, number, bind.value[:1]) is not None:
        return
    if not program.has(number, "env.step", "policy.generate", "reward.score", "carrier.write", full=True):
        return
    yield at_bind(
        number, bind, "GYR312", f"`{target}` is {made} whenever the measurement gave nothing", side="sampling",
        hint="raise or leave the record out when nothing was measured, and count it",
    )  # fmt: skip


def _absent(program: Program, number: int, bind: Bind, leaf: str) -> tuple[int, str] | None:
    blocks = program.tree.functions[number].fact.blocks
    for at in program.blocks_up(number, bind.block):
        block = blocks[at]
        if block.kind in {"for", "while"}:
            return None
        if block.kind == "then":
            asked = [_constant((a,)) for a in block.detail]
            fields = {program.words.field(k) for k in asked if k}
            paths = {_leaf(a) for a in block.detail if isinstance(a, str) and not a.startswith("=")}
            if block.op.startswith("not in") and program.words.field(leaf) in fields:
                return block.line, "this branch found the key missing"
            if block.op == "not in" and leaf in asked:
                return block.line, "this branch found the key missing"
            if ("is" in block.op.split() or block.op == "is") and "=None" in block.detail and leaf in paths and bind.target.endswith("]"):
                return block.line, "this branch found the field to be None"
            if block.op == "not" and any(isinstance(a, int) and program.call(number, a).name == "hasattr" for a in block.detail):
                return block.line, "this branch found the attribute missing"
        if block.kind == "else":
            then = blocks[block.link]
            asked = [_constant((a,)) for a in then.detail]
            if then.op == "in" and leaf in asked:
                return then.line, "the other branch found the key"
            if then.op == "in" and program.words.field(leaf) in {program.words.field(k) for k in asked if k}:
                return then.line, "the other branch found the key"
        if block.kind == "except" and any(str(k).rpartition(".")[2] in {"KeyError", "AttributeError", "IndexError"} for k in block.detail):
            return block.line, "this handler found the key missing"
    return None


def _made_up(program: Program, number: int, atoms: Atoms) -> str | None:
    """A constant that stands for a measured value: a number, False, an empty container, a filled tensor; None is no value."""
    if not atoms:
        return None
    fact = program.tree.functions[number].fact
    for atom in atoms:
        if isinstance(atom, int):
            call = fact.calls[atom]
            last = call.name.rpartition(".")[2]
            if last in program.words["fills"]:
                if call.args and call.args[0] == ("=0",):
                    return None  # nothing is in it
                return f"`{readable(call)}(…)`"
            if (
                last in {"tensor", "array", "full", "float", "int"}
                and call.args
                and all(str(a).startswith("=") for a in call.args[0])
                and call.args[0]
                and call.args[0] != ("=None",)
            ):
                return f"`{readable(call)}({str(call.args[0][0])[1:]})`"
            if any(isinstance(a, int) for a in call.receiver):
                inner = _made_up(program, number, call.receiver)
                if inner is not None:
                    return inner
        elif (
            atom.startswith("=")
            and atom not in {"=None", "=''", "=True", "=Ellipsis"}
            and _plain(atom)
            and not atom.startswith("='")
            and not atom.startswith('="')
        ):
            return f"`{atom[1:]}`"
    return None


def _plain(atom: str) -> bool:
    """A value that says nothing; a whole number of more is a setting."""
    return not atom[1:].isdigit() or int(atom[1:]) < 2


def _grave(program: Program, number: int) -> tuple[Severity, str]:
    """Where the reader trains on what it reads it is an error; elsewhere a warning. The side that the code is on decides the code."""
    fn = program.tree.functions[number]
    region = program.region(number)
    learns = program.has(number, *LEARNING, full=True) or region & {"loss", "update", "dataset"}
    if learns:
        return Severity.ERROR, "training"
    callers = {e.caller for e in program.callers[number]}
    if any(program.has(c, *LEARNING, full=True) or program.region(c) & {"loss", "update", "dataset"} for c in callers):
        return Severity.ERROR, "training"
    if program.has(number, "env.step", "policy.generate", "reward.score", full=True):
        return Severity.WARNING, "sampling"
    module = fn.module
    trains = any(program.own(f.number, *LEARNING) for f in program.tree.functions_of(module))
    return Severity.WARNING, "training" if trains else "sampling"


def is_record(program: Program, holder: str) -> bool:
    """A holder that by its name keeps one row or a batch; `info`, `config`, `kwargs` and the like do not."""
    bare = holder.split("[", maxsplit=1)[0].rpartition(".")[2].lower().strip("_")
    if not bare:
        return False
    named = program.lexicon.named(bare)
    if named is not None and named.kind in {"neutral", "logger"}:
        return False
    words = program.words["records"]
    return bare in words or bare.rstrip("s") in words or any(bare.endswith(f"_{w}") for w in words if len(w) > 2)


def _constant(atoms: Atoms) -> str:
    """The text of a string constant, or empty."""
    first = atoms[0] if len(atoms) == 1 else ""
    return str(first)[2:-1] if isinstance(first, str) and first.startswith(("='", '="')) else ""


def _leaf(path: str) -> str:
    if path.endswith("]"):
        return path[path.rfind("[") + 1 : -1]
    return path.rpartition(".")[2]
