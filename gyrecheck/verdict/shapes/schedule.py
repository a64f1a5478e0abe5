"""Does the learning-rate schedule advance in the unit its length is counted in, and with the train steps? (GYR205, GYR209).

A horizon is a product of counts (`len(loader) * rounds`). Each count that is also the count of a loop ties the horizon to that loop.
When every factor is so explained and the schedule advances in a loop deeper whose count is no factor, it ends that much too early.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Atoms, Bind, Call
from gyrecheck.model.finding import Evidence
from gyrecheck.program.program import ACTING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes import steps
from gyrecheck.verdict.shapes.gradient_rhythm import rhythm, wrapped
from gyrecheck.verdict.shapes.steps import SCHEDULE, STEP, Event
from gyrecheck.verdict.shapes.suspect import Suspect, at_call

_DEEP = 6


def schedule(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every schedule whose unit or rhythm is off, once."""
    seen: set[tuple[str, int, int]] = set()
    for fn in program.functions:
        if SCHEDULE not in program.full.of[fn.number]:
            continue
        found = steps.events(program, fn.number)
        for event in (e for e in found if e.role == SCHEDULE):
            for suspect in (*_unit(program, fn.number, event, found), *_rhythm(program, event, found)):
                key = (suspect.code, suspect.function, suspect.line)
                if key not in seen:
                    seen.add(key)
                    yield suspect


# ---- GYR209


def _unit(program: Program, root: int, event: Event, found: list[Event]) -> Iterator[Suspect]:
    around = steps.loops(program, event)
    if not around or any(True for _ in steps.branches(program, event, around[0])):
        return
    horizon = _horizon(program, root, event.who)
    if horizon is None:
        return
    factors, places = horizon
    passes = _passes(program, event, around[0])
    deeper_terms = passes - factors
    if (
        factors < passes
        and deeper_terms
        and all(program.words.has("per_pass", term) for term in deeper_terms)
        and not any("()" in t for t in factors)
    ):
        yield at_call(
            program, *event.place, "GYR209", f"`{readable(program.call(*event.place))}` advances once a pass, and the passes are counted by "
                f"{_listed(passes)}, but the schedule's length counts {_listed(factors)}: another unit",
            evidence=(*places, Evidence(*_loop_line(program, event, around[0]), label="because", text="it advances in this loop")),
            side="training", hint="count the schedule's length in the passes of this loop",
        )  # fmt: skip
        return
    counts = [_count(program, event, loop) for loop in around]
    if not factors or not counts[0]:
        return
    deeper: list[set[str]] = []
    for count in counts:
        if count & factors:
            break
        deeper.append(count)
    outer = {term for count in counts[len(deeper) :] for term in count}
    call = program.call(*event.place)
    way = [
        program.place(n, program.call(n, c).line, f"{program.name(n)} calls {readable(program.call(n, c))}", "through")
        for n, c in event.way[:-1]
    ]
    loop_line = _loop_line(program, event, around[0])
    if deeper and outer and factors <= outer and all(deeper):
        inner = ", ".join(sorted(_plain(t) for t in deeper[0]))
        yield at_call(
            program, *event.place, "GYR209",
            f"`{readable(call)}` advances once for each pass over `{inner}`, but "
                f"the schedule's length counts {_listed(factors)}: it ends too early",
            evidence=(*places, *way, Evidence(*loop_line, label="because", text="it advances in this loop")), side="training",
            hint=f"multiply the length by `{inner}`, or step the schedule once for each outer pass",
        )  # fmt: skip
        return
    if not deeper:
        yield from _too_long(program, event, found, factors, around[0], places, outer)


