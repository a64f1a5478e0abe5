"""Faults of token records: lengths, masks, log-probs, versions, groups, defaults, ratios; each beside a legitimate neighbour."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable
from typing import Any

import pytest

from gyrecheck.model.finding import Severity, State

Rows = list[dict[str, Any]]
CHANCE = random.Random(7)


def answers(count: int, low: int = 5, high: int = 9) -> Rows:
    rows: Rows = []
    for at in range(count):
        size = CHANCE.randint(low, high)
        rows.append({
            "sample_id": f"s{at}", "policy_version": 4, "tokens": [CHANCE.randint(3, 500) for _ in range(size)], "mask": [1] * size,
            "logprobs": [round(-CHANCE.expovariate(1) - 0.01, 4) for _ in range(size)], "reward": float(at % 3 == 0),
        })  # fmt: skip
    return rows


def changed(rows: Rows, change: Callable[[int, dict[str, Any]], Any], at: tuple[int, ...] | None = None) -> Rows:
    out = copy.deepcopy(rows)
    for number, row in enumerate(out, 1):
        if at is None or number in at:
            change(number, row)
    return out


def prompted(count: int = 6, prompt: int = 4) -> Rows:
    rows = answers(count)
    for row in rows:
        row["prompt_len"] = prompt
        row["tokens"] = [7] * prompt + row["tokens"]
        row["mask"] = [0] * prompt + row["mask"]
        row["logprobs"] = [0.0] * prompt + row["logprobs"]
    return rows


def padded(count: int = 6, size: int = 9) -> Rows:
    rows = answers(count, 5, 7)
    for row in rows:
        rest = size - len(row["tokens"])
        row["pad_token_id"] = 0
        row["tokens"] += [0] * rest
        row["mask"] += [0] * rest
        row["logprobs"] += [0.0] * rest
    return rows


def groups(rewards: list[list[float]], size: int = 4) -> Rows:
    rows: Rows = []
    for at, part in enumerate(rewards):
        mean = sum(part) / len(part)
        for member, reward in enumerate(part):
            rows.append(
                {
                    "sample_id": f"p{at}-{member}",
                    "group_id": f"p{at}",
                    "group_size": size,
                    "policy_version": 2,
                    "reward": reward,
                    "advantage": round(reward - mean, 4),
                }
            )
    return rows


def by_blocks(rows: Rows, size: int = 4) -> Rows:
    out = copy.deepcopy(rows)
    for at in range(0, len(out), size):
        block = out[at : at + size]
        mean = sum(row["reward"] for row in block) / len(block)
        for row in block:
            row["advantage"] = round(row["reward"] - mean, 4)
    return out


def over_batch(rows: Rows) -> Rows:
    out = copy.deepcopy(rows)
    mean = sum(row["reward"] for row in out) / len(out)
    spread = math.sqrt(sum((row["reward"] - mean) ** 2 for row in out) / len(out))
    for row in out:
        row["advantage"] = round((row["reward"] - mean) / spread, 4)
    return out


def replayed(rows: Rows, replay: Callable[[int, int, float, dict[str, Any]], float], age: int = 0) -> Rows:
    def change(number: int, row: dict[str, Any]) -> None:
        row["trainer_version"] = row["policy_version"] + age
        row["replay_logprobs"] = [round(replay(number, at, x, row), 4) for at, x in enumerate(row["logprobs"])]

    return changed(rows, change)


TOKENS = answers(8)
PROMPTED, PADDED = prompted(), padded()
G = groups([[0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 1.0, 1.0]])
HOLED = [row for at, row in enumerate(G) if at != 5]
LONG = answers(12, 8, 12)
SAME = replayed(LONG, lambda _n, _at, x, _row: x)
WITHOUT_LENGTH = [{key: value for key, value in row.items() if key != "prompt_len"} for row in PROMPTED]
FAULTS: dict[str, tuple[Rows, Rows, str, str]] = {
    "empty log-probs": (changed(TOKENS, lambda _, row: row.update(logprobs=[]), (3,)), TOKENS, "GYR324", "3"),
    "one log-prob short": (changed(TOKENS, lambda _, row: row["logprobs"].pop(), (3, 6)), TOKENS, "GYR324", "3, 6"),
    "log-probs null": (changed(TOKENS, lambda _, row: row.update(logprobs=None), (3,)), TOKENS, "GYR307", "3"),
    "log-probs absent": (changed(TOKENS, lambda _, row: row.pop("logprobs"), (3,)), changed(TOKENS, lambda _, row: (row.pop("logprobs"), row.update(logprobs_available=False))), "GYR303", "3"),
    "log-probs all zero in some": (changed(TOKENS, lambda _, row: row.update(logprobs=[0.0] * len(row["tokens"])), (3, 6)), TOKENS, "GYR304", "3, 6"),
    "log-probs all zero": (changed(TOKENS, lambda _, row: row.update(logprobs=[0.0] * len(row["tokens"]))), changed(TOKENS, lambda _, row: row.update(logprobs=[0.0] * len(row["tokens"]), temperature=0)), "GYR304", "1-8"),
    "probabilities": (changed(TOKENS, lambda _, row: row.update(logprobs=[round(math.exp(x), 4) for x in row["logprobs"]])), TOKENS, "GYR335", "1-8"),
    "fill value": (changed(TOKENS, lambda _, row: row["logprobs"].__setitem__(0, -1e9), (2,)), TOKENS, "GYR336", "2"),
    "mask counts the prompt": (changed(PROMPTED, lambda _, row: row.update(mask=[1] * len(row["mask"]))), PROMPTED, "GYR334", "1-6"),
    "mask counts zeros at the start": (changed(WITHOUT_LENGTH, lambda _, row: row.update(mask=[1] * len(row["mask"]))), WITHOUT_LENGTH, "GYR334", "1-6"),
    "mask inverted": (changed(WITHOUT_LENGTH, lambda _, row: row.update(mask=[1 - x for x in row["mask"]])), WITHOUT_LENGTH, "GYR332", "1-6"),
    "mask counts padding": (changed(PADDED, lambda _, row: row.update(mask=[1] * 9)), PADDED, "GYR334", "1-6"),
    "mask empty": (changed(TOKENS, lambda _, row: row.update(mask=[0] * len(row["mask"]))), changed(TOKENS, lambda _, row: row.update(stop="length", mask=[0] * len(row["mask"])), (3,)), "GYR333", "1-8"),
    "mask of two": (changed(TOKENS, lambda _, row: row["mask"].__setitem__(0, 2), (4,)), TOKENS, "GYR322", "4"),
    "version None": (changed(TOKENS, lambda _, row: row.update(policy_version=None), (3,)), TOKENS, "GYR401", "3"),
    "version default": (changed(TOKENS, lambda n, row: row.update(policy_version=0 if n == 3 else 30 + n)), changed(TOKENS, lambda n, row: row.update(policy_version=30 + n)), "GYR401", "3"),
    "version ahead": (changed(TOKENS, lambda n, row: row.update(trainer_version=3 if n < 3 else 5)), changed(TOKENS, lambda _, row: row.update(trainer_version=5)), "GYR408", "1-2"),
    "over the limit": (changed(TOKENS, lambda n, row: row.update(policy_version=10 - n, trainer_version=10, max_lag=6)), changed(TOKENS, lambda n, row: row.update(policy_version=10 - n, trainer_version=10, max_lag=6, dropped=n > 6)), "GYR404", "7-8"),
    "never loaded": (changed(TOKENS, lambda n, row: row.update(trainer_version=4 + n)), changed(TOKENS, lambda n, row: row.update(policy_version=n, trainer_version=n + 1)), "GYR406", ""),
    "counter started again": (changed(TOKENS, lambda n, row: row.update(policy_version=80 + n if n < 5 else n)), changed(TOKENS, lambda n, row: row.update(policy_version=80 + n - 2 * (n % 2))), "GYR415", "5"),
    "trajectory of two versions": ([{"trajectory_id": f"t{n // 4}", "step": n % 4, "policy_version": 3 + (n == 6), "reward": 0.1, "action": 1} for n in range(8)], [{"trajectory_id": f"t{n // 4}", "step": n % 4, "policy_version": 3 + n // 4, "reward": 0.1, "action": 1} for n in range(8)], "GYR341", "7"),
    "advantages by blocks": (by_blocks(HOLED), HOLED, "GYR339", "8-15"),
    "advantages one row off": (changed(G, lambda n, row: row.update(advantage=G[n - 2]["advantage"])), G, "GYR339", "1-2, 4-5, 7-9, 12-15"),
    "advantages over the batch": (over_batch(G), G, "GYR339", "1-16"),
    "no spread": (groups([[1.0] * 4, [0.0] * 4, [1.0] * 4]), groups([[1.0] * 4, [0.0, 1.0, 0.0, 0.0], [1.0] * 4]), "GYR340", "1-12"),
    "groups of one": (groups([[1.0], [0.0], [1.0]]), G, "GYR338", "1-3"),
    "sample twice": ([*TOKENS, TOKENS[2]], TOKENS, "GYR337", "9"),
    "failure as sample": (changed(TOKENS, lambda n, row: row.update(finish_reason="error" if n == 4 else "stop", reward=0.0)), changed(TOKENS, lambda _, row: row.update(finish_reason="stop")), "GYR343", "4"),
    "failed but masked": (changed(TOKENS, lambda n, row: row.update(finish_reason="aborted" if n == 4 else "stop")), changed(TOKENS, lambda n, row: row.update(finish_reason="aborted" if n == 4 else "stop", mask=[int(n != 4)] * len(row["mask"]))), "GYR343", "4"),
    "first token off": (replayed(LONG, lambda _n, at, x, _row: x - 1.2 if at == 0 else x), SAME, "GYR402", "1-12"),
    "two records off": (replayed(LONG, lambda n, at, x, _row: x + (0.8 if at % 2 else -0.9) if n in {4, 8} else x), SAME, "GYR402", "4, 8"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_at_its_records_and_its_neighbour_is_silent(judge: Any, name: str) -> None:
    """Each fault gives its code at its records; the legitimate neighbour gives neither that code nor an error."""
    bad, good, code, records = FAULTS[name]
    found = [f for f in judge(bad).findings if f.code == code and f.severity is not Severity.NOTE]
    assert [f.records for f in found][:1] == [records], [(f.code, f.records, f.message) for f in judge(bad).findings]
    clean = [f for f in judge(good).findings if f.severity is Severity.ERROR or (f.code == code and f.severity is not Severity.NOTE)]
    assert clean == []


def test_a_batch_within_the_limit_is_a_note(judge: Any) -> None:
    """Several versions in one batch, none older than allowed, is what an asynchronous run looks like."""
    rows = changed(TOKENS, lambda n, row: row.update(policy_version=10 - n % 3, trainer_version=10, max_lag=4))
    (found,) = [f for f in judge(rows).findings if f.code == "GYR341"]
    assert found.severity is Severity.NOTE


def test_versions_a_token_of_a_partial_rollout_are_a_note(judge: Any) -> None:
    """A list of versions that rises within a record says itself where the weights changed; -1 on the prompt does not count."""
    rows = changed(TOKENS, lambda _, row: row.update(policy_version=[-1] + [3] * (len(row["tokens"]) - 3) + [4, 4]))
    found = [f for f in judge(rows).findings if f.code == "GYR341"]
    assert [f.severity for f in found] == [Severity.NOTE]


def test_the_ratio_of_equal_log_probs_holds(judge: Any) -> None:
    """Equal log-probs on both sides give a verdict that holds and a table of the figures."""
    judged = judge(SAME)
    assert judged.verdict is not None
    assert judged.verdict.state is State.HOLDS
    assert judged.table is not None


def test_std_normalised_groups_are_recognised(judge: Any) -> None:
    """Advantages divided by the group's standard deviation plus 1e-4 fit their own groups; a wrong one is found."""
    rows = copy.deepcopy(G)
    for at in range(0, 16, 4):
        part = [row["reward"] for row in rows[at : at + 4]]
        mean = sum(part) / 4
        spread = math.sqrt(sum((x - mean) ** 2 for x in part) / 3)
        for row in rows[at : at + 4]:
            row["advantage"] = round((row["reward"] - mean) / (spread + 1e-4), 4)
    assert [f.code for f in judge(rows).findings if f.code == "GYR339"] == []
    rows[5]["advantage"] = 1.4
    (found,) = [f for f in judge(rows).findings if f.code == "GYR339"]
    assert found.records == "5-8"
    assert found.severity is Severity.WARNING


