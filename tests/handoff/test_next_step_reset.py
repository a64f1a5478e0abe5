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


def changed(change, idle=0.0):
    """The rows with more or fewer fields; `change` is given a row and whether it only resets."""
    out = []
    for row in rows(idle=idle):
        resets = not row.pop("learn")
        out.append(change(row, resets))
    return out


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda row, _: row | {"learn": True}, {"GYR328"}),
        (lambda row, _: row | {"loss_mask": 1.0}, {"GYR328"}),
        (lambda row, _: row | {"advantage": round(row["rew"] - 0.4, 3)}, {"GYR328"}),
        (lambda row, resets: row | {"learn": True, "autoreset": resets}, set()),
        (lambda row, resets: row | {"loss_mask": 0.0 if resets else 1.0}, set()),
        (lambda row, _: row, set()),
    ],
)
def test_a_tick_that_only_resets_is_no_step_to_learn_from(tmp_path, change, found):
    """Told where a mask counts it or an advantage stands in it; not where a flag tells, or nothing says that it is learnt from."""
    path = tmp_path / "steps.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in changed(change)))
    assert codes(path) == found


@pytest.mark.parametrize("slots", [1, 3])
@pytest.mark.parametrize("gone", [False, True])
def test_sparse_rewards_leave_the_leap(tmp_path, slots, gone):
    """Only an end is rewarded, so a 0 says nothing: the tick that resets leaps back to the start, the reset observation as successor does not."""
    chance, path = random.Random(5), tmp_path / "steps.jsonl"
    now, ended = [[0.0, 0.0] for _ in range(slots)], [False] * slots
    with path.open("w") as file:
        for tick in range(200 // slots):
            for slot in range(slots):
                start = [chance.uniform(-0.05, 0.05), chance.uniform(-0.05, 0.05)]
                moved = [round(now[slot][0] + 0.1 + chance.random() * 0.05, 4), round(now[slot][1] + chance.uniform(-0.1, 0.1), 4)]
                end = not ended[slot] and moved[0] > 1.5
                after = start if ended[slot] or (gone and end) else moved
                row = {"env_id": slot, "obs": now[slot], "action": tick % 2, "reward": float(end), "next_obs": after, "terminated": end}
                file.write(json.dumps(row | {"truncated": False, "logprob": -0.7, "policy_version": 3}) + "\n")
                now[slot], ended[slot] = after, end and not gone
    assert ("GYR325" in codes(path)) == gone


@pytest.mark.parametrize("key", ["train", "valid", "use"])
def test_a_flag_that_is_never_on_is_no_mask(tmp_path, key):
    """A word that may speak of the loss says something else where it is false in every row."""
    path = tmp_path / "steps.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in changed(lambda row, _: row | {key: False})))
    assert codes(path) == set()
