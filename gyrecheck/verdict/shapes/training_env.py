"""An environment's own step or reset must not train: a wrapper that fits a bonus net as it steps trains inside sampling (GYR101, GYR102).

Asked of wrappers only: an environment that steps no other one may train a network as its very task. The finding stands at the call that
takes the gradient or steps, with the chain from the wrapper as evidence.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.finding import Confidence, Severity
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.program.tree import Fn
from gyrecheck.verdict.shapes.steps import BACK, STEP
from gyrecheck.verdict.shapes.suspect import Suspect, at_call

_ENTRIES = frozenset({"step", "step_wait", "step_async", "reset"})
_CODES = {BACK: "GYR101", STEP: "GYR102", "update.run": "GYR102"}


def training_env(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every gradient and every optimizer step that a wrapped environment's step reaches, each once."""
    seen: set[tuple[int, int]] = set()
    for number in program.doing("env.step", "env.reset"):
        fn = program.tree.functions[number]
        if fn.cls < 0 or fn.fact.name not in _ENTRIES or not _is_wrapper(program, fn):
            continue
        for role, code in _CODES.items():
            effect = program.effects.of[number].get(role)
            if effect is None or effect.confidence is Confidence.HINT:
                continue
            hops = program.effects.chain(number, role)
            last = hops[-1]
            if last.call < 0 or (last.function, last.call) in seen:
                continue
            seen.add((last.function, last.call))
            call = program.call(last.function, last.call)
            inner = program.call(number, program.own(number, "env.step", "env.reset")[0][0])
            yield at_call(
                program, last.function, last.call, code, f"`{readable(call)}` runs inside `{program.name(number)}`: whoever steps the "
                    "environment trains",
                evidence=(program.place(number, inner.line, f"it passes the step on to {readable(inner)}", "because", inner.column + 1),
                          *program.hops(hops[:-1])),
                hint="let the wrapper only score; fit outside, on the rows that were collected", side="sampling", pure=True,
                at_most=Severity.WARNING, key=f"{program.name(number)}>{call.name}",
            )  # fmt: skip


def _is_wrapper(program: Program, fn: Fn) -> bool:
    """Its base is an environment of a library, or its name says that it is one; an agent with `step` and `reset` is none."""
    kinds = {program.lexicon.kinds.get(t) for t in program.resolver.types_of_class(fn.cls)}
    name = program.tree.classes[fn.cls].fact.name.lower()
    return "env" in kinds or (
        program.calls.class_kind(fn.cls) == "env" and (name.endswith(("env", "envs", "wrapper")) or "environment" in name)
    )
