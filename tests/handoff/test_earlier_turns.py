"""Conversations written turn by turn: an answer is trained in the record of its own turn, not again in all that follow."""

from __future__ import annotations

import json
import random

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app


def _told(path) -> list[str]:
    done = json.loads(CliRunner().invoke(build_app(), ["handoff", "check", str(path), "--output-format", "json"]).stdout)
    return [f["records"] for f in done["findings"] if f["code"] == "GYR337"]


@pytest.mark.parametrize("keys", [("session", "tokens", "loss_mask"), ("conversation_id", "input_ids", "assistant_masks")])
@pytest.mark.parametrize(("how", "records"), [("again", "2-4, 6-8, 10-12"), ("own", ""), ("last alone", ""), ("apart", "")])
def test_turns_in_front_are_not_counted_again(tmp_path, keys, how, records):
    """Three conversations of four turns: with every answer counted each time, all records but the first of each are told."""
    chance, path = random.Random(11), tmp_path / "turns.jsonl"
    name, ids, mask = keys
    with path.open("w") as file:
        for session in range(3):
            tokens, on = [], []
            for turn in range(4):
                said, answer = ([chance.randrange(5000) for _ in range(chance.randrange(4, 9))] for _ in range(2))
                before = [1 if how == "again" else 0] * len(on) if how != "again" else on
                tokens, on = tokens + said + answer, before + [0] * len(said) + [1] * len(answer)
                kept = [0] * len(on) if how == "last alone" and turn < 3 else on
                whole = (said + answer, [0] * len(said) + [1] * len(answer)) if how == "apart" else (tokens, kept)
                row = {name: f"s{session}", "turn": turn, "policy_version": 6, ids: whole[0], mask: whole[1], "reward": float(turn == 3)}
                file.write(json.dumps(row) + "\n")
    assert _told(path) == ([records] if records else [])


def test_answers_to_one_prompt_share_no_more_than_the_prompt(tmp_path):
    """Eight answers to each of four prompts: the prompt in front is no record of its own."""
    chance, path = random.Random(12), tmp_path / "answers.jsonl"
    with path.open("w") as file:
        for prompt in range(4):
            question = [chance.randrange(5000) for _ in range(12)]
            for _ in range(8):
                answer = [chance.randrange(5000) for _ in range(chance.randrange(3, 20))]
                row = {
                    "prompt_id": prompt,
                    "tokens": question + answer,
                    "loss_mask": [0] * 12 + [1] * len(answer),
                    "reward": chance.random(),
                }
                file.write(json.dumps(row) + "\n")
    assert _told(path) == []
