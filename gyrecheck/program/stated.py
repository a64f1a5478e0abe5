"""What a project's configuration says of its files, by their numbers: sides, entry points, carrier. What is stated outranks what is inferred."""

from __future__ import annotations

from dataclasses import dataclass, field

from gyrecheck.model.finding import Topology
from gyrecheck.model.roles import Side
from gyrecheck.program.program import Program
from gyrecheck.program.tree import Tree
from gyrecheck.rulebook.project_config import ProjectConfig, fits


@dataclass(frozen=True, slots=True)
class Stated:
    """An empty one states nothing."""

    topology: Topology | None = None
    side_of: dict[int, Side] = field(default_factory=dict)
    """Files whose side is said; of several globs that fit, the longest."""
    samplers: frozenset[int] = frozenset()
    trainers: frozenset[int] = frozenset()
    """The files that start a side alone; both are empty unless both are stated."""
    carriers: frozenset[int] = frozenset()
    """The files that the carrier is, or stands in."""
    carrier_name: str = ""
    """The carrier's name in its file, when it is a symbol."""
    carrier_text: str = ""

    def is_carrier(self, module: int, name: str) -> bool:
        """Whether the module-level `name` of a file is the carrier, or part of it."""
        return module in self.carriers and self.carrier_name in {"", name}

    def carries(self, program: Program, modules: frozenset[int]) -> bool:
        """Whether the carrier lies in these files, or is named in them as a place on disk."""
        if self.carriers & modules:
            return True
        if not self.carrier_text:
            return False
        calls = (c for m in modules for fn in program.tree.functions_of(m) for c in fn.fact.calls)
        binds = (b.value for m in modules for fn in program.tree.functions_of(m) for b in fn.fact.binds)
        texts = (a for atoms in (*(x for c in calls for x in (*c.args, *(v for _, v in c.keywords))), *binds) for a in atoms)
        return any(isinstance(a, str) and a.startswith(("='", '="')) and self.carrier_text in a for a in texts)


def stated_by(settings: ProjectConfig, topology: Topology | None, tree: Tree) -> Stated:
    """The settings as the files of `tree` have them."""
    root, starts = settings.root, settings.entrypoints
    both = bool(starts.sampler and starts.trainer)
    samplers = _fitting(tree, starts.sampler if both else (), root)
    trainers = _fitting(tree, starts.trainer if both else (), root)
    side_of = dict.fromkeys(samplers - trainers, Side.SAMPLING) | dict.fromkeys(trainers - samplers, Side.TRAINING)
    for glob in sorted(settings.sides, key=len):
        side_of |= dict.fromkeys(_fitting(tree, (glob,), root), settings.sides[glob])
    carriers, name = _carrier(tree, settings.carrier, root)
    side_of |= dict.fromkeys((m for m in carriers if not name and m not in side_of), Side.HANDOFF)
    return Stated(topology, side_of, samplers, trainers, carriers, name, settings.carrier.rstrip("/"))


def _carrier(tree: Tree, carrier: str, root: str) -> tuple[frozenset[int], str]:
    """A file or folder, a dotted module, or a dotted name in one."""
    if not carrier:
        return frozenset(), ""
    found = _fitting(tree, (carrier, f"{carrier}.py"), root)
    if found:
        return found, ""
    module, _, name = carrier.rpartition(".")
    for dotted, symbol in ((carrier, ""), (module, name)):
        same = frozenset(m for m in range(len(tree.modules)) if dotted and tree.dotted_name(m) == dotted)
        if same:
            return same, symbol
    return frozenset(), ""


def _fitting(tree: Tree, globs: tuple[str, ...], root: str) -> frozenset[int]:
    if not globs:
        return frozenset()
    return frozenset(m for m, facts in enumerate(tree.modules) if any(fits(facts.path, glob, root) for glob in globs))
