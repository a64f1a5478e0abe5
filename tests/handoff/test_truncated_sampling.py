"""Top-k and top-p leave one token alone at some positions: its log-prob of 0 is measured there, and a default elsewhere."""

from __future__ import annotations

import json
import random

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app


def _codes(path) -> set[str]:
    done = json.loads(CliRunner().invoke(build_app(), ["handoff", "check", str(path), "--output-format", "json"]).stdout)
    return {f["code"] for f in done["findings"] if f["severity"] != "note"}


@pytest.mark.parametrize(
    ("cut", "trainer", "told"),
    [
        ({"top_p": 0.8}, None, False),
        ({"top_k": 20}, None, False),
        ({}, -0.1, False),
        ({}, -2.5, True),
        ({"top_p": 1.0}, None, True),
        ({}, None, True),
    ],
)
def test_zeros_a_row(tmp_path, cut, trainer, told):
    """Every third of 60 one-token rows has log-prob 0: explained by truncation or by a trainer that is as certain, else a default."""
    chance, path = random.Random(4), tmp_path / "rows.jsonl"
    with path.open("w") as file:
        for number in range(60):
            lp = 0.0 if number % 3 == 0 else -chance.uniform(0.2, 3)
            row = {"seq": number // 10, "pos": number % 10, "token": chance.randrange(9000), "version": 2, "logprob": round(lp, 5), **cut}
            if trainer is not None:
                row["trainer_logprob"] = trainer if lp == 0 else round(lp + chance.uniform(-1e-3, 1e-3), 5)
            file.write(json.dumps(row) + "\n")
    assert ("GYR304" in _codes(path)) == told


@pytest.mark.parametrize(("share", "length", "told"), [(0.6, 2, False), (0.0, 8, True)])
def test_zeros_throughout_an_answer(tmp_path, share, length, told):
    """Answers of 2 tokens of which most are certain are 0 throughout by chance; of 8 tokens, where no other answer has a 0, they are not."""
    chance, path = random.Random(5), tmp_path / "answers.jsonl"
    with path.open("w") as file:
        for number in range(40):
            blank = number % 8 == 0
            lps = [0.0 if blank or chance.random() < share else round(-chance.uniform(0.2, 3), 4) for _ in range(length)]
            row = {"id": number, "version": 2, "response_ids": [chance.randrange(9000) for _ in lps], "logprobs": lps, "top_p": 0.9}
            file.write(json.dumps(row | {"reward": chance.random()}) + "\n")
    assert ("GYR304" in _codes(path)) == told
