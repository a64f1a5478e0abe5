"""Is the first observation of the next episode stored as the successor of the last step? (GYR317)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Bind, Call, Function
from gyrecheck.program.flow import prefixes
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, at_bind, at_call

_HINT = 'take info["final_observation"] for the copies that were truncated'
_NEXT = ("next", "succ", "nxt", "obs2", "obs_2", "tp1", "after")
_MANY = frozenset({"envs", "venv", "vec_env", "vecenv", "vector_env", "env_pool", "envpool"})


def after_reset(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Transitions of vector environments that keep what `step` returned as the successor and the termination flag alone."""
    for number in program.doing("env.step"):
        fn = program.functions[number]
        if "evaluation" in program.region(number) or fn.fact.name.startswith("test"):
            continue
        for at, _ in program.own(number, "env.step"):
            step = fn.fact.calls[at]
            names = {int(b.form.partition("/")[0]): b.target for b in fn.fact.binds if at in b.value and b.form.endswith("/5")}
            if len(names) < 4 or not _vector(step) or _mentions(program, fn.module):
                continue
            successor, ended, cut = names.get(0, ""), names.get(2, ""), names.get(3, "")
            later = [i for i, c in enumerate(fn.fact.calls) if c.order > step.order]
            store = next((i for i in later if _keeps(program, number, i, successor, ended)), -1)
            row = _row(fn.fact, step, successor, ended) if store < 0 else None
            if (store < 0 and row is None) or any(b.target.startswith(f"{successor}[") and b.order > step.order for b in fn.fact.binds):
                continue
            if cut and (
                any(cut in prefixes(p) for p in _paths(fn.fact, fn.fact.calls[store])) if row is None else _kept(fn.fact, step, cut)
            ):
                continue  # both flags are handed on: the reader may leave those rows out
            said = (
                f"`{successor}` is stored as the successor, but where an episode was cut off it is the first observation of the next one: "
                "the target is bootstrapped from it"
            )
            because = program.place(number, step.line, f"these environments reset themselves: {readable(step)}", "because", step.column + 1)
            more = {"evidence": (because,), "hint": _HINT, "side": "sampling", "key": successor}
            yield (
                at_bind(number, row, "GYR317", said, **more) if row is not None else at_call(program, number, store, "GYR317", said, **more)
            )
            break


def _row(fact: Function, step: Call, successor: str, ended: str) -> Bind | None:
    """The binding that puts the successor into a row of arrays in which the end flag is kept, too."""
    return (_kept(fact, step, successor, _NEXT) if _kept(fact, step, ended) is not None else None) if successor else None


def _kept(fact: Function, step: Call, name: str, words: tuple[str, ...] = ("",)) -> Bind | None:
    """Where `name` itself is put at an index of an array that is called by one of `words`."""
    for bind in fact.binds:
        if bind.order > step.order and bind.target.endswith("]") and name in bind.value and any(w in bind.target.lower() for w in words):
            return bind
    return None


def _vector(step: Call) -> bool:
    owner = step.name.rpartition(".")[0].rpartition(".")[2].lower()
    return owner in _MANY or owner.endswith("_envs")


def _mentions(program: Program, module: int) -> bool:
    """The file speaks of last observations, or of another way to reset than within the step that ends an episode."""
    said = _said(program, module)
    if any(program.words.has("final_observation", s) for s in said):
        return True
    return any(program.words.has("reset_mode", s) for s in said) and not any(program.words.has("resets_at_once", s) for s in said)


def _said(program: Program, module: int) -> list[str]:
    """Every path, keyword and constant of a file, and the names that it imports."""
    out = [f"{entry.module}.{entry.name}" for entry in program.tree.modules[module].imports]
    for fn in program.tree.functions_of(module):
        fact = fn.fact
        said = [*(b.target for b in fact.binds), *(a for b in fact.binds for a in b.value if isinstance(a, str))]
        for call in fact.calls:
            said += [call.name, *(k for k, _ in call.keywords)]
            said += [a for atoms in (*call.args, *(v for _, v in call.keywords)) for a in atoms if isinstance(a, str)]
        said += [a for block in fact.blocks for a in block.detail if isinstance(a, str)]
        out += said
    return out


def _keeps(program: Program, number: int, at: int, successor: str, ended: str) -> bool:
    """The call stores the successor and the end flag in one row."""
    fact = program.tree.functions[number].fact
    call = fact.calls[at]
    head, _, last = call.name.rpartition(".")
    if program.role(number, at) != "buffer.put" and not (head and last in program.words["stores"]):
        return False
    given = _paths(fact, call)
    return any(successor in prefixes(p) for p in given) and any(ended in prefixes(p) for p in given)


def _paths(fact: Function, call: Call) -> list[str]:
    """The paths that go into a call's arguments."""
    out: list[str] = []
    for atom in (*(a for arg in call.args for a in arg), *(a for _, v in call.keywords for a in v)):
        if isinstance(atom, int):
            inner = fact.calls[atom]
            out += [*_paths(fact, inner), inner.name.rpartition(".")[0]]
        else:
            out.append(atom)
    return out
