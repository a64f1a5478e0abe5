"""Does the learning-rate schedule advance in the unit its length is counted in, and with the train steps? (GYR205, GYR209).

A horizon is a product of counts (`len(loader) * rounds`). Each count that is also the count of a loop ties the horizon to that loop.
When every factor is so explained and the schedule advances in a loop deeper whose count is no factor, it ends that much too early.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.finding import Evidence
from gyrecheck.program.program import ACTING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes import steps
from gyrecheck.verdict.shapes.horizon import horizon, listed, plain, terms
from gyrecheck.verdict.shapes.optimizer_pass import rhythm, wrapped
from gyrecheck.verdict.shapes.steps import BACK, SCHEDULE, STEP, Event
from gyrecheck.verdict.shapes.suspect import Suspect, at_call


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
    if around and (strided := _strided(program, root, event, around)) is not None:
        yield strided
        return
    if not around or any(True for _ in steps.branches(program, event, around[0])):
        return
    told = horizon(program, root, event.who)
    if told is None:
        return
    factors, places = told
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
                f"{listed(passes)}, but the schedule's length counts {listed(factors)}: another unit",
            evidence=(*places, Evidence(*_loop_line(program, event, around[0]), label="because", text="it advances in this loop")),
            side="training", hint="count the schedule's length in the passes of this loop",
        )  # fmt: skip
        return
    rows = _rows(program, event, around[0])
    if rows is not None and rows[0] in factors and not rows[1] & factors and not any("()" in f for f in factors):
        yield at_call(
            program, *event.place, "GYR209", f"`{readable(program.call(*event.place))}` advances once a batch, but the schedule's length counts "
                f"the rows of `{rows[0]}`: it never reaches its end",
            evidence=(*places, Evidence(*_loop_line(program, event, around[0]), label="because", text="it advances in this loop")),
            side="training", hint="count the length in batches: len(loader)",
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
        inner = ", ".join(sorted(plain(t) for t in deeper[0]))
        yield at_call(
            program, *event.place, "GYR209",
            f"`{readable(call)}` advances once for each pass over `{inner}`, but "
                f"the schedule's length counts {listed(factors)}: it ends too early",
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
            inner = ", ".join(sorted(plain(t) for t in _count(program, step, counted[0]) & factors))
            call = program.call(*event.place)
            yield at_call(
                program, *event.place, "GYR209",
                f"`{readable(call)}` advances outside the loop over `{inner}` that the schedule's length counts: it never reaches its end",
                evidence=(*places, steps.evidence(program, step, "the optimizer steps in that loop")), side="training",
                hint="step the schedule right after the optimizer, or leave that factor out of the length",
            )  # fmt: skip
            return


def _strided(program: Program, root: int, event: Event, around: list[tuple[int, int]]) -> Suspect | None:
    """The length is the bound of a loop whose counter makes larger strides, or that advances the schedule on every n-th pass only."""
    told = horizon(program, root, event.who)
    if told is None or len(told[0]) != 1:
        return None
    bound = next(iter(told[0]))
    for depth, block in around:
        number = event.way[depth][0]
        names = event.names[depth] if depth < len(event.names) else {}
        head = program.tree.functions[number].fact.blocks[block]
        if bound not in terms(program, number, head.detail, names, 0, expand=False):
            continue
        why = _stride(program, event, (depth, block))
        if why is None:
            return None
        return at_call(
            program, *event.place, "GYR209", f"`{readable(program.call(*event.place))}` advances less often than `{plain(bound)}`, which "
                "is the schedule's length, is counted: it never reaches its end",
            evidence=(*told[1], program.place(number, *why, "because")), side="training",
            hint="count the schedule's length in its own steps",
        )  # fmt: skip
    return None


def _stride(program: Program, event: Event, loop: tuple[int, int]) -> tuple[int, str] | None:
    """Where it shows that a pass of the loop is more than one of what the loop counts, or that the schedule misses passes."""
    number = event.way[loop[0]][0]
    fact = program.tree.functions[number].fact
    head = fact.blocks[loop[1]]
    branch = rhythm(program, event, loop)
    if branch is not None and "%" in branch[1].op and not {"=1"} & {a for a in branch[1].detail if isinstance(a, str)}:
        return branch[1].line, "it advances only when this holds"
    if head.kind == "while":
        for bind in fact.binds:
            if bind.form != "+=" or bind.op != "+" or bind.target not in head.detail or not program.within(number, bind.block, loop[1]):
                continue
            inner = program.loop_of(number, bind.block)
            deeper = inner != loop[1] and not program.within(number, steps.block_at(program, event, loop[0]), inner)
            if deeper or not any(str(a) in {"=1", "=1.0"} for a in bind.value):
                return bind.line, f"{bind.target} is counted here"
    for atom in head.detail if head.kind == "for" else ():
        if isinstance(atom, int) and fact.calls[atom].name == "range" and len(fact.calls[atom].args) == 3:
            return head.line, "the loop takes larger strides"
    return None


def _rows(program: Program, event: Event, loop: tuple[int, int]) -> tuple[str, set[str]] | None:
    """What a loop over batches walks: the rows' name, and the terms of the batch's size."""
    number = event.way[loop[0]][0]
    fact = program.tree.functions[number].fact
    head = fact.blocks[loop[1]]
    atoms = [a for a in head.detail if head.kind == "for"]
    for atom in list(atoms):
        if isinstance(atom, str):
            atoms += [v for b in fact.binds if b.target == atom and b.form == "=" and b.order < head.order for v in b.value]
    for atom in atoms:
        if not isinstance(atom, int):
            continue
        call = fact.calls[atom]
        last = call.name.rpartition(".")[2]
        if last in program.words["seen_through"]:
            atoms += [a for arg in call.args for a in arg if isinstance(a, int)]
        size = next(
            (v for k, v in call.keywords if k in {"batch_size", "size", "minibatch_size"}), call.args[1] if len(call.args) > 1 else ()
        )
        if (
            last in program.words["batchers"]
            and call.args
            and len(call.args[0]) == 1
            and isinstance(call.args[0][0], str)
            and size not in {(), ("=1",)}
        ):
            names = event.names[loop[0]] if loop[0] < len(event.names) else {}
            return next(iter(terms(program, number, call.args[0], names, 0, expand=False))), terms(
                program, number, size, names, 0, expand=False
            )
    return None


def _loop_line(program: Program, event: Event, loop: tuple[int, int]) -> tuple[str, int]:
    number = event.way[loop[0]][0]
    return program.path(number), program.tree.functions[number].fact.blocks[loop[1]].line


def _count(program: Program, event: Event, loop: tuple[int, int]) -> set[str]:
    """What a loop's passes are counted by, in the root's terms."""
    depth, block = loop
    number = event.way[depth][0]
    names = event.names[depth] if depth < len(event.names) else {}
    return terms(program, number, program.tree.functions[number].fact.blocks[block].detail, names, 0, expand=False)


def _passes(program: Program, event: Event, loop: tuple[int, int]) -> set[str]:
    """What a counted loop's number of passes is made of, names followed to their values; empty for a loop over data."""
    depth, block = loop
    number = event.way[depth][0]
    names = event.names[depth] if depth < len(event.names) else {}
    fact = program.tree.functions[number].fact
    detail = fact.blocks[block].detail
    if not any(isinstance(a, int) and fact.calls[a].name in {"range", "trange"} for a in detail):
        return set()
    return terms(program, number, detail, names, 0, expand=True)


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
    if acting and not _counted_by(program, event, loop, taken):
        place = program.call(*acting[0])
        yield at_call(
            program, *event.place, "GYR205", f"`{readable(call)}` advances with every `{readable(place)}`, not with the train steps",
            evidence=(program.place(number, place.line, f"samples in the same loop: {readable(place)}", "because", place.column + 1),
                      *(steps.evidence(program, e, "the optimizer steps only on some passes") for e in taken[:1])),
            side="training", hint="step the schedule where the optimizer steps",
        )  # fmt: skip
        return
    if acting:
        return
    if not taken:
        yield from _between_steps(program, event, found, around)
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


