"""The sides of a program and what crosses between them, as a drawing: DOT, Mermaid, or one HTML page with the picture inside.

Nothing is fetched and nothing runs: the page holds its own SVG. Names come from the checked code, so every form escapes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

SIDES = ("sampling", "handoff", "both", "training", "neutral")
_FILL = {"sampling": "#d7ecd9", "handoff": "#fdf0c8", "both": "#f6d6d6", "training": "#d9e4f7", "neutral": "#eeeeee"}
_TITLE = {"sampling": "Sampling", "handoff": "Handoff", "both": "Both sides", "training": "Training", "neutral": "Neither"}
_WIDTH, _HEIGHT, _GAP, _COLUMN = 210, 34, 14, 290


@dataclass(frozen=True, slots=True)
class Node:
    """A module: its side (one of `SIDES`) and what it does, e.g. `env.step 52`."""

    name: str
    side: str
    does: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Arrow:
    """Code of `source` that calls into `target`. `crossing` when it leads from one side to the other; `code` when a rule objects."""

    source: str
    target: str
    label: str = ""
    crossing: bool = False
    code: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    """The drawing's content; nodes and arrows are drawn in the order given."""

    nodes: tuple[Node, ...]
    arrows: tuple[Arrow, ...]
    title: str = ""


def render_graph(graph: Graph, form: str) -> str:
    """The graph as `dot`, `mermaid` or `html`, ending with a newline."""
    return {"dot": _dot, "mermaid": _mermaid, "html": _html}[form](graph)


def _by_side(graph: Graph) -> list[tuple[str, list[Node]]]:
    return [(side, nodes) for side in SIDES if (nodes := [n for n in graph.nodes if n.side == side])]


def _label(arrow: Arrow) -> str:
    return f"{arrow.code} {arrow.label}".strip()


# ---- DOT


def _dot(graph: Graph) -> str:
    lines = ["digraph gyrecheck {", "  rankdir=LR;", '  node [shape=box, style="filled,rounded", fontname="sans-serif"];']
    for side, nodes in _by_side(graph):
        lines += [f'  subgraph "cluster_{side}" {{', f"    label={_quoted(_TITLE[side])};", "    style=rounded;"]
        for node in nodes:
            text = "\\n".join(_inner(part) for part in (node.name, *node.does))
            lines.append(f'    {_quoted(node.name)} [label="{text}", fillcolor="{_FILL[side]}"];')
        lines.append("  }")
    for arrow in graph.arrows:
        paint = (
            ', color="#b00020", fontcolor="#b00020", penwidth=2'
            if arrow.code
            else ", penwidth=2"
            if arrow.crossing
            else ', color="#999999"'
        )
        lines.append(f"  {_quoted(arrow.source)} -> {_quoted(arrow.target)} [label={_quoted(_label(arrow))}{paint}];")
    return "\n".join([*lines, "}"]) + "\n"