def _too_long(
    program: Program,
    event: Event,
    found: list[Event],
    factors: set[str],
    loop: tuple[int, int],
    places: tuple[Evidence, ...],
    outer: set[str],
) -> Iterator[Suspect]:
    """The reverse: the length counts an inner loop in which the optimizer steps, and the schedule advances outside it."""
    for step in (e for e in found if e.role == STEP):
        if not steps.inside(program, step, event, loop):
            continue
        inside: list[tuple[int, int]] = []
        for lp in steps.loops(program, step):
            if lp == loop:
                break
            inside.append(lp)
        counted = [lp for lp in inside if _count(program, step, lp) & (factors - outer)]
        if counted and factors <= outer | {t for lp in inside for t in _count(program, step, lp)}:
            inner = ", ".join(sorted(_plain(t) for t in _count(program, step, counted[0]) & factors))
            call = program.call(*event.place)
            yield at_call(
                program, *event.place, "GYR209",
                f"`{readable(call)}` advances outside the loop over `{inner}` that the schedule's length counts: it never reaches its end",
                evidence=(*places, steps.evidence(program, step, "the optimizer steps in that loop")), side="training",
                hint="step the schedule right after the optimizer, or leave that factor out of the length",
            )  # fmt: skip
            return


def _loop_line(program: Program, event: Event, loop: tuple[int, int]) -> tuple[str, int]:
    number = event.way[loop[0]][0]
    return program.path(number), program.tree.functions[number].fact.blocks[loop[1]].line


def _count(program: Program, event: Event, loop: tuple[int, int]) -> set[str]:
    """What a loop's passes are counted by, in the root's terms."""
    depth, block = loop
    number = event.way[depth][0]
    names = event.names[depth] if depth < len(event.names) else {}
    return _terms(program, number, program.tree.functions[number].fact.blocks[block].detail, names, 0, expand=False)


def _passes(program: Program, event: Event, loop: tuple[int, int]) -> set[str]:
    """What a counted loop's number of passes is made of, names followed to their values; empty for a loop over data."""
    depth, block = loop
    number = event.way[depth][0]
    names = event.names[depth] if depth < len(event.names) else {}
    fact = program.tree.functions[number].fact
    detail = fact.blocks[block].detail
    if not any(isinstance(a, int) and fact.calls[a].name in {"range", "trange"} for a in detail):
        return set()
    return _terms(program, number, detail, names, 0, expand=True)


def _horizon(program: Program, root: int, who: str) -> tuple[set[str], tuple[Evidence, ...]] | None:
    """The factors of the length of schedule `who`, and where it is counted."""
    for number, bind in _makers(program, root, who):
        for atom in bind.value:
            if not isinstance(atom, int):
                continue
            call = program.call(number, atom)
            if program.role(number, atom) == "scheduler.make":
                return _length(program, number, call, {})
            target = program.resolver.callee(number, atom)
            if target is not None and target.kind == "func":
                inner = int(target.ref)
                names = steps.arguments(program, call, inner, {})
                for at, _ in program.own(inner, "scheduler.make"):
                    return _length(program, inner, program.call(inner, at), names)
    return None


def _makers(program: Program, root: int, who: str) -> Iterator[tuple[int, Bind]]:
    fn = program.tree.functions[root]
    yield from ((root, b) for b in fn.fact.binds if b.target == who)
    if who.startswith("self.") and fn.cls >= 0:
        for owner in program.resolver.bases(fn.cls)[0]:
            for number in program.tree.classes[owner].methods.values():
                yield from ((number, b) for b in program.tree.functions[number].fact.binds if b.target == who)


def _length(program: Program, number: int, call: Call, names: dict[str, str]) -> tuple[set[str], tuple[Evidence, ...]] | None:
    given: Atoms | None = next((v for k, v in call.keywords if k in program.words["horizon"]), None)
    if given is None and len(call.args) >= 2 and call.name.rpartition(".")[2] not in program.words["no_horizon"]:
        given = call.args[-1] if call.name.islower() else call.args[1]
    if given is None and call.name.rpartition(".")[2] == "LambdaLR":
        return _by_lambda(program, number, call)
    if given is None:
        return None
    factors = _terms(program, number, given, names, 0, expand=True)
    places = [program.place(number, call.line, "the schedule is made here", "because", call.column + 1)]
    for atom in given:
        counted = [b for b in program.tree.functions[number].fact.binds if b.target == atom]
        places.extend(program.place(number, b.line, "its length is counted here", "because", b.column + 1) for b in counted)
    return factors, tuple(places)


