"""Idioms that look like violations: legitimate code stays at note level whatever a naive rule would say."""

from __future__ import annotations

from pathlib import Path

import pytest

from gyrecheck.commands.lint_check import judge_modules, load_rules
from gyrecheck.model.facts import Module
from gyrecheck.model.finding import Severity
from gyrecheck.source.cache import Cache
from gyrecheck.source.read import read_source

IDIOMS = sorted((Path(__file__).parents[3] / "fixtures" / "projects" / "idioms").glob("*.py"))
RULES = load_rules(Cache(None))


@pytest.mark.parametrize("path", IDIOMS, ids=lambda p: p.stem)
def test_idiom_stays_at_note(path: Path) -> None:
    """Nothing at warning or error level in legitimate code."""
    module = read_source(path.read_bytes(), path.name)
    assert isinstance(module, Module)
    found = judge_modules((module,), (), RULES, {path.name: path.read_bytes()}).findings
    assert [(f.code, f.line) for f in found if f.severity is not Severity.NOTE] == []
