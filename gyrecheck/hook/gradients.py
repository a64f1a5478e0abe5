"""The gradients that an optimizer holds: how large, whose memory, and whether those of an earlier step are still there."""

from __future__ import annotations

from gyrecheck.hook.networks import peek

TYPE_CHECKING = False  # importing `typing` costs more than this package; type checkers know the name
if TYPE_CHECKING:
    from typing import Any

    from gyrecheck.hook.optimizer_state import OptimizerState


def held_by(optimizer: Any) -> list[Any]:
    """The parameters of an optimizer in its own order."""
    return [p for group in optimizer.param_groups for p in group["params"]]


def is_left(state: OptimizerState) -> bool:
    """Before a backward pass: whether gradients that a step has used are still there, to be added to."""
    if state.stepped_uncleared:
        optimizer = state.optimizer()
        state.pending = optimizer is not None and size_of(held_by(optimizer), first=True) == "some"
        state.stepped_uncleared = state.pending
    return state.pending


def mark(optimizer: Any) -> tuple[int, int] | None:
    """The first gradient that an optimizer finds, as an object and a version that each change of it raises."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None:
                return id(parameter.grad), parameter.grad._version
    return None


def replaced(optimizer: Any, state: OptimizerState) -> bool:
    """Whether the gradients are other objects than those of the last step: assigned from another network, not added to."""
    now = mark(optimizer)
    return now is not None and state.used is not None and now[0] != state.used[0]


def shared_with(state: OptimizerState, tensors: list[Any]) -> list[Any]:
    """Those of `tensors` whose gradients another optimizer has used in its newest step, and nothing has cleared or added to since."""
    optimizer = state.optimizer()
    if optimizer is None or state.backward or state.used is None or not state.steps:
        return []
    if state.used[0] and replaced(optimizer, state):  # 0: of a step that was only counted
        return []
    own = {id(p) for p in held_by(optimizer)}
    return [p for p in tensors if id(p) in own and p.grad is not None and size_of([p]) == "some"]


def size_of(tensors: list[Any], *, first: bool = False) -> str:
    """`none` (no gradient at all), `zero` (all exactly 0), `some`, or `nan`; looks no further than the first that is not 0."""
    seen = False
    for tensor in tensors:
        grad = tensor.grad
        if grad is None:
            continue
        seen = True
        total = peek(grad)
        if total == 0.0:
            grad = grad.detach()
            total = float((grad.float() if grad.element_size() < 4 else grad).abs().sum())  # half precision overflows in the sum
        if total != 0.0:
            return "some" if total - total == 0.0 else "nan"
        if first and len(tensors) > 8:
            break
    return "zero" if seen else "none"
