"""Gradients that are taken with respect to an input, as a planner refines an action, and that move no network.

`autograd.grad(value, action)`; a backward pass whose function reads `action.grad`; an optimizer over `[action]` that is made there.
"""

from __future__ import annotations

from gyrecheck.model.facts import Call, Function
from gyrecheck.program.program import Program

_LEAVES = frozenset({"requires_grad_", "Parameter", "Variable"})
_WEIGHTS = ("param", "weight")


def of_an_input(program: Program, number: int, call: Call) -> bool:
    """A backward pass or step of this function that trains nothing: what it moves is a tensor that the function makes."""
    fact = program.tree.functions[number].fact
    owner, _, last = call.name.rpartition(".")
    if last == "grad":
        given = call.args[1] if len(call.args) > 1 else next((v for k, v in call.keywords if k == "inputs"), ())
        said = [fact.calls[a].name if isinstance(a, int) else a for a in given]
        return bool(said) and not any(word in name.lower() for name in said for word in _WEIGHTS)
    leaves = {b.target for b in fact.binds if any(isinstance(a, int) and _leaf(fact.calls[a]) for a in b.value)}
    over = {b.target for b in fact.binds for a in b.value if isinstance(a, int) and _moves(program, number, a, leaves)}
    steps = [fact.calls[at] for at, _ in program.own(number, "optimizer.step", "scaler.step")]
    if any(c.name.rpartition(".")[0] not in over for c in steps):
        return False
    return (owner in over and last == "step") or bool(steps) or _reads_grad(fact, leaves)


def _leaf(call: Call) -> bool:
    return call.name.rpartition(".")[2] in _LEAVES or any(k == "requires_grad" and v == ("=True",) for k, v in call.keywords)


def _moves(program: Program, number: int, at: int, leaves: set[str]) -> bool:
    """The call makes an optimizer over such tensors alone."""
    call = program.call(number, at)
    given = call.args[0] if call.args else next((v for k, v in call.keywords if k == "params"), ())
    return program.role(number, at) == "optimizer.make" and bool(given) and all(a in leaves for a in given)


def _reads_grad(fact: Function, leaves: set[str]) -> bool:
    read = {a for b in fact.binds for a in b.value if isinstance(a, str)} | {c.name for c in fact.calls}
    read |= {a for c in fact.calls for arg in c.args for a in arg if isinstance(a, str)}
    return any(name == f"{leaf}.grad" or name.startswith(f"{leaf}.grad.") for name in read for leaf in leaves)
