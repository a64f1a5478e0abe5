"""Drawings: every module and crossing is there, whatever its name, and the page stands alone."""

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gyrecheck.report.graph import Arrow, Graph, Node, render_graph

GRAPH = Graph(
    (
        Node("agent.collect", "sampling", ("env.step 52",)),
        Node("agent.buffer", "handoff"),
        Node("agent.ppo", "training"),
        Node("util", "neutral"),
        Node("main", "both"),
    ),
    (
        Arrow("agent.collect", "agent.buffer", "put", crossing=True),
        Arrow("agent.ppo", "agent.collect", "rollout", crossing=True, code="GYR204"),
        Arrow("agent.ppo", "util", "mean"),
    ),
    "Sampling and training (decoupled)",
)


@pytest.mark.parametrize(("form", "name"), [("dot", "graph.dot"), ("mermaid", "graph.mmd"), ("html", "graph.html")])
def test_golden(form, name, golden):
    """The bytes of each form are kept."""
    golden(name, render_graph(GRAPH, form))


def test_the_page_loads_nothing():
    """No script, no link, no address: what is drawn is in the file."""
    page = render_graph(GRAPH, "html")
    assert not re.search(r"<script|<link|https?:|@import|url\((?!#)", page)


def test_what_crosses_is_listed():
    """The table under the picture has the two crossings and not the inner call."""
    page = render_graph(GRAPH, "html")
    assert re.findall(r"<tr><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td></tr>", page) == [
        ("agent.collect", "agent.buffer", "put", ""),
        ("agent.ppo", "agent.collect", "rollout", "GYR204"),
    ]
    assert "Nothing crosses." in render_graph(Graph(GRAPH.nodes, GRAPH.arrows[2:]), "html")


@given(
    st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20),
    st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=20),
)
def test_any_name_is_escaped(name, label):
    """Quotes, brackets and markup in names break none of the forms."""
    graph = Graph((Node(name, "sampling", (label,)), Node("other", "training")), (Arrow(name, "other", label, crossing=True),))
    page = render_graph(graph, "html")
    svg = page[page.index("<svg") : page.index("</svg>") + 6]
    assert len(ET.fromstring(svg).findall(".//rect")) == 2  # noqa: S314 - our own text
    dot = render_graph(graph, "dot")
    unescaped = re.sub(r"\\.", "", dot)
    assert unescaped.count('"') % 2 == 0
    for line in render_graph(graph, "mermaid").splitlines():
        assert line.count('"') in {0, 2}
