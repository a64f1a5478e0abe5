"""Does a module of one side import what belongs to the other? (GYR106, GYR201) And which modules are known by names only? (GYR003).

A module's side is what its functions do. A driver's module wires both sides and may import both; imports for annotations only, under
TYPE_CHECKING, or used by evaluation only, are no crossing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gyrecheck.model.facts import Function, Import, Module
from gyrecheck.model.finding import Confidence, Evidence, Severity
from gyrecheck.model.roles import Side
from gyrecheck.program.program import ACTING, LEARNING, SAMPLING, TRAINING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect

_MAKES = ("optimizer.make", "scheduler.make")


def imports_across(program: Program, layout: Layout) -> Iterator[Suspect]:
    """Every import from the other side; one note for each module that only names speak for."""
    wiring = {program.tree.functions[d.function].module for d in layout.duties if d.duty in {"driver", "fused", "crossing"}}
    for module, facts in enumerate(program.tree.modules):
        acts, learns = _acts(program, module), _learns(program, module)
        stated = layout.stated.side_of.get(module)
        if stated is Side.TRAINING or (stated is None and module not in wiring and learns and not acts and module not in layout.sampling):
            yield from _environments(program, module, facts, learns, stated)
        if stated is Side.SAMPLING or (stated is None and module not in wiring and acts and not learns and module not in layout.training):
            yield from _optimizers(program, module, facts, acts)
        if stated is None and not (acts and learns) and module not in wiring:
            yield from _names_only(program, module)


def _acts(program: Program, module: int) -> tuple[int, int] | None:
    own = next(((fn.number, at) for fn in program.tree.functions_of(module) for at, _ in program.own(fn.number, *ACTING)), None)
    return own or next(((fn.number, at) for fn in program.tree.functions_of(module) for at in _steps_by_name(fn.fact)), None)


def _steps_by_name(fact: Function) -> Iterator[int]:
    """Calls of, or with, the step of something named an environment: `jax.vmap(env.step)` where a wrapper of our own hides what it is."""
    for at, call in enumerate(fact.calls):
        for atom in (call.name, *(a for value in (*call.args, *(v for _, v in call.keywords)) for a in value)):
            owner, _, last = str(atom).rpartition(".")
            if last in {"step", "step_env"} and owner.rpartition(".")[2].strip("_").lower() in {
                "env",
                "envs",
                "environment",
                "vec_env",
                "venv",
            }:
                yield at


def _learns(program: Program, module: int) -> tuple[int, int] | None:
    return next(((fn.number, at) for fn in program.tree.functions_of(module) for at, _ in program.own(fn.number, *LEARNING)), None)


def _environments(program: Program, module: int, facts: Module, learns: tuple[int, int] | None, stated: Side | None) -> Iterator[Suspect]:
    if stated is None and any(c.module == module and _is_env(program, c.number) for c in program.tree.classes):
        return  # where an environment is defined, whose own step may train something
    seen: set[int] = set()
    for entry in facts.imports:
        what = _means(program, module, entry, ("env.make",))
        if what is None or not _counts(program, module, entry):
            continue
        seen.add(entry.line)
        written = what if not entry.name else f"{entry.module}.{entry.name}".strip(".")
        said = f"`{what}`" if written == what else f"`{written}`, which is `{what}`"
        yield _suspect(program, module, entry, "GYR201", f"a training module imports {said}", learns, "training side by", "training",
                       "pass observation and action shapes in the configuration")  # fmt: skip
    yield from _made_here(program, module, learns, seen)


def _optimizers(program: Program, module: int, facts: Module, acts: tuple[int, int] | None) -> Iterator[Suspect]:
    if _is_trainer(program, module):
        return
    for entry in facts.imports:
        what = _means(program, module, entry, _MAKES)
        if what is None or not _counts(program, module, entry):
            continue
        makers = [program.call(fn.number, at).name for fn in program.tree.functions_of(module) for at, _ in program.own(fn.number, *_MAKES)]
        bound = entry.alias or entry.name or entry.module.partition(".")[0]
        used = any(name.partition(".")[0] == bound for name in makers)
        if not used and (entry.function or entry.kind == "module" or entry.name[:1].islower()):
            continue  # a module that nothing is taken from makes no optimizer
        found = _suspect(program, module, entry, "GYR106", f"a sampling module imports `{what}`", acts, "sampling side by", "sampling",
                         "remove the import, or move what needs it to the trainer")  # fmt: skip
        yield replace(found, at_most=Severity.WARNING) if entry.kind == "module" else found  # a package also serves networks


def _is_trainer(program: Program, module: int) -> bool:
    """A class here is a trainer of another package: it learns by what it inherits."""
    bases = [b for c in program.tree.classes if c.module == module for b in program.resolver.bases(c.number)[1]]
    return any(b.rpartition(".")[2].endswith(("Trainer", "Learner")) for b in bases)


def _is_env(program: Program, cls: int) -> bool:
    return any(program.lexicon.kinds.get(t) == "env" for t in program.resolver.types_of_class(cls))


def _means(program: Program, module: int, entry: Import, roles: tuple[str, ...]) -> str | None:
    """The qualified name when importing it means one of the roles."""
    if entry.type_only:
        return None
    name = _origin(program, module, entry)
    if not name:
        return None
    if program.lexicon.import_role(name) in roles:
        return name
    made = program.lexicon.type_made_by(name)
    role = program.lexicon.symbols.get(name) or (program.lexicon.makes.get(made, "") if made else "")
    return name if role in roles else None


def _origin(program: Program, module: int, entry: Import) -> str:
    """The qualified name outside our files that an import binds, through any number of re-exports; empty when it binds one of ours."""
    if not entry.level and program.tree.module(entry.module, module) < 0:
        return f"{entry.module}.{entry.name}" if entry.kind == "from" else entry.module
    found = program.resolver.imported(module, entry) if entry.kind == "from" else None
    if found is None or found.kind != "ext":
        return ""
    folder = program.tree.relative(module, entry.level, entry.module).replace("/", ".") if entry.level else entry.module
    return "" if found.ref == f"{folder}.{entry.name}" else str(found.ref)  # the name as it was asked for: found nowhere


def _made_here(program: Program, module: int, learns: tuple[int, int] | None, seen: set[int]) -> Iterator[Suspect]:
    """An environment made by a call of this module or by what it calls; the finding stands at the import that opens the way."""
    for fn in program.tree.functions_of(module):
        if "evaluation" in program.region(fn.number):
            continue
        effect = program.full.of[fn.number].get("env.make")
        if effect is None or effect.confidence is Confidence.HINT:
            continue
        for at, chain in _makers(program, fn.number):
            call = program.call(fn.number, at)
            entry = _opened_by(program, module, fn.number, call.name.split(".")[0].split("[")[0])
            if entry is None or entry.line in seen or entry.type_only:
                continue
            seen.add(entry.line)
            what = f"{entry.module}.{entry.name}" if entry.name else entry.module
            found = _suspect(program, module, entry, "GYR201", f"a training module imports `{what.strip('.')}`, "
                "which makes an environment", learns,
                             "training side by", "training", "pass observation and action shapes in the configuration")  # fmt: skip
            yield replace(found, evidence=(*found.evidence, *chain), confidence=Confidence.BOUND)


def _makers(program: Program, number: int) -> Iterator[tuple[int, tuple[Evidence, ...]]]:
    """The calls of a function that make an environment, each with the chain down to where it is made."""
    for at, _ in program.own(number, "env.make"):
        call = program.call(number, at)
        yield at, (program.place(number, call.line, f"made here: {readable(call)}", "because", call.column + 1),)
    for edge in program.calls.edges[number]:
        effect = program.full.of[edge.callee].get("env.make")
        if edge.call < 0 or edge.kind == "name" or effect is None or effect.confidence is Confidence.HINT:
            continue
        if program.has(edge.callee, *LEARNING, full=True) or "evaluation" in program.region(edge.callee):
            continue
        call = program.call(number, edge.call)
        first = program.place(number, call.line, f"{program.name(number)} calls {readable(call)}", "through", call.column + 1)
        yield edge.call, (first, *program.chain(edge.callee, "env.make", full=True))


def _opened_by(program: Program, module: int, number: int, head: str) -> Import | None:
    """The import that binds the first name of a call, in the function or around it."""
    at = number
    while at >= 0:
        names = program.tree.names(at)
        if head in names.imports:
            return names.imports[head][0]
        lines = {b.line for b in names.binds.get(head, ())}
        dynamic = [i for i in program.tree.imports[module].get(at, ()) if i.kind == "dynamic" and i.line in lines]
        if dynamic:
            return dynamic[0]
        at = program.functions[at].parent
    stars = [i for i in program.tree.modules[module].imports if i.kind == "star"]
    return stars[0] if len(stars) == 1 else None


def _counts(program: Program, module: int, entry: Import) -> bool:
    """Not when the name is used in annotations only, or in functions that evaluate only."""
    if entry.kind in {"star", "dynamic"}:
        return entry.kind == "dynamic" or True
    bound = entry.alias or (entry.name if entry.kind == "from" else entry.module.partition(".")[0])
    used = set()
    for fn in program.tree.functions_of(module):
        fact = fn.fact
        read = any(
            _opens(c.name, bound) or any(_reads(a, bound) for a in (*c.args, *(v for _, v in c.keywords), c.receiver)) for c in fact.calls
        )
        if read or any(_reads(b.value, bound) for b in fact.binds) or any(_opens(d.name, bound) for d in fact.decorators):
            used.add(fn.number)
    for cls in program.tree.classes:
        if cls.module == module and any(_opens(b, bound) for b in cls.fact.bases):
            used.add(cls.scope)
    if not used:
        return bound not in program.tree.modules[module].annotated
    if _only_neutral(program, module, entry, bound):
        return False
    return not all("evaluation" in program.region(n) for n in used)


def _only_neutral(program: Program, module: int, entry: Import, bound: str) -> bool:
    """Every use goes to a part of the library that no vocabulary calls an environment, such as its spaces."""
    whole = _origin(program, module, entry) if entry.kind == "from" or entry.alias else entry.module.partition(".")[0]
    paths: set[str] = set()
    for fn in program.tree.functions_of(module):
        fact = fn.fact
        paths.update(c.name for c in fact.calls if _opens(c.name, bound))
        for atoms in (*(a for c in fact.calls for a in (*c.args, *(v for _, v in c.keywords), c.receiver)), *(b.value for b in fact.binds)):
            paths.update(a for a in atoms if isinstance(a, str) and _opens(a, bound))
    full = [whole + p[len(bound) :].split("[")[0] for p in paths if "." in p]
    return (
        bool(full)
        and len(full) == len(paths)
        and all(program.lexicon.import_role(p) == "" and not program.lexicon.symbols.get(p) for p in full)
    )


def _opens(path: str, name: str) -> bool:
    return path == name or path.startswith((f"{name}.", f"{name}["))


def _reads(atoms: tuple[str | int, ...], name: str) -> bool:
    return any(isinstance(a, str) and _opens(a, name) for a in atoms)


def _suspect(
    program: Program, module: int, entry: Import, code: str, message: str, because: tuple[int, int] | None, words: str, side: str, hint: str
) -> Suspect:
    number = program.tree.first_function[module]
    if because is None:
        reason = program.place(number, entry.line, f"the configuration puts this file on the {side} side", "because", entry.column + 1)
    else:
        call = program.call(*because)
        reason = program.place(because[0], call.line, f"{words} {readable(call)}", "because", call.column + 1)
    late = " (deferred)" if entry.function else ""
    return Suspect(
        code, number, entry.line, entry.column, message + late, entry.line,
        entry.end_column, (reason, *_more(program, module, because)), hint,
        Confidence.EXACT, f"import {entry.module}.{entry.name}", Severity.ERROR, side,
    )  # fmt: skip


def _more(program: Program, module: int, but: tuple[int, int] | None) -> tuple[Evidence, ...]:
    out: list[Evidence] = []
    for fn in program.tree.functions_of(module):
        for at, role in program.own(fn.number, *TRAINING, *SAMPLING):
            if (fn.number, at) != but and len(out) < 2:
                call = program.call(fn.number, at)
                out.append(program.place(fn.number, call.line, f"and by {role}: {readable(call)}", "because", call.column + 1))
    return tuple(out)


def _names_only(program: Program, module: int) -> Iterator[Suspect]:
    sides: dict[str, tuple[int, int, str]] = {}
    for fn in program.tree.functions_of(module):
        for found in program.calls.roles[fn.number]:
            side = program.lexicon.roles[found.role].side.value
            if side in {"sampling", "training"}:
                if found.symbol != program.call(fn.number, found.call).name:
                    return  # one call known by type classifies the module
                sides.setdefault(side, (fn.number, found.call, found.role))
    if len(sides) == 2:
        number = program.tree.first_function[module]
        evidence = tuple(
            program.place(
                n, program.call(n, c).line, f"{role} by name: {readable(program.call(n, c))}", "because", program.call(n, c).column + 1
            )
            for n, c, role in sides.values()
        )
        yield Suspect(
            "GYR003", number, 1, 0, "this module touches both sides, known by bare names only",
            evidence=evidence, confidence=Confidence.HINT,
            hint="annotate the receivers, or declare the module's side in [tool.gyrecheck] sides", key="module",
        )  # fmt: skip
