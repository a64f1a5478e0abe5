"""The fifteen ways from a trainer to the sampling side: twelve are found with their chain, three are innocent."""

from __future__ import annotations

from pathlib import Path

import pytest

from gyrecheck.commands.lint_check import judge_modules, load_rules
from gyrecheck.model.facts import Module
from gyrecheck.model.finding import Finding, Topology
from gyrecheck.source.cache import Cache
from gyrecheck.source.read import read_source

ROOT = Path(__file__).parents[3] / "fixtures" / "projects" / "anchors"
WANTED = {
    "01": ("GYR201", 1), "02": ("GYR201", 1), "03": ("GYR201", 1), "04": ("GYR201", 2), "06": ("GYR201", 5), "07": ("GYR201", 1),
    "08": ("GYR201", 1), "09": ("GYR204", 5), "10": ("GYR204", 10), "13": ("GYR201", 2), "14": ("GYR204", 7), "15": ("GYR204", 2),
}  # fmt: skip
INNOCENT = ("05", "11", "12")


@pytest.fixture(scope="module")
def found() -> dict[str, list[Finding]]:
    """Findings of the whole project by file, declared decoupled."""
    data = {p.relative_to(ROOT).as_posix(): p.read_bytes() for p in sorted(ROOT.rglob("*.py"))}
    modules = tuple(m for name, text in data.items() if isinstance(m := read_source(text, name), Module))
    judged = judge_modules(modules, (), load_rules(Cache(None)), data, declared=Topology.DECOUPLED)
    out: dict[str, list[Finding]] = {}
    for finding in judged.findings:
        out.setdefault(finding.path, []).append(finding)
    return out


@pytest.mark.parametrize("case", sorted(WANTED))
def test_crossing_is_found(case: str, found: dict[str, list[Finding]]) -> None:
    """The crossing has its code and stands at the trainer's own line."""
    hits = [(f.code, f.line) for f in found.get(f"trainers/case_{case}.py", [])]
    assert WANTED[case] in hits


@pytest.mark.parametrize("case", INNOCENT)
def test_innocent_is_silent(case: str, found: dict[str, list[Finding]]) -> None:
    """Type-only imports, a pure function of a mixed module and an optimizer's step raise nothing."""
    assert f"trainers/case_{case}.py" not in found


@pytest.mark.parametrize(("case", "last"), [("03", 6), ("09", 11), ("10", 11), ("14", 11)])
def test_chain_ends_at_the_primitive(case: str, last: int, found: dict[str, list[Finding]]) -> None:
    """Through helpers, methods of attributes and partial, the evidence leads down to the call that touches the environment."""
    finding = next(f for f in found[f"trainers/case_{case}.py"] if f.code == WANTED[case][0])
    helper = [e.line for e in finding.evidence if e.path == "rig/helpers.py"]
    assert helper, finding.evidence
    assert max(helper) >= last or last in helper


def test_nothing_beside_the_trainers(found: dict[str, list[Finding]]) -> None:
    """The sampling side and the helpers themselves are in order."""
    assert not [p for p in found if p.startswith("rig/")]
