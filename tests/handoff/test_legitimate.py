"""Trajectory files as careful code bases write them, each with something that tempts a check: nothing above a note falls on them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gyrecheck.handoff.open import open_records
from gyrecheck.model.finding import Severity
from gyrecheck.rulebook.codes import load_codes
from gyrecheck.rulebook.contract import load_contract
from gyrecheck.rulebook.ratio_limits import load_ratio_limits
from gyrecheck.verdict.records.judge import judge_records

FILES = sorted((Path(__file__).parents[2] / "fixtures" / "trajectories" / "legitimate").iterdir())
CONTRACT, CODES = load_contract(), load_codes()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_above_a_note(path: Path) -> None:
    """Whatever the file tempts to, it is in order: it gives notes at most."""
    found = judge_records(open_records([path], CONTRACT), CONTRACT, CODES, load_ratio_limits()).findings
    assert [f.message for f in found if f.severity is not Severity.NOTE] == []
