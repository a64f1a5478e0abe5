"""Do both sides use one model object while both run, or is what is published never loaded? (GYR105, GYR108, GYR302, GYR406)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Bind
from gyrecheck.model.finding import Severity
from gyrecheck.program.program import ACTING, LEARNING, Program, readable, roots
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, at_bind, at_call

_HANDBACK = ("weights.load", "weights.publish")


def shared_model(program: Program, layout: Layout) -> Iterator[Suspect]:
    """Module-level models and containers that both sides use, and models passed to two parts that run at once."""
    sides = {d.function: d.duty for d in layout.duties}
    yield from _globals(program, sides, layout)
    yield from given_to_both(program)
    yield from _published(program, layout)


def _globals(program: Program, sides: dict[int, str], layout: Layout) -> Iterator[Suspect]:
    importers = _importers(program)
    kinds = [set[str]() for _ in program.tree.modules]
    for number, duty in sides.items():
        kinds[program.functions[number].module].add(duty)
    seen_by: dict[int, set[int]] = {}
    for (target, _), modules in importers.items():
        seen_by.setdefault(target, set()).update(modules)
    for module, own in enumerate(kinds):
        if not own.union(*(kinds[m] for m in seen_by.get(module, ()))) >= {"sampler", "trainer"}:
            continue
        body = program.tree.first_function[module]
        names = program.tree.names(body)
        for name, binds in names.binds.items():
            if not name.isidentifier() or binds[0].form not in {"=", ":"}:
                continue
            kind = _kind(program, body, name, binds[0])
            if kind not in {"module", "container"}:
                continue
            readers = _readers(program, module, name, importers)
            acting = [n for n in readers if sides.get(n) == "sampler" and program.has(n, *ACTING)]
            learning = [n for n in readers if sides.get(n) == "trainer" and program.has(n, *LEARNING)]
            if not acting or not learning:
                continue
            if kind == "module":
                yield from _one_model(program, body, name, binds[0], acting, learning)
            elif not layout.stated.is_carrier(module, name):
                yield from _side_channel(program, body, name, binds[0], acting, learning)


def _one_model(program: Program, body: int, name: str, bind: Bind, acting: list[int], learning: list[int]) -> Iterator[Suspect]:
    if any(program.has(n, *_HANDBACK, full=True) or _locked(program, n) for n in acting):
        return
    a, b = program.functions[acting[0]].fact, program.functions[learning[0]].fact
    yield at_bind(
        body, bind, "GYR105", f"`{name}` is one object that `{program.name(acting[0])}` "
            f"samples with and `{program.name(learning[0])}` trains",
        evidence=(program.place(acting[0], a.line, f"{program.name(acting[0])} samples with it", "because"),
                  program.place(learning[0], b.line, f"{program.name(learning[0])} trains it", "because")),
        hint="give the sampler its own copy and load published weights into it, with their version, between trajectories",
    )  # fmt: skip


def _side_channel(program: Program, body: int, name: str, bind: Bind, acting: list[int], learning: list[int]) -> Iterator[Suspect]:
    fill = [
        (n, at)
        for n in acting
        for at, c in enumerate(program.functions[n].fact.calls)
        if c.name.rpartition(".")[0] == name and c.name.rpartition(".")[2] in program.words["stores"]
    ]
    if not fill or not any(program.own(n, "carrier.write", "buffer.put") and not _is_that(program, n, name) for n in acting):
        return
    number, at = fill[0]
    call = program.call(number, at)
    yield at_bind(
        body, bind, "GYR302", f"`{name}` carries data from `{program.name(number)}` to "
            f"`{program.name(learning[0])}` beside the declared carrier",
        evidence=(program.place(number, call.line, f"filled here: {readable(call)}", "because", call.column + 1),
                  program.place(learning[0], program.functions[learning[0]].fact.line, f"{program.name(learning[0])} reads it", "because")),
        hint="put the data into the record",
    )  # fmt: skip


def _is_that(program: Program, number: int, name: str) -> bool:
    return all(program.call(number, at).name.rpartition(".")[0] == name for at, _ in program.own(number, "carrier.write", "buffer.put"))


def _kind(program: Program, body: int, name: str, bind: Bind) -> str:
    kind = program.calls.kind_of(program.resolver.path(body, name))
    if kind == "module":
        return "module"
    last = next((program.call(body, a).name.rpartition(".")[2] for a in bind.value if isinstance(a, int)), "")
    if (bind.op in {"[]", "{}"} and not bind.value) or last in {"deque", "list", "dict", "defaultdict", "{}"}:
        return "container"
    return kind


def _readers(program: Program, module: int, name: str, importers: dict[tuple[int, str], list[int]]) -> list[int]:
    """Functions of the file, and importers of the name, that read the module-level `name`."""
    out = []
    for fn in (f for m in (module, *importers.get((module, name), ())) for f in program.tree.functions_of(m)):
        fact = fn.fact
        if fact.name.startswith("<"):
            continue
        names = program.tree.names(fn.number)
        if name in names.params or (name in names.binds and name not in fact.globals):
            continue
        if (
            any(c.name.startswith(name) and c.name.split(".")[0].split("[")[0] == name for c in fact.calls)
            or any(name in roots(b.value) for b in fact.binds)
            or any(name in roots(a) for c in fact.calls for a in (*c.args, *(v for _, v in c.keywords)))
        ):
            out.append(fn.number)
    return out


def _importers(program: Program) -> dict[tuple[int, str], list[int]]:
    """Which files import a name from which of our files."""
    out: dict[tuple[int, str], list[int]] = {}
    for module, facts in enumerate(program.tree.modules):
        for entry in facts.imports:
            if entry.kind == "from" and not entry.level:
                target = program.tree.module(entry.module, module)
                if target >= 0:
                    out.setdefault((target, entry.name), []).append(module)
    return out


def _locked(program: Program, number: int) -> bool:
    fact = program.functions[number].fact
    names = [str(a) if isinstance(a, str) else fact.calls[a].name for b in fact.blocks if b.kind == "with" for a in b.detail]
    return any("lock" in n.lower() or "mutex" in n.lower() or "condition" in n.lower() for n in names)


def given_to_both(program: Program) -> Iterator[Suspect]:
    """One model given to two parts that run at once, one of which trains it while the other acts with it."""
    for fn in (program.functions[n] for n in program.doing("thread.start", hints=True)):
        starts = {at for at, _ in program.own(fn.number, "thread.start", hints=True)}
        parts = [
            (e.call, e.callee)
            for e in program.calls.edges[fn.number]
            if (e.call in starts and e.kind == "passed") or (e.kind == "call" and e.call > min(starts))
        ]
        acting = [(c, f) for c, f in parts if program.has(f, *ACTING, full=True) and not program.has(f, *LEARNING, full=True)]
        learning = [(c, f) for c, f in parts if program.has(f, *LEARNING, full=True) and not program.has(f, *ACTING, full=True)]
        for act_call, act in acting:
            for learn_call, learn in learning:
                if act_call not in starts and learn_call not in starts:
                    continue
                shared = _given(program, fn.number, act_call) & _given(program, fn.number, learn_call)
                models = [m for m in sorted(shared) if _is_model(program, fn.number, m)]
                if not models or program.has(act, "weights.load", full=True) or _locked(program, act) or _copies(program, act):
                    continue
                call = program.call(fn.number, learn_call)
                first = program.call(fn.number, act_call)
                yield at_call(
                    program, fn.number, act_call, "GYR108",
                    f"`{models[0]}` is given to `{program.name(act)}`, which acts "
                        f"with it while `{program.name(learn)}` trains the same object",
                    evidence=(program.place(fn.number, first.line,
                    f"{program.name(act)} runs at the same time", "because", first.column + 1),
                              program.place(fn.number, call.line, f"{program.name(learn)} trains it", "because", call.column + 1)),
                    hint="give the sampler its own copy and load published weights between trajectories", key=models[0],
                    at_most=Severity.NOTE if _only_loads(program, learn, models[0]) else Severity.ERROR,
                )  # fmt: skip


def _only_loads(program: Program, learn: int, model: str) -> bool:
    """The trainer trains another object and only copies its weights into this one."""
    tail = model.rpartition(".")[2]
    return any(program.call(learn, at).name.rpartition(".")[0].rpartition(".")[2] == tail for at, _ in program.own(learn, "weights.load"))


def _given(program: Program, number: int, at: int) -> set[str]:
    call = program.call(number, at)
    return {
        a for atoms in (*call.args, *(v for _, v in call.keywords)) for a in atoms if isinstance(a, str) and not a.startswith(("=", "<"))
    }


def _is_model(program: Program, number: int, path: str) -> bool:
    kind = program.calls.kind_of(program.resolver.path(number, path))
    if kind:
        return kind == "module"
    named = program.lexicon.named(path)
    return named is not None and named.kind == "module"


def _copies(program: Program, number: int) -> bool:
    return any(c.name.rpartition(".")[2] in {"deepcopy", "clone_model"} for c in program.functions[number].fact.calls)


def _published(program: Program, layout: Layout) -> Iterator[Suspect]:
    """Weights are published, a sampler is there, and nothing in the group ever loads any."""
    for group in layout.groups:
        own = [fn for m in group.modules for fn in program.tree.functions_of(m)]
        published = [(fn.number, at) for fn in own for at, _ in program.own(fn.number, "weights.publish")]
        if not published or not any(program.own(fn.number, *ACTING) for fn in own):
            continue
        if any(
            program.own(fn.number, "weights.load", hints=True)
            or any(c.name.rpartition(".")[2] in program.words["loads"] for c in fn.fact.calls)
            for fn in own
        ):
            continue
        number, at = published[0]
        yield at_call(
            program, number, at, "GYR406", f"`{readable(program.call(number, at))}` publishes weights, and no sampling code ever loads any",
            hint="load the published weights in the sampler between trajectories, then raise its version", side="sampling",
        )  # fmt: skip
