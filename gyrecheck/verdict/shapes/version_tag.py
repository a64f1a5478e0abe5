"""Does a record say which policy made it (GYR401), and is the label raised only once the weights have arrived (GYR412)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Bind, Call, Function
from gyrecheck.model.finding import Severity
from gyrecheck.program.program import LEARNING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, at_bind, at_call

_SAID = ("reward", "action", "tokens", "logprob", "advantage", "value", "obs")

_DUMPS = frozenset({"dump", "dumps", "save", "savez", "savez_compressed"})


def version_tag(program: Program, layout: Layout) -> Iterator[Suspect]:
    """Records handed over without a version, and versions raised before or without a load."""
    for number in sorted({*program.doing("carrier.write"), *program.calling(_DUMPS)}):
        yield from _untagged(program, layout, number)
    for fn in program.functions:
        yield from _early(program, fn.number)


# ---- GYR401


def _untagged(program: Program, layout: Layout, number: int) -> Iterator[Suspect]:
    fact = program.functions[number].fact
    written = [at for at, role in program.own(number, "carrier.write")]
    written += [
        at
        for at, call in enumerate(fact.calls)
        if call.name in {"json.dump", "json.dumps", "pickle.dump", "torch.save", "np.savez", "numpy.savez", "np.savez_compressed"}
    ]
    for at in written:
        keys = _record(program, fact, fact.calls[at])
        if keys is None:
            continue
        meanings = {program.words.field(k) for k in keys} - {""}
        said = meanings & set(_SAID)
        if len(said) < 2 or not said & {"reward", "logprob", "advantage"} or _tagged(program, keys):
            continue
        if not program.has(number, "env.step", "policy.generate", "rollout.run", "reward.score") and not _policy_near(program, number):
            continue
        declared = layout.declared and layout.of_module[program.functions[number].module].topology.value == "decoupled"
        call = fact.calls[at]
        yield at_call(
            program, number, at, "GYR401", f"`{readable(call)}` hands over a record without policy version: {', '.join(sorted(keys))}",
            hint="stamp each record with the version of the weights that acted", side="sampling",
            at_most=Severity.ERROR if declared else Severity.WARNING,
        )  # fmt: skip


def _policy_near(program: Program, number: int) -> bool:
    return any(r.role in {"policy.act", "policy.forward"} for r in program.calls.roles[number])


def _record(program: Program, fact: Function, call: Call) -> set[str] | None:
    """The keys of the record that a call hands over; None when it cannot be seen whole."""
    for atom in (*(a for arg in call.args for a in arg), *(a for k, v in call.keywords if k not in {"timeout", "block"} for a in v)):
        if isinstance(atom, int):
            inner = fact.calls[atom]
            if inner.name in {"{}", "dict"}:
                keys = {k for k, _ in inner.keywords}
                return None if keys & {"**", "?"} else keys
            if inner.name in {"json.dumps", "pickle.dumps"}:
                return _record(program, fact, inner)
        elif not atom.startswith(("=", "<")) and atom.isidentifier():
            made = [b for b in fact.binds if b.target == atom and b.op == "{}"]
            if len(made) == 1 and len(made[0].value) == 1 and isinstance(made[0].value[0], int):
                keys = {k for k, _ in fact.calls[made[0].value[0]].keywords}
                keys |= {b.target[len(atom) + 1 : -1] for b in fact.binds if b.target.startswith(f"{atom}[")}
                changed = any(c.name in {f"{atom}.update", f"{atom}.setdefault"} for c in fact.calls)
                return None if keys & {"**", "?"} or changed else keys
    return None


def _tagged(program: Program, keys: set[str]) -> bool:
    return any(
        k.lower() in program.words["versions"] or "version" in k.lower() or "weight" in k.lower() or "policy_ver" in k.lower() for k in keys
    )


# ---- GYR412


def _early(program: Program, number: int) -> Iterator[Suspect]:
    fn = program.functions[number]
    fact = fn.fact
    if fact.name in {"__init__", "<module>", "__setstate__"}:
        return
    stamps = [b for b in fact.binds if b.form == "=" and "." in b.target and _is_version(program, b.target)]
    if not stamps:
        return
    if program.has(number, *LEARNING, full=True):
        return
    loads = [(at, call) for at, call in enumerate(fact.calls) if _loads(program, number, at, call)]
    for stamp in stamps:
        after = [(at, c) for at, c in loads if c.order > stamp.order and _same_path(program, number, stamp, c)]
        prior = [(at, c) for at, c in loads if c.order < stamp.order]
        if after and not prior and not _from_load(stamp, loads) and not _under_lock(program, number, stamp):
            call = after[0][1]
            yield at_bind(
                number, stamp, "GYR412", f"`{stamp.target}` is raised before `{readable(call)}` has brought the weights",
                evidence=(program.place(number, call.line, f"the weights arrive here: {readable(call)}", "because", call.column + 1),),
                hint="load first, then set the label", side="sampling",
            )  # fmt: skip
        elif prior:
            yield from _tolerant(program, number, stamp, prior)


def _tolerant(program: Program, number: int, stamp: Bind, prior: list[tuple[int, Call]]) -> Iterator[Suspect]:
    """The label follows a load that may have done nothing: unchecked `strict=False`, or a handler that goes on."""
    fact = program.functions[number].fact
    at, call = prior[-1]
    if any(k == "strict" and v == ("=False",) for k, v in call.keywords) and call.result == -1:
        yield at_bind(
            number, stamp, "GYR412", f"`{stamp.target}` is raised although `{readable(call)}` with strict=False may have loaded nothing",
            evidence=(program.place(number, call.line, "missing and unexpected names are not looked at", "because", call.column + 1),),
            hint="load with strict=True, or check what load_state_dict returns, before raising the label", side="sampling",
        )  # fmt: skip
        return
    for block in program.blocks_up(number, call.block):
        if fact.blocks[block].kind != "try" or program.within(number, stamp.block, block):
            continue
        for index, handler in enumerate(fact.blocks):
            goes_on = handler.kind == "except" and handler.link == block and not any(e.block == index for e in fact.exits)
            if goes_on and not program.within(number, stamp.block, index):
                yield at_bind(
                    number, stamp, "GYR412", f"`{stamp.target}` is raised although `{readable(call)}` may have failed: the handler goes on",
                    evidence=(program.place(number, handler.line, "the failure ends here", "because"),),
                    hint="raise the label in the try body, after the load", side="sampling",
                )  # fmt: skip
                return
    del at


def _loads(program: Program, number: int, at: int, call: Call) -> bool:
    if call.result == -2 or call.name.rpartition(".")[2] in {"load", "copy_"}:
        return False
    head = call.name.rpartition(".")[0]
    named = program.lexicon.named(head) if head else None
    if named is not None and named.kind in {"optimizer", "scheduler", "scaler", "target", "normaliser"}:
        return False
    return program.role(number, at) == "weights.load" or (bool(head) and call.name.rpartition(".")[2] in program.words["loads"])


def _is_version(program: Program, target: str) -> bool:
    leaf = target.rpartition(".")[2].lower()
    return (
        "version" in leaf
        or leaf in {"policy_ver", "weight_id", "weights_id"}
        or (leaf in program.words["versions"] and "step" not in leaf and leaf != "generation")
    )


def _same_path(program: Program, number: int, stamp: Bind, call: Call) -> bool:
    """The load follows the stamp in one run: its block is the stamp's, or lies around or below it without a branch that excludes it."""
    return program.within(number, call.block, stamp.block) or program.within(number, stamp.block, call.block)


def _from_load(stamp: Bind, loads: list[tuple[int, Call]]) -> bool:
    return any(isinstance(a, int) and a in {at for at, _ in loads} for a in stamp.value) or not stamp.value or all(
        isinstance(a, str) and a.startswith("=") for a in stamp.value
    )  # fmt: skip


def _under_lock(program: Program, number: int, stamp: Bind) -> bool:
    fact = program.functions[number].fact
    for at in program.blocks_up(number, stamp.block):
        block = fact.blocks[at]
        if block.kind == "with" and any("lock" in (fact.calls[a].name if isinstance(a, int) else a).lower() for a in block.detail):
            return True
    return False