def test_confident_tokens_are_no_defaults(judge: Any) -> None:
    """Log-probs that round to 0 here and there are ordinary."""
    rows = changed(TOKENS, lambda _, row: row.update(logprobs=[0.0 if at % 3 == 1 else x for at, x in enumerate(row["logprobs"])]))
    assert [f.code for f in judge(rows).findings if f.severity is not Severity.NOTE] == []


def test_a_recorded_lag_is_judged_without_versions(judge: Any) -> None:
    """A negative lag is impossible and one over the limit was not dropped, though no version stands in the records."""
    rows = [{"sample_id": f"s{n}", "reward": 0.5, "staleness": lag, "max_staleness": 2} for n, lag in enumerate((0, -3, 1, 4))]
    found = {f.code: f.records for f in judge(rows).findings if f.severity is Severity.ERROR}
    assert found == {"GYR408": "2", "GYR404": "4"}


def test_one_gap_in_all_records_is_a_warning_unless_another_field_shares_it(judge: Any) -> None:
    """Log-probs that always have four values more than there are tokens are named; with a mask as long they are a convention."""
    rows = changed(TOKENS, lambda _, row: row.update(logprobs=[-0.5] * 4 + row["logprobs"]))
    found = [f for f in judge(rows).findings if f.code == "GYR324"]
    assert [(f.severity, f.records) for f in found] == [(Severity.WARNING, "1-8")]
    both = changed(rows, lambda _, row: row.update(mask=[0] * 4 + row["mask"]))
    assert [f.code for f in judge(both).findings if f.code == "GYR324"] == []