def _inner(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _quoted(text: str) -> str:
    return f'"{_inner(text)}"'


# ---- Mermaid


def _mermaid(graph: Graph) -> str:
    ids = {node.name: f"m{at}" for at, node in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    for side, nodes in _by_side(graph):
        lines.append(f'  subgraph {side}["{_TITLE[side]}"]')
        lines += [f'    {ids[node.name]}["{"<br/>".join(_entity(part) for part in (node.name, *node.does))}"]:::{side}' for node in nodes]
        lines.append("  end")
    drawn = [arrow for arrow in graph.arrows if arrow.source in ids and arrow.target in ids]
    for arrow in drawn:
        line = "==>" if arrow.crossing or arrow.code else "-->"
        label = f'|"{_entity(_label(arrow))}"|' if _label(arrow) else ""
        lines.append(f"  {ids[arrow.source]} {line}{label} {ids[arrow.target]}")
    lines += [f"  classDef {side} fill:{_FILL[side]},stroke:#555,color:#111" for side, _ in _by_side(graph)]
    bad = [str(at) for at, arrow in enumerate(drawn) if arrow.code]
    if bad:
        lines.append(f"  linkStyle {','.join(bad)} stroke:#b00020,stroke-width:3px")
    return "\n".join(lines) + "\n"


def _entity(text: str) -> str:
    """Mermaid has entity codes of its own; all that is not plain becomes one."""
    return "".join(ch if ch.isalnum() or ch in " ._-/:,()" else f"#{ord(ch)};" for ch in text)


# ---- HTML


def _html(graph: Graph) -> str:
    columns = _by_side(graph)
    place: dict[str, tuple[int, int]] = {}
    tallest = 0
    for at, (_, nodes) in enumerate(columns):
        y = 64
        for node in nodes:
            place[node.name] = (20 + at * _COLUMN, y)
            y += _tall(node) + _GAP
        tallest = max(tallest, y)
    width, height = 20 + len(columns) * _COLUMN, max(tallest, 80)
    drawn = [arrow for arrow in graph.arrows if arrow.source in place and arrow.target in place]
    picture = [_heading(at, side) for at, (side, _) in enumerate(columns)]
    tall = {node.name: _tall(node) for node in graph.nodes}
    picture += [_line(arrow, place, tall) for arrow in sorted(drawn, key=lambda a: (bool(a.code), a.crossing))]
    picture += [_box(node, *place[node.name]) for _, nodes in columns for node in nodes]
    rows = "".join(
        f"<tr><td>{escape(a.source)}</td><td>{escape(a.target)}</td><td>{escape(a.label)}</td><td>{escape(a.code)}</td></tr>"
        for a in graph.arrows
        if a.crossing or a.code
    )
    table = f"<table><tr><th>from</th><th>to</th><th>by</th><th>rule</th></tr>{rows}</table>" if rows else "<p>Nothing crosses.</p>"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(graph.title or 'gyrecheck')}</title>\n<style>{_STYLE}</style></head>\n"
        f"<body><h1>{escape(graph.title or 'gyrecheck')}</h1>\n"
        f'<svg role="img" aria-label="modules by side" width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
        f"{_MARKERS}\n" + "\n".join(picture) + f"\n</svg>\n<h2>What crosses</h2>\n{table}\n</body></html>\n"
    )


_STYLE = (
    "body{font:14px system-ui,sans-serif;margin:24px;color:#111;background:#fff}svg text{font:12px system-ui,sans-serif}"
    "table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:4px 8px;text-align:left}"
    "path{fill:none;stroke:#bbb}path.crossing{stroke:#444;stroke-width:2}path.found{stroke:#b00020;stroke-width:2.5}"
    "svg .does{fill:#555;font-size:11px}svg .side{font-size:15px;font-weight:600}"
)
_MARKERS = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse">'
    '<path d="M0 0 8 4 0 8z" style="fill:#555;stroke:none"/></marker></defs>'
)


def _tall(node: Node) -> int:
    return _HEIGHT + 14 * len(node.does)


def _heading(at: int, side: str) -> str:
    return f'<text class="side" x="{20 + at * _COLUMN}" y="40">{_TITLE[side]}</text>'


def _box(node: Node, x: int, y: int) -> str:
    parts = [f"<g><title>{escape(node.name)}</title>"]
    parts.append(f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_tall(node)}" rx="6" fill="{_FILL[node.side]}" stroke="#555"/>')
    parts.append(f'<text x="{x + 10}" y="{y + 21}">{escape(_short(node.name))}</text>')
    parts += [f'<text class="does" x="{x + 10}" y="{y + 38 + 14 * at}">{escape(_short(text))}</text>' for at, text in enumerate(node.does)]
    return "".join(parts) + "</g>"


def _short(text: str) -> str:
    return text if len(text) <= 32 else f"…{text[-31:]}"


def _line(arrow: Arrow, place: dict[str, tuple[int, int]], tall: dict[str, int]) -> str:
    (x1, y1), (x2, y2) = place[arrow.source], place[arrow.target]
    y1, y2 = y1 + tall[arrow.source] // 2, y2 + tall[arrow.target] // 2
    if x1 == x2:  # within a column: around its right edge
        start, end, bend = x1 + _WIDTH, x2 + _WIDTH, x1 + _WIDTH + 40
        shape = f"M{start} {y1}C{bend} {y1} {bend} {y2} {end} {y2}"
    else:
        start, end = (x1 + _WIDTH, x2) if x1 < x2 else (x1, x2 + _WIDTH)
        middle = (start + end) // 2
        shape = f"M{start} {y1}C{middle} {y1} {middle} {y2} {end} {y2}"
    kind = "found" if arrow.code else "crossing" if arrow.crossing else "inner"
    title = escape(f"{arrow.source} -> {arrow.target} {_label(arrow)}".strip())
    return f'<path class="{kind}" d="{shape}" marker-end="url(#tip)"><title>{title}</title></path>'
