"""What stands at the last step of an episode: its successor, its flags, and how many episodes end at the longest length."""

from __future__ import annotations

import json
import random

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app


def _codes(tmp_path, rows) -> set[str]:
    path = tmp_path / "steps.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = json.loads(CliRunner().invoke(build_app(), ["handoff", "check", str(path), "--output-format", "json"]).stdout)
    return {f["code"] for f in done["findings"] if f["severity"] != "note"}


def _episodes(lengths, ends="terminated") -> list[list[dict[str, object]]]:
    chance, out = random.Random(2), []
    for number, length in enumerate(lengths):
        now, rows = [round(chance.uniform(-1, 1), 4) for _ in range(2)], []
        for t in range(length):
            after = [round(x + chance.uniform(-0.2, 0.2), 4) for x in now]
            last = t == length - 1
            row = {
                "episode_id": number,
                "t": t,
                "obs": now,
                "action": chance.randrange(3),
                "logprob": -0.4,
                "reward": round(chance.random(), 3),
            }
            cut = last and (ends == "truncated" or (ends == "both" and number % 2 == 0))
            rows.append(row | {"next_obs": after, "terminated": last and not cut, "truncated": cut, "policy_version": 3})
            now = after
        out.append(rows)
    return out


LENGTHS = (6, 9, 7, 12, 5, 8, 11, 6)


@pytest.mark.parametrize(("ends", "told"), [("truncated", True), ("both", True), ("terminated", False)])
def test_a_successor_that_repeats_its_own_observation(tmp_path, ends, told):
    """At cut-offs the value of what follows counts, so the observation again is told; behind true ends nothing follows."""
    rows = [row for episode in _episodes(LENGTHS, ends) for row in episode]
    assert "GYR345" not in _codes(tmp_path, rows)
    rows = [row | ({"next_obs": row["obs"]} if row["terminated"] or row["truncated"] else {}) for row in rows]
    assert ("GYR345" in _codes(tmp_path, rows)) == told


@pytest.mark.parametrize("packed", [True, False])
def test_a_successor_that_is_rolled_round(tmp_path, packed):
    """The last step leads to the first observation of its own episode."""
    episodes = _episodes(LENGTHS)
    for rolled in (False, True):
        rows = [[*own[:-1], own[-1] | ({"next_obs": own[0]["obs"]} if rolled else {})] for own in episodes]
        keys = {"observations": "obs", "next_observations": "next_obs", "actions": "action", "rewards": "reward", "log_probs": "logprob"}
        lists = [
            {key: [row[of] for row in own] for key, of in keys.items()}
            | {"terminals": [row["terminated"] for row in own], "traj_id": number}
            for number, own in enumerate(rows)
        ]
        assert ("GYR326" in _codes(tmp_path, lists if packed else [row for own in rows for row in own])) == rolled


@pytest.mark.parametrize(("lengths", "told"), [((5, 8, 6, 8, 7, 6, 8, 5, 7, 8), False), ((5, 12, 6, 12, 7, 12, 9, 12), True)])
def test_a_pile_at_the_longest_length(tmp_path, lengths, told):
    """Lengths that come again all alike are no time limit; four of eight episodes at the longest one, where no other comes twice, are."""
    assert ("GYR329" in _codes(tmp_path, [row for own in _episodes(lengths) for row in own])) == told


def test_parts_of_a_rollout_need_no_end(tmp_path):
    """Fourteen segments of 16 steps, each with the value behind it: none ends, and none has to."""
    chance, rows = random.Random(5), []
    for number in range(14):
        row = {"segment": number, "rewards": [chance.random() for _ in range(16)], "values": [chance.random() for _ in range(16)]}
        rows.append(row | {"actions": [1, 2] * 8, "dones": [False] * 16, "last_value": chance.random(), "policy_version": 3})
    assert "GYR328" not in _codes(tmp_path, rows)


@pytest.mark.parametrize(("newest", "code"), [("step-15", "GYR404"), ("step-22", "GYR408"), ("step-19", "")])
def test_versions_written_as_a_word_and_a_number(tmp_path, newest, code):
    """A key that speaks of weights, with texts such as `step-18`, names versions: one is held against the trainer's."""
    rows = [
        {"rollout_id": n, "weights": newest if n == 7 else f"step-{19 + n % 2}", "learner_version": "step-20", "max_staleness": 2, "reward": n / 9,
         "response_ids": [n, 5, 7, n + 1], "logprobs": [-0.5, -0.25, -1.0, -n / 50]} for n in range(16)
    ]  # fmt: skip
    assert _codes(tmp_path, rows) - {"GYR341"} == ({code} if code else set())
