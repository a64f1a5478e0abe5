"""`actor_version` is the sampler's alone, and the trainer's beside `rollout_version`."""

from __future__ import annotations

import json
import random

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app


@pytest.mark.parametrize(("off", "state"), [(0.0, None), (-5.0, "broken")])
def test_a_ratio_at_equal_versions_is_judged(tmp_path, off, state):
    """Both versions are 31 on all 24 rows: log-probs that agree hold, and a last token that is 5 lower on each row breaks it."""
    chance, path = random.Random(1), tmp_path / "rows.jsonl"
    with path.open("w") as file:
        for number in range(24):
            old = [-chance.random() - 0.1 for _ in range(8)]
            new = [*(value + chance.uniform(-0.002, 0.002) for value in old[:-1]), old[-1] + off]
            row = {"slot": number, "rollout_version": 31, "actor_version": 31, "response_ids": [chance.randrange(3, 900) for _ in old]}
            file.write(json.dumps(row | {"loss_mask": [1] * 8, "rollout_log_probs": old, "actor_log_probs": new, "reward": 0.0}) + "\n")
    done = json.loads(CliRunner().invoke(build_app(), ["handoff", "check", str(path), "--output-format", "json"]).stdout)
    told = [f["code"] for f in done["findings"] if f["code"] == "GYR402"] + [v["code"] for v in done["verdicts"] if v["state"] == "broken"]
    assert ("GYR402" in told) == (state == "broken")
    assert done["exit"] in ({1} if state else {0, 1})
