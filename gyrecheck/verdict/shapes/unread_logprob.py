"""Log-probs that a sampler puts into its records and that no other function of the program ever reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gyrecheck.model.facts import Function
from gyrecheck.program.program import ACTING, Program
from gyrecheck.verdict.shapes.apart import running_apart


@dataclass(frozen=True, slots=True)
class Unread:
    """A record that `function` makes at `line`, with its keys; `apart`: made by a thread, process or task of its own."""

    function: int
    line: int
    field: str
    keys: frozenset[str]
    apart: bool


def unread_logprobs(program: Program) -> Iterator[Unread]:
    """One for each display of a record, in a function that samples and hands over, whose log-prob is read nowhere else."""
    apart = running_apart(program)
    stores = program.words["stores"]
    for number in program.doing(*ACTING, "carrier.write", "buffer.put"):
        fact = program.functions[number].fact
        if not program.has(number, *ACTING, full=True) or not any(c.name.rpartition(".")[2] in stores for c in fact.calls):
            continue
        for call in fact.calls:
            if call.name not in {"{}", "dict"} or len(call.keywords) < 3:
                continue
            keys = frozenset(k for k, _ in call.keywords)
            field = next((k for k in keys if program.words.field(k) == "logprob"), "")
            if field and not any(_reads(fn.fact, field) for fn in program.functions if fn.number != number):
                yield Unread(number, call.line, field, keys - {field}, number in apart)


def _reads(fact: Function, key: str) -> bool:
    """A path, a name of a call or a constant of the function mentions the key."""
    item, attribute, text = f"[{key}]", f".{key}", (f"='{key}'", f'="{key}"')

    def mentions(atom: str | int) -> bool:
        return isinstance(atom, str) and (
            item in atom or atom in text or atom.endswith(attribute) or f"{attribute}." in atom or f"{attribute}[" in atom
        )

    for call in fact.calls:
        if item in call.name or f"{attribute}." in call.name or f"{attribute}[" in call.name or call.name == attribute:
            return True
        if any(mentions(a) for arg in (*call.args, call.receiver, *(v for _, v in call.keywords)) for a in arg):
            return True
    if any(mentions(a) for b in fact.binds for a in b.value) or any(mentions(a) for b in fact.blocks for a in b.detail):
        return True
    return any(mentions(a) for e in fact.exits for item_ in e.items for a in item_)
