"""How the two sides are laid out, inferred for each group of files that import one another; with the reason, for the report.

synchronous: one function does both, or a driver calls both in turn with no carrier between. colocated: a driver, and a carrier.
decoupled: entry points of their own, threads or processes of their own, or no function that reaches both. What the configuration
states of topology, sides, entry points and carrier outranks all that.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gyrecheck.model.finding import Topology
from gyrecheck.model.roles import Side
from gyrecheck.program.duties import Duty, duties
from gyrecheck.program.program import ACTING, LEARNING, SAMPLING, TRAINING, Program
from gyrecheck.program.stated import Stated

HANDING = ("buffer.put", "buffer.take", "carrier.write", "carrier.read")


@dataclass(frozen=True, slots=True)
class Group:
    """Files that import one another. `meeting` is the function where both sides meet, or -1."""

    modules: frozenset[int]
    topology: Topology
    reason: str
    meeting: int = -1
    places: tuple[tuple[int, int], ...] = ()
    """(function, call) of the acting and the learning call that meet."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The groups, the duties, and the sides of files."""

    groups: tuple[Group, ...]
    of_module: dict[int, Group]
    duties: tuple[Duty, ...]
    sampling: frozenset[int]
    training: frozenset[int]
    handoff: frozenset[int]
    stated: Stated = field(default_factory=Stated)

    @property
    def declared(self) -> bool:
        """The topology is stated, not inferred."""
        return self.stated.topology is not None

    @property
    def overall(self) -> Topology:
        """The widest layout among groups in which both sides meet; decoupled when they meet nowhere."""
        kinds = {g.topology for g in self.groups if g.meeting >= 0}
        if not kinds or Topology.DECOUPLED in kinds:
            return Topology.DECOUPLED
        return Topology.COLOCATED if Topology.COLOCATED in kinds else Topology.SYNCHRONOUS


def layout(program: Program, stated: Stated | None = None) -> Layout:
    """The layout of all files; what is stated overrules what is inferred, the meeting places stay."""
    stated = stated or Stated()
    found = duties(program)
    by_module: dict[int, list[Duty]] = {}
    for duty in found:
        by_module.setdefault(program.tree.functions[duty.function].module, []).append(duty)
    groups = []
    for modules in _groups(program):
        own = [d for m in sorted(modules) for d in by_module.get(m, ())]
        groups.append(_judge(program, modules, own, stated))
    sides: dict[Side, set[int]] = {}
    for side, roles in ((Side.SAMPLING, SAMPLING), (Side.TRAINING, TRAINING), (Side.HANDOFF, HANDING)):
        inferred = {program.functions[n].module for n in program.doing(*roles)} - stated.side_of.keys()
        sides[side] = inferred | {module for module, said in stated.side_of.items() if said is side}
    table = {m: g for g in groups for m in g.modules}
    acting, learning, handing = (frozenset(sides[side]) for side in (Side.SAMPLING, Side.TRAINING, Side.HANDOFF))
    return Layout(tuple(groups), table, tuple(found), acting, learning, handing, stated)


def _groups(program: Program) -> list[frozenset[int]]:
    parent = list(range(len(program.tree.modules)))

    def top(at: int) -> int:
        while parent[at] != at:
            parent[at] = parent[parent[at]]
            at = parent[at]
        return at

    tree = program.tree
    for module, facts in enumerate(tree.modules):
        for entry in facts.imports:
            if entry.level:
                folder = tree.relative(module, entry.level, entry.module)
                targets = [tree.at_path(f"{folder}/{entry.name}"), tree.at_path(folder)]
            elif entry.kind == "from":
                targets = [tree.module(f"{entry.module}.{entry.name}", module), tree.module(entry.module, module)]
            else:
                targets = [tree.module(entry.module, module)]
            for target in targets:
                if target >= 0:
                    parent[top(target)] = top(module)
    out: dict[int, set[int]] = {}
    for module in range(len(parent)):
        out.setdefault(top(module), set()).add(module)
    return [frozenset(group) for group in out.values()]


