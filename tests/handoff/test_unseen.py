"""Faults after public defect reports, each beside a legitimate neighbour: found at its records, and the neighbour left alone."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from gyrecheck.commands.handoff_check import check_report
from gyrecheck.model.finding import Severity

CASES = Path(__file__).parents[2] / "fixtures" / "trajectories" / "unseen"
EXPECTED = tomllib.loads((CASES / "expected.toml").read_text())


@pytest.mark.parametrize("name", EXPECTED)
def test_a_fault_is_found_and_its_neighbour_is_left_alone(name: str) -> None:
    """The fault gives its code at its records; its neighbour gives neither that code above a note nor any error."""
    code, records = EXPECTED[name]
    found, _ = check_report([CASES / name / "input.jsonl"], {})
    assert records in {finding.records for finding in found.findings if finding.code == code}
    clean, _ = check_report([CASES / name / "clean.jsonl"], {})
    assert not [f for f in clean.findings if f.severity is Severity.ERROR or (f.code == code and f.severity is not Severity.NOTE)]
