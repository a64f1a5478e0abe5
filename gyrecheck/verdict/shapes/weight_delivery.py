"""Which calls bring weights to the samplers, and where a version moves on behind them."""

from __future__ import annotations

from gyrecheck.model.facts import Bind, Call, Function
from gyrecheck.program.program import LEARNING, Program

_TELLS = ("set_", "notify", "announce", "tell", "update_", "publish_", "bump", "put", "send")
_NOT = frozenset({"get", "append", "info", "format", "items", "result", "join", "parameters", "state_dict", "named_parameters", "update"})
_KEPT = (
    "hub",
    "upload",
    "download",
    "artifact",
    "backup",
    "save",
    "disk_cache",
    "optim",
    "sched",
    "wandb",
    "metric",
    "stats",
    "tokenizer",
    "config",
)
"""Parts of a call's name: weights go into a file or elsewhere for keeping."""
_BLOCKS = frozenset({"then", "else", "case", "except", "tryelse", "for", "while"})


def brings(program: Program, number: int, at: int, *, by_keys: bool = False) -> bool:
    """A method call that by its name, or by what it is given, brings weights to somebody; one that trains or saves does not.

    With `by_keys` a request counts that says so in its body: `post(url, json={"model_path": path})`.
    """
    fact = program.tree.functions[number].fact
    call = fact.calls[at]
    name = call.name.removesuffix(".remote")
    head, _, last = name.rpartition(".")
    if (
        (not head and not call.receiver)
        or call.result == -2
        or last in _NOT
        or name == "ray.put"
        or "version" in last
        or any(word in name.lower() for word in _KEPT)
    ):
        return False
    role = program.known_role(number, at)
    if role is not None and role[0] in {*LEARNING, "target.update", "buffer.put", "scheduler.step"}:
        return False
    if not program.words.has("brings", last):
        return False
    return any(program.words.has("carried_weights", part) for part in (last, head)) or _of_weights(program, fact, call, by_keys=by_keys)


def _of_weights(program: Program, fact: Function, call: Call, *, by_keys: bool = False) -> bool:
    for atom in (*(a for arg in call.args for a in arg), *(a for _, v in call.keywords for a in v)):
        if isinstance(atom, int):
            inner = fact.calls[atom]
            keys = " ".join(k for k, _ in inner.keywords) if by_keys and inner.name == "{}" else ""
            if program.words.has("carried_weights", f"{inner.name} {keys}") or _of_weights(program, fact, inner, by_keys=by_keys):
                return True
        elif not atom.startswith(("=", "<")) and program.words.has("carried_weights", atom):
            return True
    return False


def version_raised(program: Program, fact: Function, after: int, around: int) -> Bind | int | None:
    """The first version that is raised or told behind `after` on the same path; None when something asks, leaves or checks before that."""
    until = next((e.order for e in fact.exits if e.order > after and e.block in _up(fact, around)), 1 << 60)
    for bind in fact.binds:
        if not (
            after < bind.order < until and always(fact, bind.block, around) and "." in bind.target and _is_version(program, bind.target)
        ):
            continue
        if bind.form == "+=" or (bind.form == "=" and any(not str(a).startswith("=") for a in bind.value)):
            return bind
    for index, call in enumerate(fact.calls):
        last = call.name.rpartition(".")[2].lower()
        if after < call.order < until and always(fact, call.block, around) and "version" in last and last.startswith(_TELLS) and call.args:
            return index
    return None


def _up(fact: Function, block: int) -> tuple[int, ...]:
    out = []
    while block >= 0:
        out.append(block)
        block = fact.blocks[block].parent
    return tuple(out)


def always(fact: Function, block: int, around: int) -> bool:
    """Reached whenever the attempt was: in its own block or one around it, or in a plain `with` there."""
    while block not in _up(fact, around):
        if fact.blocks[block].kind in _BLOCKS:
            return False
        block = fact.blocks[block].parent
    return True


def _is_version(program: Program, target: str) -> bool:
    leaf = target.rpartition(".")[2].lower().strip("_")
    return "version" in leaf or (leaf in program.words["versions"] and "step" not in leaf and leaf != "generation")
