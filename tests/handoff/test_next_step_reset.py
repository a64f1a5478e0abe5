"""Environments side by side that reset on the next step: the run's tick counts on, and the tick that only resets is no successor gone astray."""

from __future__ import annotations

import json
import random

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app

ENDS = ({5, 13, 19, 30, 38, 49}, {7, 11, 22, 34, 41, 53})


def rows(*, idle):
    """Two slots of 60 ticks and six ends each; after each end one tick hands out the first observation, with a reward of `idle`."""
    chance = random.Random(3)
    now = [[chance.random(), chance.random()] for _ in range(2)]
    out = []
    for tick in range(60):
        for slot in range(2):
            resets, ends = tick - 1 in ENDS[slot], tick in ENDS[slot]
            after = [chance.random(), chance.random()]
            out.append(
                {
                    "slot": slot, "tick": tick, "obs": now[slot], "act": tick % 2, "rew": idle if resets else chance.random() + 0.1, "obs_next": after,
                    "terminated": ends, "truncated": False, "learn": not resets, "policy_version": 6, "logp": -chance.random(),
                }
            )  # fmt: skip
            now[slot] = after
    return out


def codes(path):
    """The codes of errors and warnings."""
    done = CliRunner().invoke(build_app(), ["handoff", "check", str(path), "--output-format", "json"])
    return {f["code"] for f in json.loads(done.stdout)["findings"] if f["severity"] in {"error", "warning"}}


@pytest.mark.parametrize(("idle", "found"), [(0.0, set()), (0.7, {"GYR325"})])
def test_a_tick_that_only_resets_is_no_new_episode_of_its_own(tmp_path, idle, found):
    """Twelve ends, none followed by a step of the same episode; with a reward the row behind an end is a step, and begins where the last one ended."""
    path = tmp_path / "steps.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(idle=idle)))
    assert codes(path) == found
