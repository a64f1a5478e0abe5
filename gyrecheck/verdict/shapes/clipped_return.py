"""Does a function give back a bounded action with the log-prob of the draw before, and the caller keep the two? (GYR315).

The draw itself is lost on the way: nothing that the function gives back or keeps holds it. Silent where the caller keeps neither, or where
the density says that the bounds are its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from gyrecheck.model.facts import Atoms, Bind, Call, Exit, Function
from gyrecheck.program.flow import prefixes, reach
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, in_tests

_TINY = re.compile(r"=-?(?:0?\.00\d+|\d(?:\.\d+)?e-\d+|0?\.9{3,}\d*)")
_BOUNDED = re.compile(r"tanh|squash|transformeddist|(?:^|\.)beta$|truncatednormal")
_LOGPROB = frozenset({"log_prob"})
_CLIPS = frozenset({"clamp", "clip", "clamp_", "clip_", "hardtanh"})
_SEEN_THROUGH = frozenset({"numpy", "cpu", "detach", "tolist", "item", "float", "astype", "squeeze", "to", "asarray", "flatten"})


def clipped_return(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every function that returns a clipped draw beside the draw's log-prob, where a caller records both."""
    for number in program.calling(_LOGPROB):
        fact = program.tree.functions[number].fact
        for at, call in enumerate(fact.calls):
            drawn = _argument(call)
            if not drawn or in_tests(program, number):
                continue
            flow = reach(fact, [at])
            for given in fact.exits:
                places = _given(fact, given, drawn, flow.any)
                if places is not None and _recorded(program, number, places, len(given.items)):
                    clip = _clip_of(fact, given.items[places[0]], drawn)
                    if (clip is not None and _only_guards(clip)) or _bounded(fact, call.name.rpartition(".")[0]):
                        continue
                    line = clip.line if clip is not None else given.line
                    yield Suspect(
                        "GYR315", number, given.line, given.column, f"`{program.name(number)}` gives back `{drawn}` clipped, with the log-prob of "
                            "the draw before, and both are recorded: the trainer's ratio is off",
                        evidence=(program.place(number, call.line, f"the log-prob is of this action: {readable(call)}", "because", call.column + 1),
                                  program.place(number, line, "the action is clipped here", "because")),
                        side="sampling", hint="give back the draw, too, store it, and clip only what the environment is given", key=drawn,
                    )  # fmt: skip
                    return


def _argument(call: Call) -> str:
    if call.name.rpartition(".")[2] != "log_prob" or len(call.args) != 1 or len(call.args[0]) != 1:
        return ""
    action = call.args[0][0]
    return action if isinstance(action, str) and not action.startswith(("=", "<")) else ""


def _given(fact: Function, given: Exit, drawn: str, carries_logp: Callable[[Atoms], bool]) -> tuple[int, int] | None:
    """Which items of a returned tuple are the clipped draw and its log-prob; None when the draw itself is given back or kept, too."""
    if given.kind != "return" or len(given.items) < 2:
        return None
    clipped = next((i for i, item in enumerate(given.items) if _clip_of(fact, item, drawn) is not None), -1)
    logp = next((i for i, item in enumerate(given.items) if i != clipped and carries_logp(item)), -1)
    plain = any(drawn in item for i, item in enumerate(given.items) if i != clipped)
    kept = any(b.target.startswith("self.") and drawn in _read(fact, b.value) for b in fact.binds)
    return None if clipped < 0 or logp < 0 or plain or kept else (clipped, logp)


def _clip_of(fact: Function, atoms: Atoms, drawn: str, depth: int = 0) -> Call | None:
    """The call that clips the draw on the way to a value."""
    for atom in atoms if depth < 4 else ():
        if isinstance(atom, str):
            binds = [b for b in fact.binds if b.target == atom and b.form == "="] if not atom.startswith("=") else []
            if len(binds) == 1 and binds[0].value and atom != drawn and (found := _clip_of(fact, binds[0].value, drawn, depth + 1)):
                return found
            continue
        call = fact.calls[atom]
        head, _, last = call.name.rpartition(".")
        given = (*call.receiver, *(a for arg in call.args for a in arg))
        if last in _CLIPS and (head == drawn or drawn in given):
            return call
        if last in _SEEN_THROUGH and (found := _clip_of(fact, (*given, *((head,) if head else ())), drawn, depth + 1)):
            return found
    return None


def _bounded(fact: Function, density: str) -> bool:
    """The density lies within its bounds by itself, as one that is squashed by tanh does: a clip changes nothing of the draw."""
    made = [a for b in fact.binds if b.target == density for a in b.value if isinstance(a, int)]
    near = [a for i in made for arg in (*fact.calls[i].args, *(v for _, v in fact.calls[i].keywords)) for a in arg]
    names = [fact.calls[a].name if isinstance(a, int) else a for a in (*made, *near)]
    return any(_BOUNDED.search(name.lower()) for name in names)


def _only_guards(clip: Call) -> bool:
    """The bounds lie a hair inside of the density's own: a guard of the numbers, no other action."""
    bounds = [str(a) for arg in (*clip.args, *(v for _, v in clip.keywords)) for a in arg]
    return any("eps" in a.lower().rpartition(".")[2] or _TINY.fullmatch(a) for a in bounds)


def _read(fact: Function, atoms: Atoms) -> set[str]:
    out: set[str] = set()
    for atom in atoms:
        if isinstance(atom, str):
            out.update(prefixes(atom))
        else:
            call = fact.calls[atom]
            out |= _read(fact, (*call.receiver, *(a for arg in call.args for a in arg), call.name.rpartition(".")[0] or "="))
    return out


def _recorded(program: Program, number: int, places: tuple[int, int], count: int) -> bool:
    """Somebody who calls a function of this name, and unpacks as many values, puts both into one row."""
    name = program.tree.functions[number].fact.name
    for caller in program.calling(frozenset({name})):
        if "evaluation" in program.region(caller):
            continue
        fact = program.tree.functions[caller].fact
        for at, call in enumerate(fact.calls):
            if call.name.rpartition(".")[2] != name or call.result != count:
                continue
            names = {int(b.form.partition("/")[0]): b for b in fact.binds if at in b.value and "/" in b.form}
            if places[0] in names and places[1] in names and _kept_together(program, fact, names[places[0]], names[places[1]]):
                return True
    return False


def _kept_together(program: Program, fact: Function, action: Bind, logp: Bind) -> bool:
    own, other = reach(fact, binds=[action]), reach(fact, binds=[logp])
    for at, call in enumerate(fact.calls):
        head, _, last = call.name.rpartition(".")
        stores = (bool(head) and last in program.words["stores"]) or call.name in {"{}", "dict"}
        if stores and at in own.taken and at in other.taken:
            return True
    rows = [b for b in fact.binds if b.target.endswith("]") and b.order > action.order]
    return any(action.target in b.value for b in rows) and any(logp.target in b.value for b in rows)
