"""Does a function that must be pure touch the environment or the reward: a loss, a dataset's item access? (GYR202, GYR203, GYR204).

A loss is a function whose name says so, or whose result is what `backward` is called on. The finding stands at the call that does
it, however deep; the chain from the pure function is its evidence. Every such call is reported once.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.finding import Confidence, Evidence, Severity
from gyrecheck.program.flow import reach
from gyrecheck.program.program import ACTING, LEARNING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.program.tree import Fn
from gyrecheck.verdict.shapes.simulated import differentiable, transformed
from gyrecheck.verdict.shapes.suspect import Suspect, at_call

_TOUCHING = (*ACTING, "env.reset", "reward.score")


def pure_sides(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every call of the sampling side that a loss or a dataset's item access reaches."""
    losses = _losses(program)
    batching = _batching(program)
    seen: set[tuple[int, int, str]] = set()
    for fn in program.functions:
        region = program.region(fn.number)
        yield from _scored_inline(program, fn)
        if "dataset" in region or fn.number in batching:
            yield from _found(program, fn, "dataset", seen, _TOUCHING, scored=Severity.WARNING if fn.number in batching else Severity.NOTE)
        elif (
            fn.number in losses
            and not transformed(program, fn.number)
            and not region & {"simulation", "evaluation"}
            and not program.has(fn.number, *LEARNING)
        ):
            yield from _found(program, fn, "loss", seen, _TOUCHING)


def _batching(program: Program) -> frozenset[int]:
    """Functions and callable objects that a loader is given to make its batches with."""
    out = set()
    for fn in program.functions:
        for call in fn.fact.calls:
            if not call.keywords:
                continue
            for atoms in (v for k, v in call.keywords if k in {"collate_fn", "worker_init_fn", "data_collator", "collator"}):
                for atom in atoms:
                    found = program.resolver.atom(fn.number, atom)
                    if found is not None and found.kind == "func":
                        out.add(int(found.ref))
                    elif found is not None and found.kind == "inst" and program.resolver.called_on(int(found.ref)) >= 0:
                        out.add(program.resolver.called_on(int(found.ref)))
    return frozenset(out)


def _scored_inline(program: Program, fn: Fn) -> Iterator[Suspect]:
    """A reward scored in the function that takes the gradient, on its way into the very loss; training the scorer itself is no fault."""
    if _is_own_loss(program, fn.number):
        return
    scored = [at for at, _ in program.own(fn.number, "reward.score") if not _is_trained(program, fn, program.call(fn.number, at).name)]
    backs = [at for at, _ in program.own(fn.number, "loss.backward")]
    if not scored or not backs or program.own(fn.number, *ACTING) or program.region(fn.number) & {"evaluation", "simulation", "reward"}:
        return
    others = [
        at for at, call in enumerate(fn.fact.calls)
        if at not in scored and call.args and (named := program.lexicon.named(call.name.rpartition(".")[2])) is not None
        and named.kind == "module"
    ]  # fmt: skip
    into = {at: reach(fn.fact, [at]) for at in (*scored, *others)}
    if not any(set(backs) & into[at].calls for at in others):
        return
    for at in scored:
        reached = sorted(set(backs) & into[at].calls)
        if reached:
            back = program.call(fn.number, reached[0])
            where = program.place(fn.number, back.line, f"its result reaches {readable(back)}", "because", back.column + 1)
            called = readable(program.call(fn.number, at))
            yield at_call(
                program, fn.number, at, "GYR203", _message("reward.score", called, "loss"), evidence=(where,),
                hint=_HINTS["GYR203"], side="training", pure=True, key=f"{program.name(fn.number)}>{called}",
            )  # fmt: skip


def _is_trained(program: Program, fn: Fn, scorer: str) -> bool:
    """The scorer is itself trained in this file: put into training mode, or given to an optimizer, by this name or one that it is bound to."""
    functions = [other.fact for other in program.tree.functions_of(fn.module)]
    tails = {scorer.rpartition(".")[2]}
    tails |= {
        a.rpartition(".")[2] for fact in functions for b in fact.binds
        if b.target.rpartition(".")[2] in tails and len(b.value) == 1 and isinstance(a := b.value[0], str) and not a.startswith("=")
    }  # fmt: skip
    for fact in functions:
        for at, call in enumerate(fact.calls):
            owner, _, last = call.name.rpartition(".")
            if owner.rpartition(".")[2] not in tails:
                continue
            if last == "train" and ("=False",) not in call.args:
                return True
            if last in {"parameters", "named_parameters"} and any("optim" in fact.calls[c].name.lower() for c in reach(fact, [at]).taken):
                return True
    return False


def _losses(program: Program) -> dict[int, Evidence | None]:
    """Functions that compute a loss, with what says so."""
    out: dict[int, Evidence | None] = {}
    for fn in program.functions:
        if "loss" in program.region(fn.number) or _hook_with_loss(program, fn):
            out[fn.number] = None
    for fn in program.functions:
        for at, _ in program.own(fn.number, "loss.backward"):
            call = program.call(fn.number, at)
            atoms = call.receiver or (call.name.rpartition(".")[0],)
            for source in _sources(program, fn.number, (*atoms, *(a for arg in call.args for a in arg))):
                out.setdefault(
                    source, program.place(fn.number, call.line, f"its result reaches {readable(call)}", "because", call.column + 1)
                )
    return out


