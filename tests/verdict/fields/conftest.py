"""Records as the questions see them: written as JSON lines, read back, judged in one pass."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gyrecheck.handoff.open import open_records
from gyrecheck.rulebook.codes import load_codes
from gyrecheck.rulebook.contract import load_contract
from gyrecheck.rulebook.ratio_limits import load_ratio_limits
from gyrecheck.verdict.records.judge import Judgement, judge_records

Rows = list[dict[str, Any]]
JudgeRows = Callable[..., Judgement]


@pytest.fixture
def judge(tmp_path: Path) -> JudgeRows:
    def run(rows: Rows, fields: dict[str, str] | None = None, schema: str = "") -> Judgement:
        path = tmp_path / "records.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        own = None
        if schema:
            own = tmp_path / "schema.toml"
            own.write_text(schema)
        contract = load_contract(own)
        return judge_records(open_records([path], contract), contract, load_codes(), load_ratio_limits(), fields)

    return run
