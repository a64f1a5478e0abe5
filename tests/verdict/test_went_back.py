"""A run that goes on from a saved state takes every counter back with it, also one that was 0 when it was saved."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app


def line(step, generated, trained, dropped, queued):
    """One reading of all four numbers."""
    return f"step {step} | generated {generated} | trained {trained} | dropped_stale {dropped} | queued {queued}"


BEFORE = [line(n, 272 * n, 256 * n, 0, 16 * n) for n in range(1, 6)] + [line(6, 1632, 1536, 12, 84), line(7, 1904, 1792, 24, 88)]
AFTER = [line(n, 272 * n, 256 * n, 4 * (n - 5), 12 * n + 20) for n in range(6, 12)]


@pytest.mark.parametrize(("lost", "broken"), [(0, set()), (40, {"GYR507"})])
def test_a_drop_before_the_rollback_is_taken_back(tmp_path, lost, broken):
    """Twenty-four samples dropped after the saved state are dropped no more once the run is back there; forty that vanish later still break it."""
    log = tmp_path / "run.log"
    after = [*AFTER[:-1], line(11, 272 * 11, 256 * 11, 24, 12 * 11 + 20 - lost)]
    log.write_text("\n".join([*BEFORE, line(5, 1360, 1280, 0, 80), *after]) + "\n")
    done = CliRunner().invoke(build_app(), ["ledger", str(log), "--output-format", "json"])
    found = {v["code"] for v in json.loads(done.stdout)["verdicts"] if v["state"] == "broken" and v["severity"] == "error"}
    assert found == broken
