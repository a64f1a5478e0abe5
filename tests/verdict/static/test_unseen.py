"""Small programs after public defect reports, each with a legitimate near-miss: the defect is found at its line, the twin is clean of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gyrecheck.commands.lint_check import judge_modules, load_rules
from gyrecheck.model.facts import Module
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.source.cache import Cache
from gyrecheck.source.read import read_source

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parents[3] / "fixtures" / "projects" / "unseen"
CASES = sorted(p for p in FOLDER.iterdir() if p.is_dir())
RULES = load_rules(Cache(None))


def found(path: Path) -> tuple[Finding, ...]:
    """The findings in one file."""
    data = path.read_bytes()
    module = read_source(data, path.name)
    assert isinstance(module, Module)
    return judge_modules((module,), (), RULES, {path.name: data}).findings


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_defect_is_found_and_its_twin_is_not(case: Path) -> None:
    """The code stands at its line in the defect; the twin has neither the code nor any error."""
    expected = tomllib.loads((case / "expected.toml").read_text())
    assert (expected["code"], expected["line"]) in {(f.code, f.line) for f in found(case / "input.py")}
    twin = found(case / "clean.py")
    assert [(f.code, f.line) for f in twin if f.code == expected["code"] or f.severity is Severity.ERROR] == []
