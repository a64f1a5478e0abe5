"""The two sides of an importance ratio: which calls gave the new and the old log-prob, and by which networks, through helpers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gyrecheck.model.facts import Atom, Atoms, Function
from gyrecheck.program.flow import prefixes, reach
from gyrecheck.program.program import Program
from gyrecheck.verdict.shapes.steps import arguments

_PRIMITIVES = frozenset({"log_prob", "log_softmax", "logsumexp", "cross_entropy", "nll_loss"})
_ASIDE = ("ref", "teacher", "target", "base_model", "disable_adapter", "frozen", "behav", "expert", "prior")
"""Parts of a name that say: another network, or this one without what is trained of it."""
_DEEP = 3


@dataclass(frozen=True, slots=True)
class Ratio:
    """`old` is a call of the function asked about; `exp` the exponential, in `function`."""

    old: int
    function: int
    exp: int


def ratios(program: Program, number: int, inner: int) -> Iterator[Ratio]:
    """Ratios in `inner` (`number` itself or a function it calls) whose old side is an unrecorded log-prob that `number` takes from the trained network."""
    fact = program.tree.functions[number].fact
    olds = [at for at in forward_logprobs(program, number) if unrecorded(program, number, at) and not aside(program, number, at)]
    for old in olds:
        nets = networks(program, number, old)
        if not nets:
            continue
        held = reach(fact, [old])
        for exp, first, second in differences(program.tree.functions[inner].fact):
            if inner == number:
                if not held.holds(second) or held.holds(first):
                    continue
                news = [n for n in forward_logprobs(program, number) if n != old and not unrecorded(program, number, n)]
                new = {p for n in news if reach(fact, [n]).holds(first) for p in networks(program, number, n)}
            else:
                new = _through(program, number, inner, old, first, second)
            if new & nets:
                yield Ratio(old, inner, exp)
                break


def _through(program: Program, number: int, inner: int, old: int, first: Atom, second: Atom) -> set[str]:
    """The networks of the new side, in the caller's terms, when the caller passes the old log-prob in as the second side."""
    fact, below = program.tree.functions[number].fact, program.tree.functions[inner].fact
    held = reach(fact, [old])
    for edge in program.calls.edges[number]:
        if edge.callee != inner or edge.call < 0 or edge.kind not in {"call", "override"}:
            continue
        passed = _passed(program, number, edge.call, inner)
        olds = [p for p, atoms in passed.items() if held.any(atoms)]
        if not olds or not reach(below, paths=olds).holds(second) or reach(below, paths=olds).holds(first):
            continue
        out: set[str] = set()
        for at in forward_logprobs(program, number):
            given = [p for p, atoms in passed.items() if at != old and reach(fact, [at]).any(atoms)]
            if given and not unrecorded(program, number, at) and reach(below, paths=given).holds(first):
                out |= networks(program, number, at)
        names = arguments(program, fact.calls[edge.call], inner, {})
        for at in forward_logprobs(program, inner):
            if not unrecorded(program, inner, at) and reach(below, [at]).holds(first):
                out |= _renamed(networks(program, inner, at), names)
        return out
    return set()


def _passed(program: Program, number: int, at: int, callee: int) -> dict[str, Atoms]:
    """What each parameter of the callee is given."""
    fn = program.tree.functions[callee]
    call = program.call(number, at)
    plain = [p.name for p in fn.fact.params if not p.kind]
    if fn.cls >= 0 and not any(d.name.endswith("staticmethod") for d in fn.fact.decorators):
        plain = plain[1:]
    return dict((*zip(plain, call.args, strict=False), *call.keywords))


def differences(fact: Function) -> Iterator[tuple[int, Atom, Atom]]:
    """Exponentials of a difference: (call, first side, second side)."""
    for at, call in enumerate(fact.calls):
        head, _, last = call.name.rpartition(".")
        if last != "exp":
            continue
        atoms: Atoms = call.receiver or ((head,) if not call.args and head else call.args[0] if call.args else ())
        if len(atoms) == 1 and isinstance(atoms[0], str):
            made = [b for b in fact.binds if b.target == atoms[0] and b.order < call.order]
            if not made or made[-1].op not in {"-", "*"}:
                continue
            atoms = made[-1].value
        if len(atoms) >= 2:
            yield at, _bare(fact, atoms[0]), _bare(fact, atoms[1])


def _bare(fact: Function, atom: Atom) -> Atom:
    """`old.detach()` -> `old`: a call on a name stands for the name."""
    if isinstance(atom, int):
        head, _, last = fact.calls[atom].name.rpartition(".")
        if head and last in {"detach", "sum", "mean", "float", "to", "squeeze", "view", "reshape", "clone", "flatten"}:
            return head
    return atom


def forward_logprobs(program: Program, number: int) -> list[int]:
    """The calls of a function that give log-probs of some network."""
    fact = program.tree.functions[number].fact
    out = []
    for at, call in enumerate(fact.calls):
        last = call.name.rpartition(".")[2]
        if call.result == -2 or call.name == "{}":
            continue
        target = program.resolver.callee(number, at)
        if target is not None and target.kind == "func":
            if gives_logprob(program, int(target.ref)):
                out.append(at)
        elif last in _PRIMITIVES or ((call.args or call.keywords) and last != "exp" and _spoken(last)):
            out.append(at)
    return out


