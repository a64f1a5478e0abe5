"""A log that counts samples only, and goes on printing while none are added."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app


@pytest.mark.parametrize(("still", "found"), [(30, {"GYR515"}), (4, set())])
def test_frames_that_stand_to_the_end_are_told(tmp_path, still, found):
    """Thirty reports of one value after sixty that grew are a standstill; four are a pause."""
    values = [4096 * n for n in range(1, 61)] + [4096 * 60] * still
    log = tmp_path / "sf.log"
    log.write_text(
        "".join(
            f"[2025-04-05 11:{n // 12 % 60:02d}:{n % 12 * 5:02d},072][04121] Fps is (10 sec: 1.0, 60 sec: 1.0, 300 sec: 1.0). Total num frames: "
            f"{4 * value}. Throughput: 0: 1.0. Samples: {value}. Policy #0 lag: (min: 0.0, avg: 1.5, max: 3.0)\n"
            for n, value in enumerate(values)
        )
    )
    done = CliRunner().invoke(build_app(), ["ledger", str(log), "--output-format", "json"])
    verdicts = json.loads(done.stdout)["verdicts"]
    assert {v["code"] for v in verdicts if v["state"] == "broken"} == found
    assert {v["first"]["line"] for v in verdicts if v["state"] == "broken"} == ({60} if found else set())
