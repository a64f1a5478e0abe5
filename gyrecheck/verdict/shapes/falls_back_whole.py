"""When no sample of a group is usable, does the whole group come back in its place? (GYR312).

`usable = [r for r in group if ...]; return usable or group`: the filter holds for all groups but those that failed altogether, whose
rows are then trained on. Silent where the fall-back is said aloud, counted, or marked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gyrecheck.model.facts import Bind, Function
from gyrecheck.program.program import Program
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, in_tests, is_evaluation

_KEPT = re.compile(
    r"(?:^|_)(?:usable|valid|good|ok|kept|keep|survivors?|finished|completed?|healthy|succeeded|successful|clean|intact|accepted)(?:_|$)"
)
_ROWS = re.compile(
    r"(?:^|_)(?:group|rows|rollouts?|samples|trajectories|trajs|episodes|records|responses|completions|answers|attempts|results)(?:_|$)"
)
_FAILS = re.compile(r"fail|error|status|abort|broken|invalid|crash|timed_out|exception|corrupt|refused")
_FAILED = re.compile(rf"{_FAILS.pattern}|(?:^|[._\[])(?:ok|valid|is_valid|success\w*|usable|none)(?:$|[._\]])")
_LOUD = frozenset({"warning", "warn", "error", "exception", "critical", "inc", "increment"})


def falls_back_whole(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every filter of samples whose empty result is replaced by what was filtered."""
    for fn in program.functions:
        fact = fn.fact
        if not any(b.kind == "comp" and b.op == "if" for b in fact.blocks) or in_tests(program, fn.number):
            continue
        if (
            is_evaluation(program.path(fn.number))
            or "evaluation" in program.region(fn.number)
            or not _speaks_of_failure(program, fn.module)
        ):
            continue
        for bind in fact.binds:
            source = _filtered(program, fn.number, bind)
            place = _replaced(program, fn.number, bind, source) if source else None
            if place is not None and not any(c.name.rpartition(".")[2] in _LOUD for c in fact.calls):
                line, column = place
                yield Suspect(
                    "GYR312", fn.number, line, column, f"where nothing of `{source}` is left in `{bind.target}`, all of it comes back: failed samples "
                        "are handed on as if measured",
                    evidence=(program.place(fn.number, bind.line, f"the filter: {bind.target}", "because", bind.column + 1),),
                    hint="give back nothing, count the group as dropped, and let the caller leave it out", side="sampling", key=bind.target,
                )  # fmt: skip


def _speaks_of_failure(program: Program, module: int) -> bool:
    """The file knows samples that failed: a field, a status or a constant says so."""
    for fn in program.tree.functions_of(module):
        names = [*(b.target for b in fn.fact.binds), *(p.name for p in fn.fact.params)]
        if any(_FAILS.search(name.lower()) for name in names):
            return True
    return False


def _filtered(program: Program, number: int, bind: Bind) -> str:
    """What a list named after what is usable is filtered from, in one comprehension; empty for anything else."""
    fact = program.tree.functions[number].fact
    if bind.form != "=" or bind.op != "[]" or not _KEPT.search(bind.target.lower()):
        return ""
    element = next((b for b in fact.binds if b.form == "for" and b.target in bind.value and b.line == bind.line), None)
    if element is None or fact.blocks[element.block].op != "if" or len(bind.value) != 1 or len(element.value) != 1:
        return ""
    if not _asks_for_failure(fact, element):
        return ""
    source = element.value[0]
    return source if isinstance(source, str) and _ROWS.search(source.rpartition(".")[2].lower()) else ""


def _asks_for_failure(fact: Function, element: Bind) -> bool:
    """The filter's own question is whether a sample failed; one about a length, a score or a spread leaves out none that did."""
    told = [a for a in fact.blocks[element.block].asked if isinstance(a, str)]
    calls = [c for c in fact.calls if c.block == element.block]
    told += [name for c in calls for name in (c.name, *(a for arg in c.args for a in arg if isinstance(a, str)))]
    return any(_FAILED.search(name.lower()) for name in told)


def _replaced(program: Program, number: int, kept: Bind, source: str) -> tuple[int, int] | None:
    """Where the filtered list or, when it is empty, the whole is given back or bound."""
    fact = program.tree.functions[number].fact
    for given in fact.exits:
        if given.kind == "return" and given.order > kept.order and any(set(item) == {kept.target, source} for item in given.items):
            return given.line, given.column
    for bind in fact.binds:
        if bind.order <= kept.order or bind.form != "=":
            continue
        if set(bind.value) == {kept.target, source} and bind.op in {"or", "if"} and not _picked(fact, bind.target):
            return bind.line, bind.column
        block = fact.blocks[bind.block]
        if (
            bind.target == kept.target
            and bind.value == (source,)
            and block.kind == "then"
            and kept.target in block.detail
            and "not" in block.op
        ):
            return bind.line, bind.column
    return None


def _picked(fact: Function, name: str) -> bool:
    """Only one of them is chosen, not all handed on."""
    return any(
        c.name.rpartition(".")[2] in {"max", "min", "choice", "sorted", "argmax"} and any(name in arg for arg in c.args) for c in fact.calls
    )
