"""Are weights of a network kept where `parameters()` does not find them? (GYR224).

A tensor with `requires_grad=True` that is no `nn.Parameter`, or networks in a plain list that is no `nn.ModuleList`: the loss goes through
them, an optimizer over `net.parameters()` never sees them. Silent where anything gives them to an optimizer, or where their name says that
they are fixed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gyrecheck.model.facts import Bind, Call, Function
from gyrecheck.program.program import Program
from gyrecheck.program.topology import Layout
from gyrecheck.program.tree import Cls
from gyrecheck.verdict.shapes.suspect import Suspect, at_bind, in_tests

_FIXED = re.compile(r"target|frozen|ref|teacher|prior|fixed|ema|old|hidden|cache|buffer|proxy")
_OPTIMIZES = re.compile(r"optim|(?:^|_)opts?(?:_|$)|adam|sgd|solver")
_DEEP = 3
_WEIGHTED = re.compile(
    r"Linear|Bilinear|Parameter|Conv|Embedding|LSTM|GRU|RNN|LayerNorm|BatchNorm|GroupNorm|Transformer|MultiheadAttention|LazyLinear|PReLU"
)
_REGISTERS = frozenset({"add_module", "register_module", "register_parameter", "setattr"})
_WRAPS = frozenset({"ModuleList", "Parameter", "ParameterList", "Sequential"})
_LISTS = frozenset({"parameters", "named_parameters", "add_param_group", "detach", "requires_grad_"})
_TENSORS = frozenset({"zeros", "ones", "full", "tensor", "randn", "rand", "empty", "zeros_like", "ones_like", "as_tensor", "FloatTensor"})


def unlisted_weights(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every trained weight of a network that its `parameters()` leaves out, where an optimizer is made over those."""
    made = [(fn.number, at) for fn in program.functions for at, _ in program.own(fn.number, "optimizer.make")]
    over = {n for n, at in made if any(name.endswith("parameters") for name in _call_names(program, n, at))}
    if not over:
        return
    named = {_tail(p) for n, at in made for p in _paths(program.tree.functions[n].fact, at)}
    for cls in program.tree.classes:
        start = cls.methods.get("__init__", -1)
        if start < 0 or program.calls.class_kind(cls.number) != "module" or in_tests(program, start):
            continue
        for bind in program.tree.functions[start].fact.binds:
            name = bind.target.removeprefix("self.")
            if not bind.target.startswith("self.") or "." in name or "[" in name or name in named or _FIXED.search(name.lower()):
                continue
            said = _tensor(program, start, bind) or _listed(program, start, bind)
            if said and _in_forward(program, cls, bind.target) and not _handed_on(program, cls, name):
                yield at_bind(
                    start, bind, "GYR224", f"`{bind.target}` {said}: `parameters()` does not list it, and no optimizer holds it",
                    side="training", hint="wrap it: nn.Parameter(…) for a tensor, nn.ModuleList([…]) for networks", key=bind.target,
                )  # fmt: skip


def _tail(path: str) -> str:
    return path.rpartition(".")[2]


def _call_names(program: Program, number: int, at: int) -> list[str]:
    fact = program.tree.functions[number].fact
    call = fact.calls[at]
    return [fact.calls[a].name for arg in (*call.args, *(v for _, v in call.keywords)) for a in arg if isinstance(a, int)]


def _paths(fact: Function, at: int) -> set[str]:
    """All paths that go into a call, through calls and names; each is followed once, for a name may be made of itself."""
    out: set[str] = set()
    open_: list[str | int] = [at]
    done: set[str | int] = set()
    while open_:
        atom = open_.pop()
        if atom in done:
            continue
        done.add(atom)
        if isinstance(atom, int):
            call = fact.calls[atom]
            out.add(call.name.rpartition(".")[0] if atom != at else "")
            open_ += [a for arg in (*call.args, *(v for _, v in call.keywords)) for a in arg]
        elif not atom.startswith("="):
            out.add(atom)
            open_ += [v for b in fact.binds if b.target == atom for v in b.value]
    return out


