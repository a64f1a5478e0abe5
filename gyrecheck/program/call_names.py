"""What a call's own spelling says: the name before the method, and what a variable of a name would do when it is called."""

from __future__ import annotations

from gyrecheck.model.facts import Call
from gyrecheck.model.finding import Confidence
from gyrecheck.program.tree import Fn
from gyrecheck.rulebook.lexicon import Lexicon


def called_directly(lexicon: Lexicon, name: str) -> tuple[str, Confidence] | None:
    """The role of calling a value of this name directly, e.g. `critic(x)`."""
    named = lexicon.named(name)
    role = named.methods.get("__call__") if named is not None else None
    return (role, Confidence(named.confidence)) if named is not None and role else None


def receiver_name(call: Call, fn: Fn) -> str:
    """The last name before the method, without items: `self.envs[].step` -> `envs`."""
    if call.name.startswith("."):
        for atom in call.receiver:
            if isinstance(atom, int):
                inner = fn.fact.calls[atom].name
                return "super" if inner == "super" else inner.rpartition(".")[2] if not inner.startswith(".") else ""
            if not atom.startswith(("=", "<")):
                return bare(atom)
        return ""
    head = call.name.rpartition(".")[0]
    return bare(head)


def bare(path: str) -> str:
    """The last name of a path, without items."""
    while path.endswith("]"):
        path = path[: path.rfind("[")]
    return path.rpartition(".")[2]


def fits(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a folded name is one of the patterns; `*` at either end stands for anything."""
    for pattern in patterns:
        if (
            pattern == name
            or (pattern.startswith("*") and name.endswith(pattern[1:]))
            or (pattern.endswith("*") and name.startswith(pattern[:-1]))
        ):
            return True
    return False
