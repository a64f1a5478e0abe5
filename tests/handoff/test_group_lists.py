"""A record that holds a whole group: the entries of its lists are the members, and are judged as rows of a group are."""

from __future__ import annotations

import json
import random
import statistics

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app


def _all(tmp_path, records, code) -> list[tuple[str, str]]:
    path = tmp_path / "groups.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    done = json.loads(CliRunner().invoke(build_app(), ["handoff", "check", str(path), "--output-format", "json"]).stdout)
    return [(f["severity"], f["message"]) for f in done["findings"] if f["code"] == code]


def _found(tmp_path, records, code) -> list[str]:
    return [message for severity, message in _all(tmp_path, records, code) if severity != "note" or code == "GYR338"]


def _groups(how: str, size_key: str = "", key: str = "prompt_uid") -> list[dict[str, object]]:
    chance = random.Random(2)
    rewards = [[round(chance.random() * 0.3 + 0.05 * (group % 10), 3) for _ in range(6)] for group in range(24)]
    records = []
    for group, own in enumerate(rewards):
        batch = [r for other in rewards[group // 12 * 12 : group // 12 * 12 + 12] for r in other]
        base = batch if how == "batch" else own
        spread = statistics.pstdev(batch) + 1e-6
        record = {"train_step": group // 12, "rewards": own, "advantages": [round((r - statistics.fmean(base)) / spread, 4) for r in own]}
        records.append(record | ({key: f"p{group}"} if key else {}) | ({size_key: 6} if size_key else {}))
    return records


@pytest.mark.parametrize("size_key", ["", "n", "num_generations"])
def test_one_baseline_for_each_batch_is_not_the_groups(tmp_path, size_key):
    """24 groups of 6 in two batches, centred on their batch: told where a group's size is declared, a note (REINFORCE++) elsewhere.

    Centred on themselves and divided by the batch's spread nothing is said.
    """
    assert [severity for severity, _ in _all(tmp_path, _groups("batch", size_key), "GYR339")] == ["warning" if size_key else "note"]
    assert _found(tmp_path, _groups("own", size_key), "GYR339") == []
    assert _found(tmp_path, _groups("own", size_key), "GYR338") == []


@pytest.mark.parametrize(("size_key", "severity"), [("", "note"), ("n_samples_per_prompt", "note"), ("group_size", "warning")])
def test_answers_of_one_prompt_alone_are_not_compared_with_one_another(tmp_path, size_key, severity):
    """A record an answer: a repeated prompt declares no group whose mean must be the baseline, a declared group does."""
    records = [
        {key: value for key, value in record.items() if key not in {"rewards", "advantages", size_key}}
        | ({size_key: 6} if size_key else {})
        | {"reward": reward, "advantage": advantage}
        for record in _groups("batch", size_key)
        for reward, advantage in zip(record["rewards"], record["advantages"], strict=True)
    ]
    assert [level for level, _ in _all(tmp_path, records, "GYR339")] == [severity]


def test_groups_without_a_name_are_known_by_their_declared_size(tmp_path):
    """No key names the prompt; each record declares the 6 answers that its lists hold."""
    assert len(_found(tmp_path, _groups("batch", "num_generations", ""), "GYR339")) == 1
    assert _found(tmp_path, _groups("own", "num_generations", ""), "GYR339") == []


def test_rewards_of_tokens_are_no_members(tmp_path):
    """Lists as long as the record's tokens are one answer's: a reward-to-go on each is no advantage of a group."""
    chance, records = random.Random(3), []
    for number in range(12):
        rewards = [round(chance.random() - 0.5, 3) for _ in range(5)]
        gains = [round(sum(rewards[at:]) - 0.1, 3) for at in range(5)]
        records.append(
            {"prompt_uid": f"p{number}", "response_ids": [chance.randrange(900) for _ in rewards], "rewards": rewards, "advantages": gains}
        )
    assert _found(tmp_path, records, "GYR339") == []


def _answers(ids: str, gains: str, declared: bool, key: str = "uid") -> list[dict[str, object]]:
    """24 answers to 6 prompts: named by row or by prompt, advantages raw, 0, or centred on the prompt's four."""
    chance, records = random.Random(7), []
    for prompt in range(6):
        rewards = [float(chance.random() < 0.5) for _ in range(3)] + [round(chance.random(), 3)]
        for number, reward in enumerate(rewards):
            name = f"p{prompt}" if ids == "prompt" else f"{prompt}-{number}"
            gain = {"raw": reward, "none": 0.0, "own": round(reward - sum(rewards) / 4, 4)}[gains]
            row = {key: name, "policy_version": 3, "prompt_ids": [prompt, 4, 9], "response_ids": [chance.randrange(99) for _ in range(5)]}
            records.append(row | {"reward": reward, "advantage": gain} | ({"rollout_n": 4} if declared else {}))
    return records


@pytest.mark.parametrize(("key", "declared"), [("uid", True), ("prompt_uid", True), ("group_id", False)])
@pytest.mark.parametrize("gains", ["raw", "none"])
def test_an_id_for_each_answer_makes_groups_of_one(tmp_path, key, declared, gains):
    """Four answers to a prompt have four names, and the advantages of groups of one."""
    assert any("groups of one" in text for text in _found(tmp_path, _answers("row", gains, declared, key), "GYR338"))


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize(("ids", "gains"), [("prompt", "own"), ("row", "own")])
def test_names_of_answers_are_no_groups(tmp_path, declared, ids, gains):
    """Advantages that are centred on the prompt's answers show that the names are those of the answers."""
    assert _found(tmp_path, _answers(ids, gains, declared), "GYR338") == []


def _nested(change=None) -> list[dict[str, object]]:
    chance, records = random.Random(4), []
    for number in range(10):
        ids = [[chance.randrange(9000) for _ in range(chance.randrange(4, 9))] for _ in range(4)]
        rewards = [round(chance.random(), 3) for _ in ids]
        record = {"prompt_id": f"p{number}", "num_generations": 4, "completion_ids": ids, "rewards": rewards, "policy_version": 6}
        record["logprobs"] = [[round(-chance.uniform(0.01, 3), 4) for _ in answer] for answer in ids]
        record["advantages"] = [round(r - sum(rewards) / 4, 4) for r in rewards]
        if change and number in {2, 5}:
            change(record)
        records.append(record)
    return records


def _again(record) -> None:
    for key in ("completion_ids", "logprobs"):
        record[key] = [record[key][0], *record[key][:3]]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (None, ""),
        (lambda r: r["logprobs"][1].pop(), "GYR324"),
        (lambda r: r["logprobs"].__setitem__(2, [0.0] * len(r["logprobs"][2])), "GYR304"),
        (lambda r: r["advantages"].append(r["advantages"].pop(0)), "GYR339"),
        (_again, "GYR337"),
    ],
)
def test_lists_of_answers_are_judged_answer_by_answer(tmp_path, change, code):
    """Ten records of four answers, each with lists of its own: what is wrong with one answer is told at its record, and nothing else is."""
    path = tmp_path / "groups.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in _nested(change)))
    done = json.loads(CliRunner().invoke(build_app(), ["handoff", "check", str(path), "--output-format", "json"]).stdout)
    found = {f["code"]: f["records"] for f in done["findings"] if f["severity"] != "note"}
    assert found == ({code: "3, 6"} if code else {})


def test_turns_are_no_group(tmp_path):
    """The same lists beside a key that speaks of turns are the parts of one answer."""
    path = tmp_path / "turns.jsonl"
    path.write_text("".join(json.dumps(record | {"num_turns": 4}) + "\n" for record in _nested(lambda r: r["advantages"].reverse())))
    done = json.loads(CliRunner().invoke(build_app(), ["handoff", "check", str(path), "--output-format", "json"]).stdout)
    assert "40 records" not in json.dumps(done["findings"])
