"""Does the gradient run through what should be a fixed number: a bootstrapped target, or an advantage? (GYR214).

A target is a sum of a reward and the value of a successor. An advantage is a difference of a return and a value, multiplied with a
log-prob or a ratio. Both are numbers to the loss; with the graph on them the network is pulled towards itself, or the critic is
trained by the policy's loss.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Atoms, Bind, Call, Function
from gyrecheck.model.finding import Confidence, Severity
from gyrecheck.program.flow import Reached, prefixes, reach
from gyrecheck.program.program import LEARNING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.forwards import cuts, forward
from gyrecheck.verdict.shapes.steps import BACK
from gyrecheck.verdict.shapes.suspect import Suspect, at_call

_PUTS_TOGETHER = frozenset({"cat", "stack", "concat", "concatenate", "logsumexp"})
"""Calls on several values that multiply none: a conservative critic's, which is trained by all of them."""


def target_gradient(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every target and every advantage that reaches a backward pass with its graph on."""
    done: set[tuple[int, int]] = set()
    for fn in program.functions:
        if BACK not in program.full.of[fn.number] and "loss" not in program.region(fn.number):
            continue
        if fn.fact.name.startswith("test") or "simulation" in program.region(fn.number):
            continue
        for suspect in (*_targets(program, fn.number), *_by_helpers(program, fn.number), *_advantages(program, fn.number)):
            if (suspect.function, suspect.line) not in done:
                done.add((suspect.function, suspect.line))
                yield suspect


def _last(path: str) -> str:
    """The last name or key: `batch["next_obs"]` -> `next_obs`."""
    path = path.rstrip("]")
    return max(path.rpartition("[")[2], path.rpartition(".")[2], key=lambda part: -len(part)).lower().strip("_")


def _arguments(call: Call) -> Iterator[str | int]:
    yield from (a for arg in call.args for a in arg)
    yield from (a for _, v in call.keywords for a in v)


def _learned_from(program: Program, number: int, flow: Reached) -> tuple[int, int] | None:
    """The backward pass, or the returned loss, that the value reaches inside a function."""
    for at, _ in program.own(number, BACK):
        if at in flow.calls or at in flow.taken:
            return number, at
    return None


# ---- targets


def _targets(program: Program, number: int) -> Iterator[Suspect]:
    fact = program.tree.functions[number].fact
    for at, call in enumerate(fact.calls):
        if call.result == -2 or not any(_successor(program, a) for a in _arguments(call)):
            continue
        if program.unrecorded(number, call.block) or forward(program, number, at, call) is None:
            continue
        if any(_made_here(program, number, a) for a in _arguments(call)):
            continue  # the successor is a model's own, or the action carries the gradient that is wanted
        flow = reach(fact, [at], cut=lambda c: _cut(program, number, c))
        aim = next((b for b in fact.binds if b in flow.kept and b.op in {"+", "-", "*"} and _rewarded(program, b.value)), None)
        if aim is None or program.unrecorded(number, aim.block):
            continue
        onward = reach(fact, binds=[aim], cut=lambda c: _cut(program, number, c))
        end = _learned_from(program, number, onward) or _returned_loss(program, number, onward)
        if end is None:
            continue
        network = call.name if call.name[:1] != "." else call.name[1:]
        trained = _trained(program, number, network)
        grave = Severity.WARNING if trained else Severity.NOTE
        back = program.call(*end)
        what = "the network is pulled towards its own estimate" if trained else "the target network gets a gradient that nothing needs"
        yield at_call(
            program, number, at, "GYR214", f"`{readable(call)}` is the successor's value in the target `{aim.target}`, which reaches "
                f"`{readable(back)}` with its graph: {what}",
            evidence=(program.place(number, aim.line, f"the target is made here: {aim.target}", "because", aim.column + 1),
                      program.place(end[0], back.line, f"the gradient runs through it: {readable(back)}", "because", back.column + 1)),
            hint="compute the target under torch.no_grad(), or detach it", side="training", at_most=grave,
        )  # fmt: skip


def _made_here(program: Program, number: int, atom: str | int) -> bool:
    """An argument that is a network's output of its own: of a model's imagined state, or of the actor that is to follow the gradient."""
    if isinstance(atom, str):
        return _from_forward(program, number, atom)
    return not any(_successor(program, a) for a in _arguments(program.call(number, atom)))


def _by_helpers(program: Program, number: int) -> Iterator[Suspect]:
    """A helper that returns reward plus the successor's value, its graph on it; the caller puts that into the loss as it is."""
    fact = program.tree.functions[number].fact
    for edge in program.calls.edges[number]:
        if edge.call < 0 or edge.kind != "call" or edge.confidence is Confidence.HINT or BACK in program.full.of[edge.callee]:
            continue
        if program.unrecorded(number, fact.calls[edge.call].block) or program.unrecorded_by_decorator(edge.callee):
            continue
        value = _returned_target(program, edge.callee)
        end = (
            _learned_from(program, number, reach(fact, [edge.call], cut=lambda c: cuts(program, number, c))) if value is not None else None
        )
        if value is None or end is None:
            continue
        call, back, asked = program.call(edge.callee, value), program.call(*end), fact.calls[edge.call]
        grave = Severity.WARNING if _trained(program, number, call.name) else Severity.NOTE
        yield at_call(
            program, edge.callee, value, "GYR214", f"`{readable(call)}` is the successor's value in the target that `{program.name(edge.callee)}` "
                f"returns, which reaches `{readable(back)}` with its graph",
            evidence=(program.place(number, asked.line, f"the target: {readable(asked)}", "because", asked.column + 1),
                      program.place(number, back.line, f"the gradient runs through it: {readable(back)}", "because", back.column + 1)),
            hint="compute the target under torch.no_grad(), or detach it", side="training", at_most=grave,
        )  # fmt: skip


def _returned_target(program: Program, number: int) -> int | None:
    """The recorded value of a successor that goes, with a reward, into what a function returns."""
    fact = program.tree.functions[number].fact
    for at, call in enumerate(fact.calls):
        if call.result == -2 or not any(_successor(program, a) for a in _arguments(call)) or program.unrecorded(number, call.block):
            continue
        if forward(program, number, at, call) is None or any(_made_here(program, number, a) for a in _arguments(call)):
            continue
        flow = reach(fact, [at], cut=lambda c: _cut(program, number, c))
        if any(_rewarded(program, item) and flow.any(item) for e in fact.exits if e.kind == "return" for item in e.items):
            return at
    return None


def _successor(program: Program, atom: str | int) -> bool:
    """A path named as the observation after the action."""
    return isinstance(atom, str) and not atom.startswith(("=", "<")) and program.words.has("successor", f"_{_last(atom)}_")


def _rewarded(program: Program, atoms: Atoms) -> bool:
    return any(isinstance(a, str) and program.words.field(_last(a)) == "reward" for a in atoms)


def _from_forward(program: Program, number: int, atom: str | int) -> bool:
    """The path holds a network's output of this function."""
    if not isinstance(atom, str) or atom.startswith(("=", "<")):
        return False
    fact = program.tree.functions[number].fact
    for bind in fact.binds:
        if bind.target in prefixes(atom) and bind.form != "for":
            for inner in bind.value:
                if isinstance(inner, int) and forward(program, number, inner, fact.calls[inner]) is Confidence.BOUND:
                    return not program.unrecorded(number, bind.block)
    return False


def _cut(program: Program, number: int, at: int) -> bool:
    """The call gives no graph on: by its name, or because our own function of that name cuts."""
    if cuts(program, number, at):
        return True
    target = program.resolver.callee(number, at)
    if target is None or target.kind != "func":
        return False
    inner = int(target.ref)
    if program.unrecorded_by_decorator(inner) or any(True for _ in program.own(inner, "grad.cut", "guard.no_grad", hints=True)):
        return True
    return any(c.name.rpartition(".")[2] in {"item", "numpy", "tolist", "float"} for c in program.tree.functions[inner].fact.calls)


def _trained(program: Program, number: int, network: str) -> bool:
    """Not a target network by its name, and the very network that gives the value learned."""
    leaf = network.rpartition(".")[2].lower()
    named = program.lexicon.named(leaf)
    if program.words["copies_of_policy"] & set(leaf.split("_")) or (named is not None and named.kind == "target"):
        return False
    return any(
        c.name == network and not any(_successor(program, a) for a in _arguments(c)) for c in program.tree.functions[number].fact.calls
    )


def _returned_loss(program: Program, number: int, flow: Reached) -> tuple[int, int] | None:
    """The loss is returned, and a caller takes its gradient."""
    if not flow.returned:
        return None
    for edge in program.callers[number]:
        if edge.call < 0 or edge.confidence is Confidence.HINT or not program.has(edge.caller, *LEARNING, full=True):
            continue
        above = reach(program.tree.functions[edge.caller].fact, [edge.call], cut=lambda c, n=edge.caller: cuts(program, n, c))  # type: ignore[misc]
        found = _learned_from(program, edge.caller, above)
        if found is not None and not _of_record(program, found):
            return found
    return None


def _of_record(program: Program, back: tuple[int, int]) -> bool:
    """`losses.policy.backward()`: one field of what a function gave back, and nobody knows into which the value went."""
    owner = program.call(*back).name.rpartition(".")[0]
    return "." in owner and not owner.startswith("self.")


# ---- advantages


def _advantages(program: Program, number: int) -> Iterator[Suspect]:
    fact = program.tree.functions[number].fact
    for bind in fact.binds:
        if program.unrecorded(number, bind.block) or (not (bind.op == "-" and bind.form == "=") and not _by_helper(program, number, bind)):
            continue
        value = None if _is_logprob(program, fact, bind.target) else _value_in(program, number, bind)
        if value is None:
            continue
        flow = reach(fact, binds=[bind], cut=lambda c: _cut(program, number, c))
        product = _beside_logprob(program, number, bind, flow)
        if product is None:
            continue
        onward = reach(fact, [product], cut=lambda c: cuts(program, number, c))
        end = _learned_from(program, number, onward) or _returned_loss(program, number, onward)
        if end is None:
            continue
        network = fact.calls[value]
        yield at_call(
            program, number, product, "GYR214", f"the advantage `{bind.target}` still carries the graph of `{readable(network)}`: "
                "the policy's loss trains the critic, too",
            evidence=(program.place(number, bind.line, f"the advantage is made here: {bind.target}", "because", bind.column + 1),
                      program.place(number, network.line, f"its graph begins here: {readable(network)}", "because", network.column + 1)),
            hint=f"use {bind.target}.detach() in the policy's loss", side="training", key=bind.target,
        )  # fmt: skip
        return


def _by_helper(program: Program, number: int, bind: Bind) -> bool:
    """The whole value is what one of our own functions gives back, which cuts nothing: an advantage estimate."""
    if len(bind.value) != 1 or not isinstance(bind.value[0], int) or (bind.form != "=" and "/" not in bind.form):
        return False
    target = program.resolver.callee(number, bind.value[0])
    return target is not None and target.kind == "func" and not _cut(program, number, bind.value[0])


def _value_in(program: Program, number: int, bind: Bind) -> int | None:
    """The forward whose value, its graph on it, is subtracted: no distribution, no log-prob."""
    fact = program.tree.functions[number].fact
    for at, call in enumerate(fact.calls):
        if call.order > bind.order or call.result == -2 or program.unrecorded(number, call.block):
            continue
        if forward(program, number, at, call) is None or any(_from_forward(program, number, a) for a in _arguments(call)):
            continue
        seeds = [b for b in fact.binds if at in b.value]
        if not seeds and reach(fact, [at], cut=lambda c: _cut(program, number, c)).any(bind.value):
            return at
        for seed in seeds:
            flow = reach(fact, binds=[seed], cut=lambda c: _cut(program, number, c))
            if flow.any(bind.value) and not _distribution(program, fact, seed.target):
                return at
    return None


def _distribution(program: Program, fact: Function, name: str) -> bool:
    """The name is asked for log-probs or samples, or is one itself, or a reward, which was measured and not estimated."""
    asked = {"log_prob", "entropy", "sample", "rsample", "log_softmax"}
    return program.words.field(_last(name)) in {"logprob", "action", "reward"} or program.words.has("logprob_names", name) or any(
        c.name.rpartition(".")[2] in asked and c.name.rpartition(".")[0] == name for c in fact.calls
    )  # fmt: skip


def _beside_logprob(program: Program, number: int, bind: Bind, flow: Reached) -> int | None:
    """The call on a product of the advantage and a log-prob or ratio, e.g. `(logp * adv).mean()`."""
    fact = program.tree.functions[number].fact
    for at, call in enumerate(fact.calls):
        if call.order < bind.order or call.result == -2 or call.name.rpartition(".")[2] in _PUTS_TOGETHER:
            continue
        for atoms in (call.receiver, *call.args):
            if len(atoms) < 2 or bind.target not in atoms or bind.target not in flow.paths:
                continue
            if any(isinstance(a, int) and fact.calls[a].name.startswith(f"{bind.target}.") for a in atoms):
                continue
            if any(_is_logprob(program, fact, a) for a in atoms):
                return at
    return None


def _is_logprob(program: Program, fact: Function, atom: str | int) -> bool:
    if isinstance(atom, int):
        call = fact.calls[atom]
        last = call.name.rpartition(".")[2]
        return last in {"log_prob", "exp"} or program.words.has("logprob_names", last)
    return not atom.startswith(("=", "<")) and (
        program.words.field(_last(atom)) == "logprob" or program.words.has("logprob_names", _last(atom))
    )
