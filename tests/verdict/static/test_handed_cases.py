"""Handed cases: what the report names is found where it is, and the legitimate twin stays silent."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gyrecheck.commands.lint_check import Rules, judge_modules, load_rules
from gyrecheck.model.facts import Module
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.source.cache import Cache
from gyrecheck.source.read import read_source

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CASES = Path(__file__).parents[3] / "fixtures" / "projects" / "cases"
CODE_OF = {
    "grad-enabled-in-sampling": {"GYR103"},
    "sampling-inside-dataset": {"GYR202"},
    "sampling-inside-loss": {"GYR203", "GYR204"},
    "grads-cleared-before-use": {"GYR207"},
    "scheduler-cadence": {"GYR209", "GYR205"},
    "swallowed-exception": {"GYR311"},
    "silent-default": {"GYR312", "GYR304"},
}


@pytest.fixture(scope="module")
def rules() -> Rules:
    """The rules, loaded once."""
    return load_rules(Cache(None))


def lint(path: Path, rules: Rules) -> tuple[Finding, ...]:
    """All findings of one file by itself."""
    found = read_source(path.read_bytes(), path.name)
    assert isinstance(found, Module)
    return judge_modules((found,), (), rules, {path.name: path.read_bytes()}).findings


def table(case: Path) -> dict[str, object]:
    """A case's own description."""
    return tomllib.loads((case / "case.toml").read_text(encoding="utf-8"))


ALL = sorted(CASES.iterdir())
LINT = [case for case in ALL if table(case)["tool"] == "lint"]


@pytest.mark.parametrize("case", LINT, ids=lambda c: c.name)
def test_expected_is_found_in_place(case: Path, rules: Rules) -> None:
    """Every expected finding has its code at its line, or at a line that the case names as related."""
    found = lint(case / "input.py", rules)
    for wanted in table(case)["expected"]:  # type: ignore[attr-defined]
        lines = {wanted["line"], *(r["line"] for r in wanted.get("related", ()))}
        hits = [f for f in found if f.code in CODE_OF[wanted["finding"]] and f.line in lines]
        assert hits, (wanted, [(f.code, f.line) for f in found])
        assert hits[0].severity is not Severity.NOTE


@pytest.mark.parametrize("case", LINT, ids=lambda c: c.name)
def test_twin_is_silent(case: Path, rules: Rules) -> None:
    """The twin gets neither the case's codes nor anything at error level."""
    codes = {c for wanted in table(case)["expected"] for c in CODE_OF[wanted["finding"]]}  # type: ignore[attr-defined]
    found = lint(case / "clean.py", rules)
    assert not [f for f in found if f.code in codes]
    assert not [f for f in found if f.severity is Severity.ERROR]


@pytest.mark.parametrize("case", [c for c in ALL if c not in LINT], ids=lambda c: c.name)
def test_programs_of_other_tools_raise_no_error(case: Path, rules: Rules) -> None:
    """Inputs and twins of run-time cases are whole programs: lint calls none of them wrong at error level."""
    for name in ("input.py", "clean.py"):
        assert not [(f.code, f.line) for f in lint(case / name, rules) if f.severity is Severity.ERROR]


def test_chain_is_evidence(rules: Rules) -> None:
    """The helper's forward names the sampling function's two call sites, and where the value is kept."""
    finding = next(f for f in lint(CASES / "001-value-in-postprocess" / "input.py", rules) if f.code == "GYR103")
    assert finding.line == 16
    assert {e.line for e in finding.evidence} >= {24, 25, 28}