def _tensor(program: Program, number: int, bind: Bind) -> str:
    """`torch.zeros(n, requires_grad=True)` as it is."""
    if bind.form != "=" or len(bind.value) != 1 or not isinstance(bind.value[0], int):
        return ""
    call = program.call(number, bind.value[0])
    plain = _tail(call.name) in _TENSORS and any(k == "requires_grad" and v == ("=True",) for k, v in call.keywords)
    return "is a tensor with a gradient and no nn.Parameter" if plain else ""


def _listed(program: Program, number: int, bind: Bind) -> str:
    """A plain list whose elements are networks with weights, made here."""
    if bind.form != "=" or bind.op != "[]" or not bind.value:
        return ""
    if not all(isinstance(atom, int) and _has_weights(program, number, atom, 0) for atom in bind.value):
        return ""
    return "is a plain list of networks"


def _has_weights(program: Program, number: int, at: int, depth: int) -> bool:
    """A call makes a network with parameters: a layer of torch, or one of our own whose constructor makes some."""
    target = program.resolver.callee(number, at)
    if target is not None and target.kind == "ext":
        return str(target.ref).startswith("torch.nn.") and _WEIGHTED.match(_tail(str(target.ref))) is not None
    if target is None or target.kind != "class" or program.calls.class_kind(int(target.ref)) != "module" or depth > _DEEP:
        return False
    starts = [program.tree.classes[c].methods.get("__init__", -1) for c in program.resolver.bases(int(target.ref))[0]]
    return any(_has_weights(program, n, i, depth + 1) for n in starts if n >= 0 for i in range(len(program.tree.functions[n].fact.calls)))


def _in_forward(program: Program, cls: Cls, path: str) -> bool:
    """A method other than the constructor reads it."""
    for name, number in cls.methods.items():
        if name == "__init__" or program.unrecorded_by_decorator(number):
            continue
        fact = program.tree.functions[number].fact
        read = [a for b in fact.binds for a in b.value] + [a for c in fact.calls for arg in (*c.args, c.receiver) for a in arg]
        read += [a for e in fact.exits for item in e.items for a in item] + [a for b in fact.blocks for a in b.detail]
        if any(isinstance(a, str) and (a == path or a.startswith((f"{path}[", f"{path}."))) for a in read):
            return True
        if any(c.name.startswith((f"{path}.", f"{path}[")) for c in fact.calls):
            return True
    return False


def _handed_on(program: Program, cls: Cls, name: str) -> bool:
    """Registered, wrapped later, or given to something as a whole outside of what uses it."""
    for fn in program.functions:
        fact = fn.fact
        for i, call in enumerate(fact.calls):
            last = _tail(call.name)
            given = {a for arg in (*call.args, *(v for _, v in call.keywords)) for a in arg if isinstance(a, str)}
            if fn.cls == cls.number and last in _REGISTERS:
                return True
            if last in _WRAPS and any(_tail(a) == name for a in given):
                return True
            if last in _LISTS and name in re.split(r"[.\[]", call.name):
                return True
            if any(_tail(a) == name for a in _deep(fact, call, 0)) and (
                _OPTIMIZES.search(last.lower()) or any(i in b.value for b in fact.binds if _OPTIMIZES.search(b.target.lower()))
            ):
                return True
        if any(_tail(b.target) == name and b.op != "[]" and fn.number != cls.methods.get("__init__") for b in fact.binds):
            return True
        if "param" in fact.name and fn.cls == cls.number:
            return True
        if _each_listed(fact, name):
            return True
    return False


def _deep(fact: Function, call: Call, depth: int) -> Iterator[str]:
    """The paths in a call's arguments, calls among them looked through."""
    for atom in (a for arg in (*call.args, *(v for _, v in call.keywords)) for a in arg) if depth < _DEEP else ():
        if isinstance(atom, int):
            yield from _deep(fact, fact.calls[atom], depth + 1)
        else:
            yield atom


def _each_listed(fact: Function, name: str) -> bool:
    """A loop or comprehension over the list asks each element for its parameters."""
    elements = set()
    for bind in fact.binds:
        read = [a for a in bind.value if isinstance(a, str)] + [
            p for a in bind.value if isinstance(a, int) for p in _deep(fact, fact.calls[a], 0)
        ]
        if any(_tail(a.partition("[")[0]) == name for a in read):
            elements.add(bind.target)
    return any(_tail(c.name) in _LISTS and c.name.partition(".")[0] in elements for c in fact.calls)
