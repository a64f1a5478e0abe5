"""Logs in phrasings that no list spells out (prose, home-made names, tables without units), each with a legitimate twin.

`fixtures/logs/phrased/expected.json` has a row a folder. The numbers follow from how the logs were made, e.g. `mailbox-loses` loses 2 a
line on the last 9 of 18 lines (18), `aged-out-most` drops 1,360 of 2,000 for their age (0.68), `succeeded-short` loses one at every second
of 17 lines (8), `frames-times-ranks` counts 16 x 8,000 frames once for each of 4 ranks (512,000).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gyrecheck.commands.ledger_run import judge_text
from gyrecheck.model.finding import Severity, State, Verdict
from gyrecheck.rulebook.codes import load_codes

PHRASED = Path(__file__).parents[3] / "fixtures" / "logs" / "phrased"
EXPECTED: dict[str, dict[str, Any]] = json.loads((PHRASED / "expected.json").read_text(encoding="utf-8"))


def broken(name: str, file: str) -> list[Verdict]:
    """The broken verdicts above a note on one of a folder's logs."""
    judged = judge_text((PHRASED / name / file).read_text(encoding="utf-8"), load_codes())
    return [v for v in judged.verdicts if v.state is State.BROKEN and v.severity is not Severity.NOTE]


@pytest.mark.parametrize("name", EXPECTED)
def test_fault_is_named_whatever_the_words(name: str) -> None:
    """The verdict has the code, the quantity as the log spells it, and the value where one can be said beforehand."""
    row = EXPECTED[name]
    found = {v.quantity: v.value for v in broken(name, "input.log") if v.code == row["code"]}
    assert row["quantity"] in found, found
    assert row.get("value", found[row["quantity"]]) == found[row["quantity"]]


@pytest.mark.parametrize("name", EXPECTED)
def test_twin_is_left_alone(name: str) -> None:
    """The legitimate twin gives nothing above a note."""
    assert [v.message for v in broken(name, "clean.log")] == []
