"""Are rows without a log-prob given one by `nan_to_num`, and trained on? (GYR304)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Function
from gyrecheck.model.finding import Severity
from gyrecheck.program.program import LEARNING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, at_call

_FILLS = frozenset({"nan_to_num", "nan_to_num_"})
_ASKS = frozenset({"isfinite", "isnan", "isinf"})
_COMPUTES = frozenset({"log_softmax", "logsumexp", "log_prob", "cross_entropy", "log"})
_LIBRARIES = frozenset({"torch", "np", "numpy", "jnp", "th"})


def papered_over(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Fills of a log-prob, in a function on the way to a loss that never asks where it was finite."""
    for number in program.calling(_FILLS):
        fact = program.functions[number].fact
        if not _trains(program, number):
            continue
        for at, call in enumerate(fact.calls):
            head, _, last = call.name.rpartition(".")
            if last not in _FILLS:
                continue
            given = call.args[0] if head in _LIBRARIES and call.args else (head,)
            source = str(given[0]) if len(given) == 1 and isinstance(given[0], str) else ""  # a difference of two is a ratio, and no field
            leaf = source.rstrip("]").rpartition("[")[2].rpartition(".")[2]
            if program.words.field(leaf) != "logprob" and not program.words.has("logprob_names", leaf):
                continue
            if _measured_here(fact, source, call.order):
                continue
            asked = [c for c in fact.calls if c.name.rpartition(".")[2] in _ASKS]
            if any(source in arg for c in asked for arg in c.args) or any(c.name.startswith(f"{source}.") for c in asked):
                continue
            yield at_call(
                program, number, at, "GYR304", f"`{readable(call)}` gives rows whose `{leaf}` is missing or infinite a number: they are "
                    "trained on as if measured",
                hint="mask those rows out of the loss, and count them", at_most=Severity.WARNING, side="training", key=source,
            )  # fmt: skip


def _measured_here(fact: Function, source: str, order: int) -> bool:
    """The function has computed it itself: what is infinite there it has made so, and nothing of the sampler's is missing."""
    made = [b for b in fact.binds if b.target == source and b.order < order and b.form == "="]
    calls = [fact.calls[a].name.rpartition(".")[2] for b in made[-1:] for a in b.value if isinstance(a, int)]
    return any(name in _COMPUTES for name in calls)


def _trains(program: Program, number: int) -> bool:
    """It learns, or gives a loss to a function that does."""
    if program.has(number, *LEARNING, full=True) or program.region(number) & {"loss", "update"}:
        return True
    return any(program.has(e.caller, *LEARNING, full=True) for e in program.callers[number])
