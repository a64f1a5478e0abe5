"""Does the sampler log what only a trainer knows? (GYR104)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Call
from gyrecheck.program.program import ACTING, LEARNING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, at_call


def sampler_log(program: Program, layout: Layout) -> Iterator[Suspect]:
    """Training figures logged by functions that only sample."""
    for duty in layout.duties:
        if duty.duty == "sampler" and program.own(duty.function, *ACTING) and not program.has(duty.function, *LEARNING, full=True):
            yield from _figures(program, duty.function)


def _figures(program: Program, number: int) -> Iterator[Suspect]:
    fact = program.functions[number].fact
    for at, call in enumerate(fact.calls):
        last = call.name.rpartition(".")[2]
        if program.role(number, at) != "log.metric" and last not in program.words["log_methods"]:
            continue
        figure = _figure(program, number, call)
        if figure:
            yield at_call(
                program, number, at, "GYR104", f"`{readable(call)}` logs `{figure}` in a sampling function",
                hint="log it in the trainer; a sampler that knows a loss or a learning rate is not separate from it",
                side="sampling", key=figure,
            )  # fmt: skip


def _figure(program: Program, number: int, call: Call) -> str:
    words = program.words["training_figures"]
    fact = program.functions[number].fact
    for atom in _atoms(fact.calls, call):
        text = atom[2:-1] if atom.startswith("='") else atom
        if atom.startswith("=") and not atom.startswith("='"):
            continue
        leaf = text.rpartition("/")[2].rpartition(".")[2].lower().strip(" :=%.0123456789f{}")
        if leaf in words:
            return text if len(text) < 40 else leaf
        if atom.startswith("='") and any(w in text.lower().replace("=", " ").replace(":", " ").replace(",", " ").split() for w in words):
            return next(w for w in sorted(words) if w in text.lower())
    return ""


def _atoms(calls: tuple[Call, ...], call: Call) -> Iterator[str]:
    for key, value in call.keywords:
        yield f"='{key}'"
        yield from (a for a in value if isinstance(a, str))
        for a in value:
            if isinstance(a, int) and calls[a].name == "{}":
                yield from _atoms(calls, calls[a])
    for arg in call.args:
        for atom in arg:
            if isinstance(atom, str):
                yield atom
            elif calls[atom].name == "{}":
                yield from _atoms(calls, calls[atom])
