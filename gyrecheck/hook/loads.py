"""What became of `load_state_dict`: which names met, which did not, and whether the weights changed."""

from __future__ import annotations

from gyrecheck.hook import side
from gyrecheck.hook.gradients import held_by
from gyrecheck.hook.networks import fingerprint, parameters_of, shape_of
from gyrecheck.hook.phases import SOMETIMES

TYPE_CHECKING = False  # importing `typing` costs more than this package; type checkers know the name
if TYPE_CHECKING:
    from typing import Any

    from gyrecheck.hook.phases import Phases

FIRST = 8
"""Loads into a module that are all looked at."""


def loads_of(phases: Phases, module: Any) -> list[int]:
    """How often the module was loaded, and the version it had then."""
    loads = phases.loads.get(module)
    if loads is None:
        loads = phases.loads[module] = [0, -1]
    return loads


def due(loads: list[int]) -> bool:
    """Whether the next load is looked at: the first ones all, later ones now and then."""
    made = loads[0] + 1
    return made <= FIRST or not made % SOMETIMES


def loaded(phases: Phases, module: Any, loads: list[int], before: str | None, result: Any, given: Any) -> None:
    """`load_state_dict` has returned: one event that says which names met, and whether anything changed since `before`; none without that."""
    runtime, updates = phases.runtime, phases.updates
    runtime.cells["load_calls"][0] += 1
    loads[0] += 1
    loads[1] = updates.steps
    if before is None:
        return
    names = [name for name, _ in module.named_parameters()]
    buffers = {name for name, _ in module.named_buffers()}
    missing = set(getattr(result, "missing_keys", ()))
    unexpected = list(getattr(result, "unexpected_keys", ()))
    tensors = parameters_of(module)
    after = fingerprint(tensors)
    own = {id(p) for p in tensors}
    trained = any(id(p) in own for o, _ in updates.alive() for p in held_by(o)[:4])
    absent = [name for name in names if name in missing]
    runtime.events.write(
        "load", module=type(module).__name__, net=id(module) & 0xFFFFFF, params=len(names), missing=len(absent),
        missed=absent[:4], unexpected=len(unexpected), strange=[str(key) for key in unexpected[:4]], buffers=len(buffers & missing),
        given=len(given) if hasattr(given, "__len__") else -1, form=shape_of(tensors), before=before, fp=after, trained=trained,
        version=updates.steps, n=loads[0], site=side.caller(phases.libraries, 3),
    )  # fmt: skip
