"""Values at the wrong places of a token record: advantages off their mask, end tokens with a fill value, columns shifted under noise."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from gyrecheck.model.finding import Severity

Rows = list[dict[str, Any]]


def _grave(judge: Any, rows: Rows) -> dict[str, tuple[str, str]]:
    return {f.code: (f.records, f.severity.value) for f in judge(rows).findings if f.severity is not Severity.NOTE}


def _turns(place: str, logprobs: bool = True) -> Rows:
    chance = random.Random(3)
    rows: Rows = []
    for name in "abcdef":
        masks = []
        for _ in range(3):
            begin = chance.randrange(0, 6)
            masks.append([int(begin <= at < begin + 4) for at in range(14)])
        value = chance.choice([1.1, -0.7])
        for turn, mask in enumerate(masks):
            held = {"own": mask, "last": masks[-1], "next": masks[(turn + 1) % 3], "all": [1] * 14, "beside": [*mask[1:], 0]}[place]
            row = {
                "traj_uid": name,
                "turn": turn,
                "weight_version": 4,
                "response_token_ids": [chance.randrange(9, 900) for _ in mask],
                "action_mask": mask,
                "advantages": [value * x for x in held],
            }
            rows.append(row | ({"logprobs": [round(-chance.random() - 0.01, 3) * x for x in mask]} if logprobs else {}))
    return rows


def _differing(place: str) -> str:
    numbers = [
        number for number, row in enumerate(_turns(place), 1) if [x != 0 for x in row["advantages"]] != [x == 1 for x in row["action_mask"]]
    ]
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


@pytest.mark.parametrize("place", ["last", "next"])
def test_an_advantage_on_another_turns_positions_is_found(judge: Any, place: str) -> None:
    """The advantage stands on another turn's mask: found at every record where the two differ."""
    assert _grave(judge, _turns(place)) == {"GYR331": (_differing(place), "error")}


def test_an_advantage_on_its_own_mask_or_everywhere_is_in_order(judge: Any) -> None:
    """On the own mask, on all positions, and one position beside the mask throughout where nothing says that the mask is right."""
    assert _grave(judge, _turns("own")) == {}
    assert _grave(judge, _turns("all")) == {}
    assert "GYR331" not in _grave(judge, _turns("beside", logprobs=False))
    assert _grave(judge, _turns("beside"))["GYR331"] == ("1-18", "warning")


def _answers(kind: str) -> Rows:
    chance = random.Random(6)
    rows: Rows = []
    for number in range(24):
        size = chance.randrange(5, 12)
        tokens = [chance.randrange(10, 3000) for _ in range(size)]
        values = [round(-chance.expovariate(1.5) - 0.001, 4) for _ in range(size)]
        stopped = number % 3 == 0
        reason = "stop"
        counted = 1
        if kind == "put there":
            tokens, values = [*tokens, 2], [*values, 0.0 if stopped else round(-chance.random() * 0.5 - 0.01, 4)]
        elif kind == "masked":
            tokens, values, counted = [*tokens, 2], [*values, 0.0 if stopped else -0.07], int(not stopped)
        elif kind == "confident":
            tokens, values = [*tokens, 2], [*values, 0.0 if stopped else round(-chance.random() * 0.002 - 1e-4, 4)]
        elif stopped:
            tokens, values = [*tokens, 2], [*values, 0.0]
            reason = "stop_sequence" if kind == "told" else "stop"
        else:
            reason = "length"
        mask = [1] * (len(tokens) - 1) + [counted]
        rows.append(
            {
                "id": number,
                "policy_version": 4,
                "completion_ids": tokens,
                "logprobs": values,
                "action_mask": mask,
                "finish_reason": reason,
                "reward": 0.5,
            }
        )
    return rows  # fmt: skip


def test_an_end_token_with_a_fill_value_is_found_beside_sampled_ones(judge: Any) -> None:
    """Exactly 0 at every third record's end token, never near 0 where it was sampled; or the record says that a text stopped it."""
    records = ", ".join(str(number) for number in range(1, 25, 3))
    assert _grave(judge, _answers("put there")) == {"GYR304": (records, "warning")}
    assert _grave(judge, _answers("told")) == {"GYR304": (records, "warning")}


@pytest.mark.parametrize("kind", ["masked", "confident", "certain"])
def test_an_end_token_that_is_masked_or_may_be_certain_is_left_alone(judge: Any, kind: str) -> None:
    """Mask 0 on the token that was put there; a policy that is sure of its end; ends that are always sure, without another word."""
    assert _grave(judge, _answers(kind)) == {}


