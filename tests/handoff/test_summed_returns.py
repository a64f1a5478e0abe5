"""Stored returns against the rewards that follow: along the episode, over masked spans, and not in the order of the file."""

from __future__ import annotations

import json
import random

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app


def _told(path) -> bool:
    done = json.loads(CliRunner().invoke(build_app(), ["handoff", "check", str(path), "--output-format", "json"]).stdout)
    return any(f["code"] == "GYR344" for f in done["findings"])


def _stepped(lanes: int, n: int, gamma: float, wrong: str) -> list[dict[str, object]]:
    """120 steps of `lanes` environments side by side, with sums of n rewards: of the episode, or of the rows as they stand in the file."""
    chance, rows = random.Random(6), []
    episode, step = list(range(lanes)), [0] * lanes
    for tick in range(120):
        lane = tick % lanes
        end = step[lane] >= 4 and chance.random() < 0.2
        rows.append(
            {"env_id": lane, "episode_id": episode[lane], "t": step[lane], "reward": round(chance.uniform(0, 2), 3), "terminated": end}
        )
        step[lane], episode[lane] = (0, episode[lane] + lanes) if end else (step[lane] + 1, episode[lane])
    for at, row in enumerate(rows):
        behind = rows[at:] if wrong else [r for r in rows[at:] if r["episode_id"] == row["episode_id"]]
        total = 0.0
        for k, later in enumerate(behind[:n]):
            total += gamma**k * later["reward"]
            if later["terminated"] and wrong != "over":
                break
        row["n_step_return"] = round(total, 4)
    return [
        row | {"truncated": False, "obs": [round(chance.random(), 4)], "action": 1, "logprob": -0.7, "policy_version": 3} for row in rows
    ]


@pytest.mark.parametrize(("lanes", "n", "gamma"), [(4, 3, 0.97), (2, 5, 0.99), (3, 2, 1.0)])
@pytest.mark.parametrize("wrong", ["over", "stopped", ""])
def test_sums_of_the_next_rows_of_the_file(tmp_path, lanes, n, gamma, wrong):
    """The next rows belong to other environments: their rewards are none of the step's own, whether the sum stops at an end or not."""
    path = tmp_path / "steps.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in _stepped(lanes, n, gamma, wrong)))
    assert _told(path) == bool(wrong)


@pytest.mark.parametrize(("gamma", "said"), [(1.0, True), (1.0, False), (0.98, False)])
@pytest.mark.parametrize("how", ["cut", "carried", "packed", "discounted over all"])
def test_returns_over_masked_spans(tmp_path, gamma, said, how):
    """24 answers of two or three turns: a sum cut at the tool's text is told; carried over it, or of answers packed with their own outcome, is not."""
    chance, path = random.Random(9), tmp_path / "answers.jsonl"
    with path.open("w") as file:
        for number in range(24):
            rewards, mask = [], []
            for turn in range(chance.randrange(2, 4)):
                size = chance.randrange(3, 6)
                gap = 3 if turn else 0
                rewards += [0.0] * gap + [round(-chance.uniform(0, 0.03), 4) for _ in range(size)]
                mask += [0] * gap + [1] * size
                if how == "packed":
                    rewards[-1] = round(chance.uniform(0.3, 1), 3)
            rewards[-1] = round(chance.uniform(0.3, 1), 3)
            gains, total = [0.0] * len(rewards), 0.0
            for at in reversed(range(len(rewards))):
                if mask[at]:
                    gains[at] = total = rewards[at] + gamma * total
                elif how in {"cut", "packed"}:
                    total = 0.0
                elif how == "discounted over all":
                    total *= gamma
            row = {"traj": number, "policy_version": 4, "token_ids": [chance.randrange(900) for _ in mask], "response_mask": mask}
            row |= {"gamma": gamma} if said else {}
            file.write(json.dumps(row | {"token_rewards": rewards, "returns": [round(g, 4) for g in gains]}) + "\n")
    assert _told(path) == (how == "cut")
