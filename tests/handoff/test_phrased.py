"""Records under home-made keys, each with a legitimate neighbour: keys are understood by their words and values, faults found at their records."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gyrecheck.handoff.open import open_records
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.rulebook.codes import load_codes
from gyrecheck.rulebook.contract import load_contract
from gyrecheck.rulebook.ratio_limits import load_ratio_limits
from gyrecheck.verdict.records.judge import judge_records

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CASES = Path(__file__).parents[2] / "fixtures" / "trajectories" / "phrased"
EXPECTED = tomllib.loads((CASES / "expected.toml").read_text())
CONTRACT, CODES = load_contract(), load_codes()


def _found(path: Path) -> tuple[Finding, ...]:
    return judge_records(open_records([path], CONTRACT), CONTRACT, CODES, load_ratio_limits()).findings


@pytest.mark.parametrize("name", EXPECTED)
def test_a_fault_is_found_under_any_key_and_its_neighbour_is_left_alone(name: str) -> None:
    """The fault gives its code at its records; its neighbour gives nothing above a note."""
    code, records = EXPECTED[name]
    found = {finding.records for finding in _found(CASES / name / "input.jsonl") if finding.code == code}
    assert (records in found) if records else found
    assert [f.message for f in _found(CASES / name / "clean.jsonl") if f.severity is not Severity.NOTE] == []
