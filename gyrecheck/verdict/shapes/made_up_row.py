"""Is a training row made up where nothing was sampled, and handed on like a measured one? (GYR312).

A row whose log-prob is a constant, and its reward or its tokens too, in a branch; elsewhere the same kind of row is filled from what was
sampled. A row under a zero mask, or one that is marked as failed, is in order.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Atoms, Call, Function
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, at_call, in_tests

_ASIDE = ("pad", "dummy", "fake", "mock", "test", "warm", "placeholder", "example", "collate")
_FAILED = (
    "fail",
    "error",
    "abort",
    "status",
    "valid",
    "ignore",
    "drop",
    "skip",
    "success",
    "timeout",
    "exclude",
    "is_real",
    "loss_weight",
    "sample_weight",
    "row_weight",
)
_BLANK = ("pad", "eos", "empty", "blank", "bos")
_BRANCHES = frozenset({"then", "else", "except", "case"})


def made_up_row(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every such row, in a file that makes measured ones as well."""
    for module, _ in enumerate(program.tree.modules):
        rows = [(fn.number, at, kind, fields) for fn in program.tree.functions_of(module) for at, kind, fields in _rows(program, fn.number)]
        measured = {kind for number, _, kind, fields in rows if not _constant(_fact(program, number), _of(program, fields, "logprob"))}
        for number, at, kind, fields in rows:
            fact = _fact(program, number)
            branch = _branch(fact, fact.calls[at].block)
            if (
                kind not in measured
                or branch < 0
                or any(word in fact.name.lower() for word in _ASIDE)
                or "evaluation" in program.region(number)
                or in_tests(program, number)
            ):
                continue
            made = _made_up(program, fact, fields)
            if made:
                block = fact.blocks[branch]
                yield at_call(
                    program, number, at, "GYR312", f"`{readable(fact.calls[at])}` makes up a row: {', '.join(made)}; it is trained on as if sampled",
                    evidence=(program.place(number, block.line, "in this case nothing was sampled", "because"),),
                    hint="hand on no row, and count it; or give it a mask of zeros", side="sampling", key=kind,
                )  # fmt: skip


def _fact(program: Program, number: int) -> Function:
    return program.tree.functions[number].fact


def _rows(program: Program, number: int) -> Iterator[tuple[int, str, dict[str, Atoms]]]:
    """Constructions of a record that has a log-prob and a reward or tokens: (call, kind, fields)."""
    fact = _fact(program, number)
    for at, call in enumerate(fact.calls):
        if len(call.args) + len(call.keywords) < 3:
            continue
        if call.name in {"{}", "dict"}:
            fields, kind = dict(call.keywords), " ".join(sorted({k for k, _ in call.keywords}))
        else:
            target = program.resolver.callee(number, at) if call.name.rpartition(".")[2][:1].isupper() else None
            if target is None or target.kind != "class":
                continue
            names = _fields(program, int(target.ref))
            fields, kind = {**dict(zip(names, call.args, strict=False)), **dict(call.keywords)}, f"class {target.ref}"
        if _of(program, fields, "logprob") is not None and (_of(program, fields, "tokens") or _of(program, fields, "reward")):
            yield at, kind, fields


def _fields(program: Program, cls: int) -> list[str]:
    """The names of a class's fields in the order of its constructor."""
    made = program.tree.classes[cls].methods.get("__init__")
    if made is not None:
        return [p.name for p in program.tree.functions[made].fact.params if not p.kind][1:]
    return [b.target for b in program.tree.functions[program.tree.classes[cls].body].fact.binds if b.annotation]


def _of(program: Program, fields: dict[str, Atoms], meaning: str) -> Atoms | None:
    """The value of the field with a meaning; None when there is no such field."""
    for name, value in fields.items():
        if program.words.field(name) == meaning or (
            meaning == "logprob" and name.lower().endswith(("logps", "logp", "logprobs", "log_probs"))
        ):
            return value
    return None


def _constant(fact: Function, atoms: Atoms | None) -> bool:
    """Numbers only, repeated to some length or not; or a tensor of one number."""
    if not atoms:
        return False
    plain = [a for a in atoms if isinstance(a, str)]
    calls = [fact.calls[a] for a in atoms if isinstance(a, int)]
    if any(not a.startswith("=") or a[1:2] not in "-.0123456789" for a in plain):
        return False
    return all(_sized(c) or _filled(fact, c) for c in calls) and (bool(plain) or any(_filled(fact, c) for c in calls))


def _sized(call: Call) -> bool:
    return call.name == "len"


def _filled(fact: Function, call: Call) -> bool:
    last = call.name.rpartition(".")[2]
    if call.args and "=0" in call.args[0] and last in {"zeros", "ones", "full"}:
        return False  # no rows at all
    return last in {"zeros", "ones", "full", "zeros_like", "ones_like"} or (
        last in {"tensor", "array"} and bool(call.args) and _constant(fact, call.args[0])
    )


def _branch(fact: Function, block: int) -> int:
    while block >= 0 and fact.blocks[block].kind not in _BRANCHES:
        block = fact.blocks[block].parent
    return block


def _made_up(program: Program, fact: Function, fields: dict[str, Atoms]) -> tuple[str, ...]:
    """The fields of the row that are constants; none when too few are, or when the row says that it is no sample."""
    logprob, reward, tokens = (_of(program, fields, meaning) for meaning in ("logprob", "reward", "tokens"))
    mask = next((v for k, v in fields.items() if "mask" in k.lower()), None)
    blank = _constant(fact, tokens) or any(isinstance(a, str) and any(w in a.lower() for w in _BLANK) for a in tokens or ())
    blank = blank or any(_from_blank(fact, a) for a in tokens or () if isinstance(a, str))
    if not _constant(fact, logprob) or not (blank or (_constant(fact, reward) and mask is not None)):
        return ()
    if mask is not None and not (_constant(fact, mask) and any(str(a) in {"=1", "=1.0", "=True"} or _ones(fact, a) for a in mask)):
        return ()
    if any(any(w in k.lower() for w in _FAILED) and "version" not in k.lower() for k in fields if "mask" not in k.lower()):
        return ()
    if any(isinstance(a, str) and a.startswith("='") and any(w in a.lower() for w in _FAILED) for v in fields.values() for a in v):
        return ()
    named = {"tokens": blank, "mask 1": mask is not None, "log-prob": True, "reward": _constant(fact, reward)}
    return tuple(name for name, is_made in named.items() if is_made)


def _ones(fact: Function, atom: str | int) -> bool:
    return isinstance(atom, int) and fact.calls[atom].name.rpartition(".")[2] in {"ones", "ones_like"}


def _from_blank(fact: Function, path: str) -> bool:
    """A name that holds a padding token."""
    made = [b.value for b in fact.binds if b.target == path]
    return any(isinstance(a, str) and any(w in a.lower() for w in _BLANK) for value in made for a in value)