def _by_lambda(program: Program, number: int, call: Call) -> tuple[set[str], tuple[Evidence, ...]] | None:
    """The counts in `lambda k: 1 - k / total`."""
    atoms = next((v for k, v in call.keywords if k == "lr_lambda"), call.args[1] if len(call.args) > 1 else ())
    text = str(atoms[0]) if len(atoms) == 1 else ""
    if not text.startswith("<lambda "):
        return None
    inner = program.tree.first_function[program.tree.functions[number].module] + int(text[8:-1])
    fact = program.tree.functions[inner].fact
    if len(fact.exits) != 1 or len(fact.exits[0].items) != 1:
        return None
    own = {p.name for p in fact.params}
    told = tuple(a for a in fact.exits[0].items[0] if a not in own)
    outer = tuple(a for a in told if isinstance(a, str) and not a.startswith("="))
    if len(outer) != sum(1 for a in told if not (isinstance(a, str) and a.startswith("="))):
        return None
    factors = _terms(program, number, outer, {}, 0, expand=True)
    return factors, (program.place(number, call.line, "the schedule is made here", "because", call.column + 1),)


def _terms(program: Program, number: int, atoms: Atoms, names: dict[str, str], depth: int, *, expand: bool) -> set[str]:
    """The counts that a value is made of, by the last part of their names; constants above 1 stand for themselves."""
    out: set[str] = set()
    if depth > _DEEP:
        return out
    fact = program.tree.functions[number].fact
    for atom in atoms:
        if isinstance(atom, int):
            call = fact.calls[atom]
            last = call.name.rpartition(".")[2]
            if last in program.words["seen_through"]:
                inner = tuple(a for arg in call.args for a in arg)
                out |= _terms(program, number, inner, names, depth + 1, expand=expand)
            elif last in program.words["splitters"]:
                given = tuple(a for arg in (*call.args, *(v for _, v in call.keywords)) for a in arg)
                out |= _terms(program, number, given, names, depth + 1, expand=expand) or {call.name}
            else:
                out.add(f"{call.name}()")
        elif atom.startswith("="):
            if atom[1:].isdigit() and int(atom[1:]) > 1:
                out.add(atom)
        elif atom in names:
            out.add(_tail(names[atom]))
        else:
            binds = [b for b in fact.binds if b.target == atom and b.form == "="] if expand else []
            known = [t for b in binds for t in _terms(program, number, b.value, names, depth + 1, expand=expand)]
            out |= set(known) or {_tail(atom)}
    return out


def _tail(path: str) -> str:
    return path.rpartition(".")[2].split("[")[0] if not path.endswith("()") else path


def _plain(term: str) -> str:
    return term.removeprefix("=")


def _listed(terms: set[str]) -> str:
    return " and ".join(f"`{_plain(t)}`" for t in sorted(terms))


# ---- GYR205


def _rhythm(program: Program, event: Event, found: list[Event]) -> Iterator[Suspect]:
    around = steps.loops(program, event)
    if not around or next(steps.branches(program, event, around[0]), None) is not None:
        return
    loop = around[0]
    taken = [e for e in found if e.role == STEP and steps.inside(program, e, event, loop)]
    always = [e for e in taken if next(steps.branches(program, e, loop), None) is None]
    if always:
        return
    number = event.way[loop[0]][0]
    acting = [
        (n, at)
        for n, at in ((number, at) for at, _ in program.own(number, *ACTING))
        if program.loop_of(n, program.call(n, at).block) == loop[1]
    ]
    call = program.call(*event.place)
    if acting:
        place = program.call(*acting[0])
        yield at_call(
            program, *event.place, "GYR205", f"`{readable(call)}` advances with every `{readable(place)}`, not with the train steps",
            evidence=(program.place(number, place.line, f"samples in the same loop: {readable(place)}", "because", place.column + 1),
                      *(steps.evidence(program, e, "the optimizer steps only on some passes") for e in taken[:1])),
            side="training", hint="step the schedule where the optimizer steps",
        )  # fmt: skip
        return
    behind = [(e, r) for e in taken if (r := rhythm(program, e, loop)) is not None]
    if behind and not wrapped(program, event):
        step, (where, block) = behind[0]
        yield at_call(
            program, *event.place, "GYR205", f"`{readable(call)}` advances on every pass, the optimizer steps only on some",
            evidence=(program.place(where, block.line, "the step happens only when this holds", "because"),
            steps.evidence(program, step, "the step")),
            side="training", hint="step the schedule on the same branch as the optimizer",
        )  # fmt: skip