def _judge(program: Program, modules: frozenset[int], own: list[Duty], stated: Stated) -> Group:
    declared = stated.topology
    if modules & (stated.samplers | stated.trainers):
        mixed = _mixed(program, modules, stated)
        places = _meeting(program, mixed) if mixed >= 0 else ()
        return Group(modules, declared or Topology.DECOUPLED, "the configuration names an entry point for each side", mixed, places)
    fused = next((d for d in own if d.duty == "fused"), None)
    loops = fused or next((d for d in own if d.duty == "crossing" and is_loop(program, d.function)), None)
    drivers = [d for d in own if d.duty == "driver"]
    started = _started(program, modules)
    if loops is not None:
        places = _meeting(program, loops.function)
        return Group(modules, declared or Topology.SYNCHRONOUS, loops.why, loops.function, places)
    apart = started["sampling"] and started["training"]
    if apart:
        return Group(modules, declared or Topology.DECOUPLED, "a sampling and a training part are started on their own")
    if _at_once(program, modules):
        reason = "a thread of the one side runs while the other side runs in its starter"
        return Group(
            modules,
            declared or Topology.COLOCATED,
            reason,
            *((drivers[0].function, _meeting(program, drivers[0].function)) if drivers else ()),
        )
    if drivers:
        first = min(drivers, key=lambda d: (not _is_root(program, d.function), d.function))
        carrier = any(program.tree.functions[n].module in modules for n in program.doing("carrier.write", "carrier.make"))
        carrier = carrier or stated.carries(program, modules)
        kind = Topology.COLOCATED if carrier else Topology.SYNCHRONOUS
        reason = f"{program.name(first.function)} calls both sides in turn" + (", a carrier lies between" if carrier else "")
        return Group(modules, declared or kind, reason, first.function, _meeting(program, first.function))
    for fn in (f for m in sorted(modules) for f in program.tree.functions_of(m)):
        samples = next(
            (e for e in program.calls.edges[fn.number] if e.call >= 0 and e.kind == "call" and "rollout" in program.region(e.callee)), None
        )
        if (
            samples is not None
            and program.has(fn.number, *LEARNING, full=True)
            and not program.region(fn.number) & {"loss", "update", "evaluation"}
        ):
            reason = f"{program.name(fn.number)} calls {program.name(samples.callee)} and trains in turn"
            return Group(
                modules, declared or Topology.SYNCHRONOUS, reason, fn.number, ((fn.number, samples.call), *_meeting(program, fn.number))
            )
    return Group(modules, declared or Topology.DECOUPLED, "no function reaches both sides")


def _mixed(program: Program, modules: frozenset[int], stated: Stated) -> int:
    """A function in an entry point of one side that reaches the other side, too; -1 when each starts its own side alone."""
    for files, other in ((stated.samplers, LEARNING), (stated.trainers, ACTING)):
        for fn in (f for m in sorted(files & modules) for f in program.tree.functions_of(m)):
            if program.has(fn.number, *other) or any(program.is_driver(e.callee) for e in program.calls.edges[fn.number]):
                return fn.number
    return -1


def is_loop(program: Program, number: int) -> bool:
    """A function that does one side itself and calls the other, as the outer loop of a program does: nobody's part, or named as one."""
    fn = program.tree.functions[number]
    if fn.fact.name == "<module>":
        return True
    region = program.region(number)
    if region & {"loss", "update", "rollout", "dataset", "reward"}:
        return False
    return "driver" in region or _is_root(program, number)


def _is_root(program: Program, number: int) -> bool:
    """Called by no other function than module bodies."""
    return all(program.tree.functions[e.caller].fact.name == "<module>" for e in program.callers[number])


def _meeting(program: Program, number: int) -> tuple[tuple[int, int], ...]:
    out = []
    for roles in (ACTING, LEARNING):
        role = program.has(number, *roles, full=True)
        chain = program.full.chain(number, role) if role else ()
        if chain:
            out.append((chain[-1].function, chain[-1].call))
    return tuple(out)


def _at_once(program: Program, modules: frozenset[int]) -> bool:
    """A function starts one side as a thread or process and then calls the other side itself."""
    for number in program.doing("thread.start", hints=True):
        fn = program.tree.functions[number]
        if fn.module not in modules:
            continue
        starts = {at for at, _ in program.own(number, "thread.start", hints=True)}
        edges = program.calls.edges[fn.number]
        away = {e.callee for e in edges if e.call in starts and e.kind == "passed"}
        here = {e.callee for e in edges if e.kind == "call" and e.call > min(starts)}
        for one, other in ((ACTING, LEARNING), (LEARNING, ACTING)):
            apart = any(program.has(c, *one, full=True) and not program.has(c, *other, full=True) for c in away)
            if apart and any(program.has(c, *other, full=True) and not program.has(c, *one, full=True) for c in here):
                return True
    return False


def _started(program: Program, modules: frozenset[int]) -> dict[str, list[int]]:
    """Functions that run as a thread, process or script of their own, by the one side they reach."""
    entries: set[int] = set()
    for number in program.doing("thread.start", hints=True):
        if program.tree.functions[number].module in modules:
            starts = {at for at, _ in program.own(number, "thread.start", hints=True)}
            entries.update(e.callee for e in program.calls.edges[number] if e.call in starts and e.kind == "passed")
    for body in (program.tree.first_function[m] for m in modules):
        blocks = program.tree.functions[body].fact.blocks
        entries.update(
            e.callee for e in program.calls.edges[body]
            if e.call >= 0 and any(blocks[b].kind == "main" for b in program.blocks_up(body, program.call(body, e.call).block))
        )  # fmt: skip
    out: dict[str, list[int]] = {"sampling": [], "training": []}
    for entry in entries:
        acts, learns = program.has(entry, *ACTING, full=True), program.has(entry, *LEARNING, full=True)
        if acts and not learns:
            out["sampling"].append(entry)
        elif learns and not acts:
            out["training"].append(entry)
    return out