def _counted_by(program: Program, event: Event, loop: tuple[int, int], taken: list[Event]) -> bool:
    """The schedule is as long as the loop that it advances in, and the optimizer steps in every pass once a first number is reached."""
    number = event.way[loop[0]][0]
    told = horizon(program, event.way[0][0], event.who) or horizon(program, number, program.call(*event.place).name.rpartition(".")[0])
    if told is None or not told[0] or not told[0] <= _count(program, event, loop):
        return False
    return any(
        all(
            b.kind == "then" and b.op in {">", ">="} and all(isinstance(a, str) for a in b.detail)
            for _, _, b in steps.branches(program, e, loop)
        )
        for e in taken
    )


def _between_steps(program: Program, event: Event, found: list[Event], around: list[tuple[int, int]]) -> Iterator[Suspect]:
    """The schedule advances in a loop that only adds gradients up; the optimizer steps once after it."""
    loop = around[0]
    adds = [e for e in found if e.role == BACK and steps.inside(program, e, event, loop)]
    after = [
        e for e in found
        if e.role == STEP and e.way[: loop[0]] == event.way[: loop[0]] and not steps.inside(program, e, event, loop) and len(e.way) > loop[0]
        and e.way[loop[0]][0] == event.way[loop[0]][0]
        and program.loops_of(e.way[loop[0]][0], steps.block_at(program, e, loop[0])) == program.loops_of(*_outside(program, event, loop))
    ]  # fmt: skip
    if not adds or not after:
        return
    call = program.call(*event.place)
    yield at_call(
        program, *event.place, "GYR205", f"`{readable(call)}` advances with every backward pass, the optimizer steps once after all of them",
        evidence=(steps.evidence(program, adds[0], "gradients are only added up in this loop"), steps.evidence(program, after[0], "the step")),
        side="training", hint="step the schedule right after the optimizer",
    )  # fmt: skip


def _outside(program: Program, event: Event, loop: tuple[int, int]) -> tuple[int, int]:
    """The function and the block around a loop."""
    number = event.way[loop[0]][0]
    return number, program.tree.functions[number].fact.blocks[loop[1]].parent
