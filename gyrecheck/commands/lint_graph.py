"""From the program to a drawing: modules by side, and the calls between them that cross or that a rule objects to."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gyrecheck.commands.options import write_file, write_stdout
from gyrecheck.model.finding import Confidence, Finding
from gyrecheck.program.program import SAMPLING, TRAINING, Program
from gyrecheck.report.graph import Arrow, Graph, Node, render_graph

if TYPE_CHECKING:
    from gyrecheck.program.topology import Layout

_HANDOFF = ("buffer.put", "buffer.take", "carrier.write", "carrier.read")
_SYNC = ("weights.publish", "weights.load")
_SHOWN = 3


def graph_of(program: Program, laid: Layout, findings: tuple[Finding, ...]) -> Graph:
    """Modules that do something or that are called across a side, and every call edge between two of them.

    An arrow crosses when it leads from one side to the other, or into a handoff. The code on it is that of a finding in its source
    module whose chain goes on in its target.
    """
    tree = program.tree
    names = _names(program)
    does: dict[int, Counter[str]] = {}
    for fn in program.functions:
        for at, role in program.own(fn.number, *SAMPLING, *TRAINING, *_HANDOFF, *_SYNC):
            does.setdefault(fn.module, Counter())[f"{role} {program.call(fn.number, at).line}"] += 1
    sides = {m: _side(m, laid) for m in range(len(tree.modules))}
    edges: dict[tuple[int, int], str] = {}
    for edge in (e for edges_ in program.calls.edges for e in edges_ if e.confidence is not Confidence.HINT):
        source, target = tree.functions[edge.caller].module, tree.functions[edge.callee].module
        if source != target and (sides[source] != "neutral" or sides[target] != "neutral"):
            edges.setdefault((source, target), program.name(edge.callee))
    found: dict[tuple[str, str], str] = {}
    for finding in findings:
        for place in finding.evidence:
            if place.path != finding.path and not finding.suppressed:
                found.setdefault((finding.path, place.path), finding.code)
    drawn = {m for m, side in sides.items() if side != "neutral"} | {m for pair in edges for m in pair}
    arrows = []
    for (source, target), label in sorted(edges.items(), key=lambda item: (names[item[0][0]], names[item[0][1]])):
        pair = {sides[source], sides[target]}
        code = found.get((tree.modules[source].path, tree.modules[target].path), "")
        arrows.append(Arrow(names[source], names[target], label, len(pair) == 2 and "neutral" not in pair, code))
    nodes = tuple(Node(names[m], sides[m], tuple(does.get(m, ()))[:_SHOWN]) for m in sorted(drawn, key=lambda m: names[m]))
    return Graph(nodes, tuple(arrows), f"Sampling and training ({laid.overall.value})")


def _names(program: Program) -> dict[int, str]:
    """Dotted names, or the path where two files share one."""
    tree = program.tree
    dotted = {m: tree.dotted_name(m) for m in range(len(tree.modules))}
    often = Counter(dotted.values())
    return {m: name if often[name] == 1 else tree.modules[m].path for m, name in dotted.items()}


def _side(module: int, laid: Layout) -> str:
    acts, learns = module in laid.sampling, module in laid.training
    if acts and learns:
        return "both"
    if acts or learns:
        return "sampling" if acts else "training"
    return "handoff" if module in laid.handoff else "neutral"


def write_graph(graph: Graph, form: str, output: Path | None, *, force: bool) -> None:
    """The drawing to a file or standard output."""
    text = render_graph(graph, form)
    if output is None:
        write_stdout(text, last=True)
    else:
        write_file(output, text, force=force)
    raise typer.Exit