def _spoken(last: str) -> bool:
    low = last.lower()
    return any(word in low for word in ("logp", "log_p", "log_softmax", "logsoftmax")) or low in {
        "evaluate_actions",
        "get_action_and_value",
        "evaluate_action",
    }


def gives_logprob(program: Program, number: int, depth: int = _DEEP) -> bool:
    """A first-party function returns a log-prob that it takes from a network."""
    fact = program.tree.functions[number].fact
    calls = []
    for at, call in enumerate(fact.calls):
        last = call.name.rpartition(".")[2]
        if last in _PRIMITIVES or (_spoken(last) and call.result != -2 and (call.args or call.keywords)):
            calls.append(at)
        elif depth > 0:
            target = program.resolver.callee(number, at)
            if (
                target is not None
                and target.kind == "func"
                and int(target.ref) != number
                and gives_logprob(program, int(target.ref), depth - 2)
            ):
                calls.append(at)
    if not calls:
        return False
    flow = reach(fact, calls)
    return any(flow.any(item) for e in fact.exits if e.kind == "return" for item in e.items)


def unrecorded(program: Program, number: int, at: int) -> bool:
    """The log-prob carries no gradient: a guard here, a guard in the helper, or a cut at once."""
    fact = program.tree.functions[number].fact
    call = fact.calls[at]
    if program.unrecorded(number, call.block):
        return True
    target = program.resolver.callee(number, at)
    if target is not None and target.kind == "func":
        inner = int(target.ref)
        own = forward_logprobs(program, inner) if inner != number else []
        if program.unrecorded_by_decorator(inner) or (own and all(program.unrecorded(inner, program.call(inner, i).block) for i in own)):
            return True
    return any(program.role(number, i) == "grad.cut" and c.receiver == (at,) for i, c in enumerate(fact.calls))


def networks(program: Program, number: int, at: int, depth: int = _DEEP) -> set[str]:
    """The paths of the networks that a call asks, named as its function names them."""
    fact = program.tree.functions[number].fact
    call = fact.calls[at]
    target = program.resolver.callee(number, at)
    if target is not None and target.kind == "func":
        inner = int(target.ref)
        below = program.tree.functions[inner].fact
        found: set[str] = set()
        for i in range(len(below.calls)) if depth > 0 and inner != number else ():
            found |= _asked(program, inner, i, depth - 1)
        return _renamed(found, arguments(program, call, inner, {}))
    out = _asked(program, number, at, depth)
    if not out:  # `dist.log_prob(act)`: whatever made the distribution
        given = [a for arg in call.args for a in arg if isinstance(a, str) and not a.startswith(("=", "<"))]
        roots = {path.partition(".")[0].partition("[")[0] for path in (call.name, *given)}
        for bind in fact.binds:
            if bind.target in roots and bind.order < call.order:
                out |= {p for a in bind.value if isinstance(a, int) for p in (networks(program, number, a, depth - 1) if depth > 0 else ())}
        for atom in (a for arg in (*call.args, call.receiver) for a in arg):
            if isinstance(atom, int) and depth > 0:
                out |= networks(program, number, atom, depth - 1)
    return out


def _asked(program: Program, number: int, at: int, depth: int) -> set[str]:
    """The network that one call runs by itself: an object that is called, or whose method gives log-probs."""
    fn = program.tree.functions[number]
    call = fn.fact.calls[at]
    if call.result == -2 or call.name == "{}" or call.name.startswith("."):
        return set()
    target = program.resolver.callee(number, at)
    if target is not None and target.kind == "func":
        return networks(program, number, at, depth) if depth > 0 else set()
    if target is not None and target.kind in {"ext", "class", "module"}:
        return set()
    head, _, last = call.name.rpartition(".")
    ours = {p.name for p in fn.fact.params} | {"self"}
    if call.name.partition(".")[0].partition("[")[0] not in ours or not (call.args or call.keywords):
        return set()
    if not head or (head == "self" and "(" not in call.name):
        return {call.name}
    if _spoken(last) or last in {"forward", "act", "evaluate", "__call__", "get_action", "dist", "pi", "distribution", "get_distribution"}:
        return {head}
    thing = program.resolver.receiver(number, call)
    if program.calls.kind_of(thing) == "module" and last not in program.words["no_forward"]:
        return {head}
    if last in program.words["tensor_methods"] or last in program.words["copies"] or last in program.words["no_forward"]:
        return set()
    named = program.lexicon.named(last)
    return {call.name} if named is not None and named.kind == "module" else set()


def _renamed(paths: set[str], names: dict[str, str]) -> set[str]:
    out = set()
    for path in paths:
        known = next((p for p in sorted(prefixes(path), key=len, reverse=True) if p in names), None)
        if known is not None:
            out.add(names[known] + path[len(known) :])
    return out


def aside(program: Program, number: int, at: int) -> bool:
    """By a name or a context, the log-prob is of a reference, not of the policy at the start of the update."""
    fact = program.tree.functions[number].fact
    call = fact.calls[at]
    texts = [call.name, *(b.target for b in fact.binds if at in b.value)]
    for block in program.blocks_up(number, call.block):
        if fact.blocks[block].kind == "with":
            texts += [fact.calls[a].name if isinstance(a, int) else a for a in fact.blocks[block].detail]
    return any(word in text.lower() for text in texts for word in _ASIDE)
