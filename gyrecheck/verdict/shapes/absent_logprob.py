"""Is a log-prob that the sampler did not return written as zero, that is: as sampled for sure? (GYR312, GYR304 on the training side).

`x.logprob if x else 0.0` for each token, `.get("logprob", 0.0)`, `found + [0.0] * (len(tokens) - len(found))`, zeros for a missing list.
Zeros before the response and zeros under a mask that is made beside them are in order.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Atom, Atoms, Bind, Call, Function
from gyrecheck.model.finding import Severity
from gyrecheck.program.program import LEARNING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.missing_field import is_record
from gyrecheck.verdict.shapes.suspect import Suspect, at_call, in_tests

_ZERO = frozenset({"=0.0", "=0", "=-0.0"})
_ENDS = ("logprob", "logprobs", "logp", "logps", "log_prob", "log_probs")
_ASIDE = ("ref", "teacher", "prompt", "top", "target", "draft", "cum", "mean", "avg", "sum", "total", "diff", "gap", "kl", "bonus")
"""Words of a name that say: not the log-prob of the sampled token that a ratio is taken against."""
_FILLS = frozenset({"zeros", "zeros_like", "new_zeros"})
_GROWS = frozenset({"extend", "append"})
_HINT = "raise when the engine returns fewer log-probs than tokens, or mask those tokens and count them"


def absent_logprob(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every zero that stands for a log-prob nobody measured."""
    for fn in program.functions:
        fact = fn.fact
        if (
            in_tests(program, fn.number)
            or fact.name.startswith(("pad", "fake", "dummy", "mock"))
            or "evaluation" in program.region(fn.number)
        ):
            continue
        seen: set[int] = set()
        yield from _defaults(program, fn.number)
        for line, column, atoms, op, order, name in _values(fact):
            words = _either(program, fact, atoms, op, order, name) or _filled_up(program, fact, atoms, name)
            if words and line not in seen and not _masked(fact) and _handed_on(program, fn.number):
                seen.add(line)
                code, side = _side(program, fn.number)
                yield Suspect(
                    code, fn.number, line, column, f"{words}: a zero says that the token was sampled for sure",
                    hint=_HINT,
                    key=f"{name}>{words}", side=side, at_most=Severity.WARNING,
                )  # fmt: skip


def _values(fact: Function) -> Iterator[tuple[int, int, Atoms, str, int, str]]:
    """Every value that is bound, returned, stored or given by keyword: (line, column, atoms, operator, order, name it gets)."""
    for bind in fact.binds:
        if bind.form in {"=", "+="} and bind.value:
            value = (bind.target, *bind.value) if bind.form == "+=" else bind.value
            yield bind.line, bind.column, value, bind.op, bind.order, bind.target
    for leave in fact.exits:
        if leave.kind in {"return", "yield"}:
            for item in leave.items:
                yield leave.line, leave.column, item, "", leave.order, fact.name
    for call in fact.calls:
        for key, value in call.keywords:
            yield call.line, call.column, value, "", call.order, key
        head, _, last = call.name.rpartition(".")
        if last in _GROWS and head and call.args:
            yield call.line, call.column, (head, *call.args[0]) if last == "extend" else call.args[0], "", call.order, head


def _either(program: Program, fact: Function, atoms: Atoms, op: str, order: int, name: str) -> str:
    """One log-prob that is read, and a zero beside it: the two ends of a condition."""
    if len(atoms) < 2 or op in {"+", "-", "*", "/", "cmp", "**"}:
        return ""
    first, rest = atoms[0], atoms[1:]
    plain = [a for a in rest if isinstance(a, str)]
    sized = [fact.calls[a].name.rpartition(".")[2] for a in rest if isinstance(a, int)]
    zeros = any(name in _FILLS for name in sized)
    if any(a not in _ZERO for a in plain) or not (plain or zeros) or any(n != "len" and n not in _FILLS for n in sized):
        return ""
    if not op and any(fact.calls[a].name == "len" and not _tokens(program, _measured(fact.calls[a])) for a in rest if isinstance(a, int)):
        return ""  # what is handed on may be a sum: zeros behind the log-probs, for tokens that nobody sampled
    if op == "[]" and not _comprehended(fact, order):
        return ""  # a display of two values
    path = _path(fact, first)
    if any(p.name == path and p.default == ("=None",) for p in fact.params):
        return ""  # optional by contract
    if (zeros or sized) and op == "if" and path.endswith("]"):
        return ""  # a setting decides whether the column is there
    if not path or not (_logprob(path) or (isinstance(first, int) and _logprob(name) and fact.calls[first].result == -2)):
        return ""
    return f"`{path}` is replaced by 0.0 where it is absent"