def _hook_with_loss(program: Program, fn: Fn) -> bool:
    """`training_step` of a Lightning module that gives its loss back, so that the library takes the gradient."""
    if fn.fact.name != "training_step" or fn.cls < 0 or program.has(fn.number, *LEARNING, full=True):
        return False
    module = any("lightning" in t.lower() for t in program.resolver.types_of_class(fn.cls))
    return module and any(e.kind == "return" and e.items for e in fn.fact.exits)


def _sources(program: Program, number: int, atoms: tuple[str | int, ...]) -> Iterator[int]:
    """The first-party functions whose result a loss expression is, directly or through one variable."""
    fact = program.tree.functions[number].fact
    for atom in atoms:
        if isinstance(atom, str):
            for bind in fact.binds:
                if bind.target == atom and bind.form != "+=":
                    yield from (c for a in bind.value if isinstance(a, int) for c in _callee(program, number, a))
        else:
            yield from _callee(program, number, atom)


def _callee(program: Program, number: int, at: int) -> Iterator[int]:
    target = program.resolver.callee(number, at)
    if target is not None and target.kind == "func":
        yield int(target.ref)


def _found(
    program: Program, fn: Fn, kind: str, seen: set[tuple[int, int, str]], roles: tuple[str, ...], *, scored: Severity = Severity.WARNING
) -> Iterator[Suspect]:
    for number, path in _below(program, fn.number, plays=kind == "dataset"):
        if number != fn.number and ("reward" in program.region(number) and kind == "loss" and not program.own(number, *roles)):
            continue
        for at, role in program.own(number, *roles, hints=True):
            call = program.call(number, at)
            if (number, at, kind) in seen or (role == "reward.score" and _is_own_loss(program, number)):
                continue
            known = program.known_role(number, at)
            confidence = known[1] if known is not None else Confidence.HINT
            if confidence is Confidence.HINT and number != fn.number:
                continue
            if role == "reward.score" and kind == "loss" and _is_trained(program, program.functions[number], call.name):
                continue
            if role in {"env.step", "env.reset"} and kind == "loss" and differentiable(program, number):
                continue
            seen.add((number, at, kind))
            reason = program.place(fn.number, fn.fact.line, f"{program.name(fn.number)} is {_WHAT[kind]}", "because", fn.fact.column + 1)
            code = "GYR202" if kind == "dataset" else "GYR203" if role == "reward.score" else "GYR204"
            yield at_call(
                program, number, at, code, _message(role, readable(call), kind), evidence=(reason, *path),
                hint=_HINTS[code], confidence=confidence, side="training", pure=True, key=f"{program.name(fn.number)}>{call.name}",
                at_most=scored if kind == "dataset" and role == "reward.score" else Severity.ERROR,
            )  # fmt: skip


def _below(program: Program, start: int, *, plays: bool) -> Iterator[tuple[int, tuple[Evidence, ...]]]:
    """The function itself and all that it surely calls, nearest first, each with the calls that lead there.

    `plays`: a function named like an evaluation counts, too, where what it gives back is used: a dataset hands it on as rows.
    """
    seen = {start}
    queue: list[tuple[int, tuple[Evidence, ...]]] = [(start, ())]
    for number, path in queue:
        yield number, path
        for edge in program.calls.edges[number]:
            if edge.confidence is Confidence.HINT or edge.callee in seen or edge.call < 0 or edge.kind == "make":
                continue
            region = program.region(edge.callee)
            shown = "evaluation" in region and not (plays and program.call(number, edge.call).result >= 0)
            if shown or "simulation" in region or program.has(edge.callee, *LEARNING) or _is_environment(program, edge.callee):
                continue
            seen.add(edge.callee)
            call = program.call(number, edge.call)
            step = program.place(number, call.line, f"{program.name(number)} calls {program.name(edge.callee)}", "through", call.column + 1)
            queue.append((edge.callee, (*path, step)))


def _is_environment(program: Program, number: int) -> bool:
    fn = program.tree.functions[number]
    return fn.cls >= 0 and program.calls.class_kind(fn.cls) == "env"


def _is_own_loss(program: Program, number: int) -> bool:
    """The loss that trains the reward model itself: its optimizer, or its name, says so."""
    whole, own = program.name(number).lower(), program.tree.functions[number].fact.name.lower()
    return any(w in whole for w in ("reward", "discriminator", "rm_")) or any(w in own for w in ("preference", "bradley", "ranking"))


def _message(role: str, called: str, kind: str) -> str:
    where = "while the loss is computed" if kind == "loss" else "when an item of the dataset is fetched"
    what = {
        "reward.score": "a reward is scored", "env.step": "the environment is stepped", "env.reset": "the environment is reset",
        "policy.generate": "completions are generated", "rollout.run": "a rollout is run",
    }[role]  # fmt: skip
    return f"`{called}`: {what} {where}"


_WHAT = {
    "loss": "a loss: arithmetic over a batch that is already there",
    "dataset": "item access of a dataset: it must only read stored rows",
}
_HINTS = {
    "GYR202": "collect in the sampler, store the rows, and let the dataset read them",
    "GYR203": "score in the sampler and read the recorded reward here",
    "GYR204": "generate or step in the sampler, record the result with its policy version, and read the record here",
}
