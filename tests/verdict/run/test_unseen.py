"""Invented logs after public defect reports, each with a legitimate twin: the fault is named, the twin is left alone.

`fixtures/logs/unseen/expected.json` has a row a folder. The numbers follow from how the logs were made, e.g. `timeouts-silent` sends 40
a line and loses 3 at every third of 16 lines (5 x 3 = 15), `epoch-tail` draws 1000 and trains 960 in ten epochs (10 x 40 = 400).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gyrecheck.commands.ledger_run import judge_text
from gyrecheck.model.finding import Severity, State, Verdict
from gyrecheck.rulebook.codes import load_codes

UNSEEN = Path(__file__).parents[3] / "fixtures" / "logs" / "unseen"
EXPECTED: dict[str, dict[str, Any]] = json.loads((UNSEEN / "expected.json").read_text(encoding="utf-8"))


def broken(name: str, file: str) -> list[Verdict]:
    """The broken verdicts on one of a folder's logs."""
    judged = judge_text((UNSEEN / name / file).read_text(encoding="utf-8"), load_codes())
    return [v for v in judged.verdicts if v.state is State.BROKEN]


@pytest.mark.parametrize("name", EXPECTED)
def test_fault_is_named(name: str) -> None:
    """The verdict has the code, the quantity, the value where one is given, and the line."""
    row = EXPECTED[name]
    found = [v for v in broken(name, "input.log") if v.code == row["code"] and v.quantity == row["quantity"]]
    assert found, row
    assert row.get("value", found[0].value) == found[0].value
    assert row.get("line", 0) == (found[0].first.line if found[0].first else 0)


@pytest.mark.parametrize("name", EXPECTED)
def test_legitimate_twin_is_left_alone(name: str) -> None:
    """Neither the twin's code nor any error is reported."""
    found = broken(name, "clean.log")
    assert [v.message for v in found if v.code == EXPECTED[name]["code"] or v.severity is Severity.ERROR] == []


@pytest.mark.parametrize("path", sorted((UNSEEN.parent / "legitimate").glob("*.log")), ids=lambda path: path.stem)
def test_what_looks_odd_and_is_right_stays_silent(path: Path) -> None:
    """No verdict above a note is broken, e.g. on a sync that is skipped by design, or a level of -1 that means unknown."""
    judged = judge_text(path.read_text(encoding="utf-8"), load_codes())
    assert [v.message for v in judged.verdicts if v.state is State.BROKEN and v.severity is not Severity.NOTE] == []