def _defaults(program: Program, number: int) -> Iterator[Suspect]:
    """`token.get("logprob", 0.0)`, `getattr(token, "logprob", 0.0)` for each token of an answer."""
    fact = program.functions[number].fact
    for at, call in enumerate(fact.calls):
        last = call.name.rpartition(".")[2]
        key: Atoms = ()
        default: Atoms = ()
        if last in {"get", "pop"} and "." in call.name and len(call.args) == 2:
            key, default = call.args
            holder = call.name.rpartition(".")[0]
        elif call.name == "getattr" and len(call.args) == 3:
            _, key, default = call.args
            holder = str(call.args[0][0]) if call.args[0] else ""
        if not default or any(a not in _ZERO for a in default) or len(key) != 1 or not str(key[0]).startswith("='"):
            continue
        word = str(key[0])[2:-1]
        named = program.lexicon.named(holder.rpartition(".")[2])
        if not _logprob(word) or (named is not None and named.kind in {"neutral", "logger"}) or "metric" in holder or "stat" in holder:
            continue
        if is_record(program, holder) or _masked(fact) or not _handed_on(program, number):
            continue  # an absent field of a record is asked for elsewhere
        code, side = _side(program, number)
        yield at_call(
            program, number, at, code, f"`{readable(call)}({word!r}, …)` is 0.0 where the engine gave none: a zero says that the token was "
                "sampled for sure",
            hint=_HINT, key=f"{holder}.{word}", side=side, at_most=Severity.WARNING,
        )  # fmt: skip


def _comprehended(fact: Function, order: int) -> bool:
    """The value is a comprehension: one ended just before."""
    return any(b.kind == "comp" and order - 3 <= b.end_order <= order for b in fact.blocks)


def _filled_up(program: Program, fact: Function, atoms: Atoms, name: str) -> str:
    """`found + [0.0] * (len(tokens) - len(found))`: the tail of a list that is shorter than the tokens."""
    if (
        len(atoms) < 4
        or not isinstance(atoms[0], str)
        or atoms[1] not in _ZERO
        or not (_logprob(atoms[0]) or _logprob(name) or _of_logprobs(fact, atoms[0]))
    ):
        return ""
    sized = [fact.calls[a] for a in atoms[2:] if isinstance(a, int) and fact.calls[a].name == "len"]
    if len(sized) != len(atoms) - 2 or len(sized) != 2:
        return ""
    inner = [_measured(c) for c in sized]
    if inner[1] != atoms[0] or not _tokens(program, inner[0]):
        return ""
    return f"`{atoms[0]}` is filled up with 0.0 to the number of `{inner[0]}`"


def _measured(call: Call) -> str:
    """What a `len()` is taken of."""
    return str(call.args[0][0]) if call.args and len(call.args[0]) == 1 else ""


def _of_logprobs(fact: Function, path: str) -> bool:
    """A list that was made of log-probs."""
    made = [b for b in fact.binds if b.target == path]
    return any(_logprob(_path(fact, a)) for b in made for a in b.value)


def _tokens(program: Program, path: str) -> bool:
    leaf = _leaf(path)
    return program.words.field(leaf) == "tokens" or leaf.lower().endswith(("token_ids", "tokens", "output_ids", "response_ids"))


def _path(fact: Function, atom: Atom) -> str:
    if isinstance(atom, str):
        return "" if atom.startswith(("=", "<")) else atom
    call: Call = fact.calls[atom]
    return call.name.lstrip(".") if call.result == -2 else ""


def _logprob(path: str) -> bool:
    leaf = _leaf(path).lower().strip("_")
    return leaf.endswith(_ENDS) and not any(word in leaf.split("_") for word in _ASIDE)


def _leaf(path: str) -> str:
    bare = path
    while bare.endswith("]"):
        key = bare[bare.rfind("[") + 1 : -1]
        if key and not key.isdigit():
            return key
        bare = bare[: bare.rfind("[")]
    return bare.rpartition(".")[2]


def _masked(fact: Function) -> bool:
    """A mask is written in the same function with zeros, or asked for the same places: the filled ones are left out."""

    def zero(bind: Bind) -> bool:
        return any(a in _ZERO or a == "=False" for a in bind.value)

    named = [b for b in fact.binds if "mask" in b.target.lower() or "valid" in b.target.lower()]
    grown = [c for c in fact.calls if c.name.rpartition(".")[2] in _GROWS and "mask" in c.name.lower()]
    return any(zero(b) for b in named) or any(a in _ZERO or a == "=False" for c in grown for arg in c.args for a in arg)


def _handed_on(program: Program, number: int) -> bool:
    """The program trains on what it samples: somewhere in the group a ratio is taken, or a record of tokens with log-probs is made."""
    module = program.functions[number].module
    for fn in program.tree.functions_of(module):
        fields = {program.words.field(k) for c in fn.fact.calls for k, _ in c.keywords}
        fields |= {program.words.field(b.target) for b in fn.fact.binds if fn.fact.name.startswith("<class ")}
        if "logprob" in fields and "tokens" in fields and fields & {"reward", "advantage", "version"}:
            return True
        if program.has(fn.number, *LEARNING, full=True):
            return True
    return False


def _side(program: Program, number: int) -> tuple[str, str]:
    trains = program.has(number, *LEARNING, full=True) or program.region(number) & {"loss", "update", "dataset"}
    return ("GYR304", "training") if trains else ("GYR312", "sampling")
