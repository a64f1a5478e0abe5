"""Rows of one step belong to one slice of it; another pass, or a rank that shares rows, may hold them again."""

from __future__ import annotations

import json
import random

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app


def _copies(tmp_path, key: str, times: int, fields: tuple[str, ...]) -> list[str]:
    chance, path = random.Random(8), tmp_path / "rows.jsonl"
    with path.open("w") as file:
        for step in range(3):
            rows = []
            for number in range(6):
                ids = [chance.randrange(900) for _ in range(chance.randrange(5, 9))]
                row = {"uid": f"s{step}-{number}", "prompt_id": f"q{step}{number // 2}", "policy_version": step, "completion_ids": ids}
                row |= {"logps": [round(-chance.uniform(0.1, 3), 4) for _ in ids], "reward": float(number % 2)}
                rows.append({name: row[name] for name in fields})
            for part in range(times):
                file.writelines(json.dumps({"step": step, key: part} | row) + "\n" for row in rows)
    done = json.loads(CliRunner().invoke(build_app(), ["handoff", "check", str(path), "--output-format", "json"]).stdout)
    return [f["records"] for f in done["findings"] if f["code"] == "GYR337"]


FIELDS = ("prompt_id", "policy_version", "completion_ids", "logps", "reward")


@pytest.mark.parametrize(("key", "times"), [("slice", 4), ("dp_rank", 3), ("micro_batch", 4), ("accum_index", 2)])
def test_slices_that_hold_the_same_rows_are_copies(tmp_path, key, times):
    """Six rows stand in every slice of a step: all but those of the first slice are copies, however many slices there are."""
    found = _copies(tmp_path, key, times, FIELDS)
    size = 6 * times
    assert found == [", ".join(f"{at * size + 7}-{at * size + size}" for at in range(3))]


@pytest.mark.parametrize(("key", "times"), [("ppo_epoch", 2), ("epoch", 4), ("tp_rank", 2), ("cp_rank", 4)])
@pytest.mark.parametrize("fields", [FIELDS, ("uid", *FIELDS)])
def test_another_pass_holds_them_on_purpose(tmp_path, key, times, fields):
    """The same rows under another epoch of the update, or on another rank of a tensor-parallel group, are no second samples."""
    assert _copies(tmp_path, key, times, fields) == []
