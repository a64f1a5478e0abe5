"""A run that learns as well is no suspect for what learning itself does."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


@pytest.mark.parametrize(("gain", "severity"), [(3, "note"), (1, "warning")])
def test_more_clipping_is_a_note_where_the_reward_follows(tmp_path, gain, severity):
    """Clip fractions of 0.09 against 0.004 with four passes against one: a note where the return ends higher, a warning where lower."""
    for name, clip, passes, slope in (("a", 0.004, 1, 2), ("b", 0.09, 4, gain)):
        rows = [
            {"update": i, "env_steps": 2048 * i, "uses_per_row": passes, "clip_fraction": clip + 0.0001 * (i % 3), "mean_return": slope * i}
            for i in range(1, 41)
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [sys.executable, "-m", "gyrecheck", "ledger", "--compare", "a.jsonl", "b.jsonl", "--output-format", "json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = [v["severity"] for v in json.loads(done.stdout)["verdicts"] if v["quantity"] == "clip_fraction" and v["state"] == "broken"]
    assert found == [severity]