@pytest.mark.parametrize("versions", [{}, {"ckpt_step": 9, "trainer_step": 9}, {"policy_version": 7, "trainer_version": 9}])
@pytest.mark.parametrize("by", [1, -1])
def test_columns_shifted_by_one_are_told_under_an_engines_noise(judge: Any, versions: dict[str, int], by: int) -> None:
    """One column starts a token earlier or later and differs by up to 0.02 beside that: no drift and no other weights do that."""
    chance = random.Random(7)
    rows: Rows = []
    for _ in range(20):
        size = chance.randrange(6, 14)
        values = [round(-chance.expovariate(0.8) - 0.001, 4) for _ in range(size)]
        noisy = [round(x + chance.uniform(-0.02, 0.02), 4) for x in values]
        rows.append(
            {
                "input_ids": [chance.randrange(900) for _ in values],
                "inference_logprobs": values,
                "trainer_logprobs": noisy,
                "reward": 0.0,
                **versions,
            }
        )
    assert "GYR402" not in _grave(judge, rows)
    for row in rows:
        noisy = row["trainer_logprobs"]
        row["trainer_logprobs"] = [*noisy[1:], -1.5] if by == 1 else [-1.5, *noisy[:-1]]
    (found,) = [f for f in judge(rows).findings if f.code == "GYR402"]
    assert "shifted by one" in found.message
    assert found.records == "1-20"  # fmt: skip


def test_a_schema_by_hand_says_only_what_it_asks_for(judge: Any) -> None:
    """A project's contract needs a name and its fields; a summary is nobody's duty."""
    rows = [{"obs": [0.1, 0.2, 0.3], "action": 1, "reward": 0.5, "done": False} for _ in range(6)]
    found = judge(rows, schema='name = "mine"\n[roles.obs]\nshape = [4]\n').findings
    assert ("GYR307", "1-6") in {(f.code, f.records) for f in found}


def _scores(kind: str) -> Rows:
    chance = random.Random(8)
    rows: Rows = []
    for at in range(3000):
        logprob, value = round(-chance.random(), 3), round(chance.gauss(0, 1), 2)
        if kind == "sure":
            logprob = round(-math.log1p(math.exp(-chance.gauss(5, 3))), 4)
        elif kind == "filled":
            logprob = 0.0 if at % 200 == 7 else round(-chance.expovariate(1) - 0.01, 4)
            value = 0.0 if at % 200 == 9 else round(chance.gauss(1, 1), 6)
        rows.append(
            {
                "obs": [chance.random(), 0.5],
                "action": at % 3,
                "log_prob": logprob,
                "value": value,
                "reward": chance.random(),
                "terminated": at % 50 == 49,
                "truncated": False,
                "policy_version": 2,
            }
        )
    return rows  # fmt: skip


@pytest.mark.parametrize("kind", ["rounded", "sure"])
def test_values_that_rounding_repeats_are_no_defaults(judge: Any, kind: str) -> None:
    """In 3000 records of two or three decimals 0, 1 and -1 come again as their neighbours do, and a sure policy's log-prob rounds to 0."""
    assert _grave(judge, _scores(kind)) == {}


def test_a_default_stands_out_among_its_neighbours(judge: Any) -> None:
    """Every two-hundredth log-prob and value is exactly 0, and no neighbour comes as often."""
    found = [f for f in judge(_scores("filled")).findings if f.code == "GYR304"]
    assert {(f.field, f.records.partition(",")[0]) for f in found} == {("log_prob", "8"), ("value", "10")}


@pytest.mark.parametrize("digits", [2, 4])
def test_two_decimals_round_a_likely_token_to_zero(judge: Any, digits: int) -> None:
    """Tokens of a policy that is often sure: kept with two or with four decimals, nothing says that one was not sampled."""
    chance = random.Random(9)
    rows: Rows = []
    for at in range(400):
        values = [round(-chance.expovariate(2) * chance.random(), digits) + 0.0 for _ in range(30)]
        tokens = [chance.randrange(3, 900) for _ in values]
        rows.append(
            {"uid": at, "response_ids": tokens, "response_mask": [1] * 30, "rollout_log_probs": values, "reward": 0.5, "policy_version": 1}
        )
    assert _grave(judge, rows) == {}  # fmt: skip
