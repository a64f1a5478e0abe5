"""Is a learning rate set where the optimizer does not read it, or made of itself by mistake? (GYR230).

A torch optimizer reads `param_groups` and nothing else: an attribute `lr` of the optimizer, or its `defaults` after it was made, change
nothing. `LambdaLR` multiplies the base rate with what its function gives: a rate given there is squared. A rate multiplied with the
overall progress in each update compounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gyrecheck.model.facts import Atoms, Bind
from gyrecheck.program.program import Program
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, at_bind, at_call, in_tests

_RATES = frozenset(
    {"lr", "learning_rate", "base_lr", "init_lr", "initial_lr", "max_lr", "peak_lr", "start_lr", "actor_lr", "critic_lr", "policy_lr"}
)
_ATTRIBUTES = (".lr", ".learning_rate")
_GROUP = ("[lr]", "[learning_rate]")
_TOTAL = re.compile(r"total|max|num_|n_|budget|horizon|duration|all_|steps$|updates$|iterations$|epochs$")
_SETS = re.compile(r"(?:^|_)(?:lrs?|rates?|learning_rates?|groups?)(?:_|$)|schedul")
_SPEED = re.compile(r"decay|rate|gamma|alpha|beta|weight|coef|factor|(?:^|_)(?:dt|lr|wd|eps|k)(?:_|$)")
_HINT = 'set group["lr"] for every group of optimizer.param_groups'


def rate_set(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every rate that changes nothing, and every rate that is multiplied with itself."""
    for fn in program.functions:
        if in_tests(program, fn.number):
            continue
        for bind in fn.fact.binds:
            if bind.target.endswith((*_ATTRIBUTES, ".defaults[lr]")):
                yield from _unread(program, fn.number, bind)
            elif bind.target.endswith(_GROUP):
                yield from _compounds(fn.number, bind, fn.fact.binds)
        for at, role in program.own(fn.number, "scheduler.make"):
            del role
            yield from _squared(program, fn.number, at)


def _unread(program: Program, number: int, bind: Bind) -> Iterator[Suspect]:
    """`optimizer.lr = x` or `optimizer.defaults["lr"] = x` of a torch optimizer, where the groups are not set beside it."""
    owner = bind.target.removesuffix(".defaults[lr]").removesuffix(".lr").removesuffix(".learning_rate")
    fact = program.tree.functions[number].fact
    if not _is_torch_optimizer(program, number, owner) or any(
        b.target.endswith(_GROUP) and b is not bind and ".defaults" not in b.target for b in fact.binds
    ):
        return
    near = [f.fact for f in program.tree.functions_of(program.functions[number].module)]
    if any("param_groups" in a for f in near for b in f.binds for a in b.value if isinstance(a, str)):
        return  # groups are set near by: the attribute mirrors the rate
    if any(owner in arg for c in fact.calls for arg in (*c.args, *(v for _, v in c.keywords))):
        return
    if any(_SETS.search(c.name.rpartition(".")[2].lower()) for c in fact.calls):
        return  # what is called there may set the groups
    yield at_bind(
        number, bind, "GYR230", f"`{bind.target}` is set, and the optimizer reads its `param_groups` only: the learning rate stays as it was",
        hint=_HINT, side="training",
    )  # fmt: skip


def _is_torch_optimizer(program: Program, number: int, path: str) -> bool:
    """The path is bound to an optimizer of torch here or in the class, and to nothing else."""
    fn = program.tree.functions[number]
    places = [number, *(program.tree.classes[fn.cls].methods.values() if fn.cls >= 0 and path.startswith("self.") else ())]
    made = [(n, b) for n in dict.fromkeys(places) for b in program.tree.functions[n].fact.binds if b.target == path]
    return bool(made) and all(_makes(program, n, b.value) for n, b in made)


def _makes(program: Program, number: int, atoms: Atoms) -> bool:
    if len(atoms) != 1 or not isinstance(atoms[0], int) or program.role(number, atoms[0]) != "optimizer.make":
        return False
    target = program.resolver.callee(number, atoms[0])
    return target is not None and str(target.ref).startswith("torch.optim")


def _compounds(number: int, bind: Bind, binds: tuple[Bind, ...]) -> Iterator[Suspect]:
    """`group["lr"] *= 1 - step / total`: the progress of the whole run, taken off what earlier updates have left."""
    again = bind.target in bind.value if bind.form == "=" else bind.form == "+="
    rest = [a for a in bind.value if a != bind.target]
    names = [a for a in rest if isinstance(a, str) and not a.startswith("=")]
    if any(_SPEED.search(n.rpartition(".")[2].lower()) for n in names):
        return  # a share is taken off each time: a plain decay
    if not again or bind.op != "*" or len(names) != 2 or set(rest) - set(names) not in ({"=1"}, {"=1.0"}):
        return
    if any(b.target.endswith(_GROUP) and b is not bind for b in binds) or not any(
        _TOTAL.search(n.rpartition(".")[2].lower()) for n in names
    ):
        return
    yield at_bind(
        number, bind, "GYR230", f"`{bind.target}` is multiplied with the progress of the whole run each time, and so with all earlier progress: it "
            "is near 0 long before the end",
        hint="multiply the first rate with the progress, not the last one", side="training",
    )  # fmt: skip


def _squared(program: Program, number: int, at: int) -> Iterator[Suspect]:
    """`LambdaLR(optimizer, lambda k: lr * (1 - k / total))`, where the optimizer has that very rate."""
    fact = program.tree.functions[number].fact
    call = fact.calls[at]
    if not call.name.endswith("LambdaLR"):
        return
    given = call.args[1] if len(call.args) > 1 else next((v for k, v in call.keywords if k == "lr_lambda"), ())
    if len(given) != 1:
        return
    found = program.resolver.atom(number, given[0])
    if found is None or found.kind != "func":
        return
    inner = program.tree.functions[int(found.ref)].fact
    params = {p.name for p in inner.params}
    rates = _rates(program, number, call.args[0] if call.args else ())
    for exit_ in inner.exits:
        atoms = [a for item in exit_.items for a in item]
        told = [a for a in atoms if isinstance(a, str) and not a.startswith("=") and a not in params]
        rated = [a for a in told if a.rpartition(".")[2] in _RATES]
        if len(rated) == 1 and rated[0] in rates and len(told) <= 2 and all(isinstance(a, str) for a in atoms) and params & set(atoms):
            yield at_call(
                program, number, at, "GYR230", f"the factor of `{call.name}` holds `{rated[0]}`, which is the optimizer's own rate: the rate is squared",
                evidence=(program.place(int(found.ref), exit_.line, "the factor", "because"),),
                hint="give back the share of the first rate, from 1 down", side="training",
            )  # fmt: skip
            return


def _rates(program: Program, number: int, optimizer: Atoms) -> set[str]:
    """The paths that the optimizer's `lr` is given as."""
    fn = program.tree.functions[number]
    places = [number, *(program.tree.classes[fn.cls].methods.values() if fn.cls >= 0 else ())]
    out: set[str] = set()
    for place in dict.fromkeys(places):
        fact = program.tree.functions[place].fact
        for bind in fact.binds:
            for atom in bind.value if bind.target in optimizer else ():
                if isinstance(atom, int) and program.role(place, atom) == "optimizer.make":
                    out |= {a for k, v in fact.calls[atom].keywords if k == "lr" for a in v if isinstance(a, str)}
    return {name for a in out for name in (a, f"self.{a}")}
