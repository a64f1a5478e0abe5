"""Faults of step records and trajectories: flags, successors, order, returns, defaults; each beside a legitimate neighbour."""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest

from gyrecheck.model.finding import Severity

Rows = list[dict[str, Any]]


def steps(lengths: tuple[int, ...] = (6, 9, 4, 7), cut: tuple[int, ...] = (1, 3), seed: int = 7) -> Rows:
    """Episodes of the given lengths; those in `cut` are truncated, the others terminated. Every observation is new."""
    chance = random.Random(seed)
    rows: Rows = []
    for episode, length in enumerate(lengths):
        obs = [round(chance.gauss(0, 1), 4) for _ in range(3)]
        for t in range(length):
            after = [round(chance.gauss(0, 1), 4) for _ in range(3)]
            last = t == length - 1
            rows.append({
                "episode_id": episode, "t": t, "obs": obs, "action": chance.randint(0, 1), "reward": round(chance.random(), 3), "next_obs": after,
                "terminated": last and episode not in cut, "truncated": last and episode in cut, "logprob": round(-chance.random(), 4),
                "value": round(chance.random(), 4), "policy_version": 0,
            })  # fmt: skip
            obs = after
    return rows


def changed(rows: Rows, change: Callable[[int, dict[str, Any]], Any], at: tuple[int, ...] | None = None) -> Rows:
    """A copy with `change(record number, row)` done to the records `at` (1-based; all when None)."""
    out = copy.deepcopy(rows)
    for number, row in enumerate(out, 1):
        if at is None or number in at:
            change(number, row)
    return out


def reset_read(rows: Rows) -> Rows:
    out = copy.deepcopy(rows)
    for row, following in itertools.pairwise(out):
        if row["terminated"] or row["truncated"]:
            row["next_obs"] = following["obs"]
    return out


def one_row_late(rows: Rows) -> Rows:
    out = copy.deepcopy(rows)
    flags = [(row["terminated"], row["truncated"]) for row in rows]
    for row, (terminated, truncated) in zip(out, [(False, False), *flags[:-1]], strict=True):
        row["terminated"], row["truncated"] = terminated, truncated
    return out


def live_buffer(rows: Rows) -> Rows:
    out = copy.deepcopy(rows)
    last = {row["episode_id"]: row["next_obs"] for row in rows}
    for row in out:
        row["obs"] = last[row["episode_id"]]
        del row["next_obs"]
    return out


def with_returns(rows: Rows, gamma: float, *, over_ends: bool = False) -> Rows:
    out = copy.deepcopy(rows)
    gain = 0.0
    for row in reversed(out):
        if row["terminated"] and not over_ends:
            gain = 0.0
        gain = row["reward"] + gamma * gain
        row["return"] = round(gain, 4)
    return out


def trajectories(rows: Rows) -> Rows:
    by: dict[int, Rows] = {}
    for row in rows:
        by.setdefault(row["episode_id"], []).append(row)
    keys = ("obs", "action", "reward", "next_obs", "terminated", "truncated", "logprob")
    return [{"episode_id": name, "policy_version": 0} | {key: [row[key] for row in part] for key in keys} for name, part in by.items()]


GOOD = steps()
ENDED = steps(cut=())
LIMIT = steps((12, 12, 7, 12, 5), cut=())
TOLD = changed(LIMIT, lambda _, row: row.update(terminated=row["terminated"] and row["t"] < 11, truncated=row["t"] == 11))
RETURNS = with_returns(ENDED, 0.95)
FAULTS: dict[str, tuple[Rows, Rows, str, str]] = {
    "reset observation as successor": (reset_read(GOOD), GOOD, "GYR325", "6, 15, 19"),
    "flag one row late": (one_row_late(GOOD), GOOD, "GYR328", "7, 16, 20"),
    "time limit as termination": (LIMIT, TOLD, "GYR329", "12, 24, 43"),
    "both flags at every end": (
        changed(GOOD, lambda _, row: row.update(terminated=row["terminated"] or row["truncated"], truncated=row["terminated"] or row["truncated"])),
        GOOD, "GYR309", "6, 15, 19, 26",
    ),
    "done contradicts": (changed(GOOD, lambda n, row: row.update(done=(row["terminated"] or row["truncated"]) and n != 15)), changed(GOOD, lambda _, row: row.update(done=row["terminated"] or row["truncated"])), "GYR330", "15"),
    "episode id not advanced": (changed(GOOD, lambda _, row: row.update(episode_id=0)), GOOD, "GYR328", "7-26"),
    "successor is the observation": (changed(GOOD, lambda _, row: row.update(next_obs=row["obs"])), GOOD, "GYR327", "1-26"),
    "live buffer": (live_buffer(GOOD), changed(GOOD, lambda _, row: row.pop("next_obs")), "GYR327", "1-26"),
    "successor of another step": (changed(GOOD, lambda _, row: row.update(next_obs=[9.0, 9.0, 9.0]), (3, 9)), GOOD, "GYR326", "3, 9"),
    "steps left out": ([row for n, row in enumerate(GOOD, 1) if n != 4], GOOD, "GYR310", "4"),
    "step written twice": ([*GOOD[:5], GOOD[4], *GOOD[5:]], GOOD, "GYR337", "6"),
    "reward None": (changed(GOOD, lambda _, row: row.update(reward=None), (5,)), GOOD, "GYR307", "5"),
    "reward NaN": (changed(GOOD, lambda _, row: row.update(reward=float("nan")), (5,)), GOOD, "GYR320", "5"),
    "observation grows": (changed(GOOD, lambda _, row: row.update(obs=[*row["obs"], 0.5]), (10, 11)), GOOD, "GYR307", "10-11"),
    "value becomes a list": (changed(GOOD, lambda _, row: row.update(value=[row["value"]]), (20, 21)), GOOD, "GYR307", "20-21"),
    "flag as text": (changed(GOOD, lambda _, row: row.update(terminated=str(row["terminated"]))), GOOD, "GYR321", "1-26"),
    "reward as text": (changed(GOOD, lambda _, row: row.update(reward=str(row["reward"])), (8,)), GOOD, "GYR321", "8"),
    "reward and return swapped": (changed(RETURNS, lambda _, row: row.update({"reward": row["return"], "return": row["reward"]})), RETURNS, "GYR308", ""),
    "reward holds the return": (changed(RETURNS, lambda _, row: row.update(reward=row["return"])), RETURNS, "GYR308", "1-26"),
    "return over the end": (with_returns(ENDED, 0.95, over_ends=True), RETURNS, "GYR344", "6, 15, 19"),
    "value default in some": (changed(GOOD, lambda _, row: row.update(value=0.0), (3, 9, 10)), GOOD, "GYR304", "3, 9-10"),
    "cut off without its observation": (changed(GOOD, lambda _, row: row.update(next_obs=None), (15, 26)), GOOD, "GYR345", "15, 26"),
    "trajectory: reset observation": (trajectories(reset_read(GOOD)), trajectories(GOOD), "GYR325", "1-3"),
    "trajectory: flag late": (trajectories(one_row_late(GOOD)), trajectories(GOOD), "GYR328", "2-4"),
    "trajectory: time limit": (trajectories(LIMIT), trajectories(TOLD), "GYR329", "1-2, 4"),
    "trajectory: one reward short": (changed(trajectories(GOOD), lambda _, row: row["reward"].pop(), (2,)), trajectories(GOOD), "GYR324", "2"),
}  # fmt: skip


def test_a_longest_length_that_others_outlive_is_no_time_limit(judge: Any) -> None:
    """Three of eight episodes end at 12 steps; one more is alive at 14 where the file ends, so nothing cuts at 12."""
    lengths = (12, 5, 12, 7, 9, 12, 6, 8)
    rows = [
        {
            "episode_id": e,
            "step": t,
            "obs": [0.01 * e + t],
            "action": t % 2,
            "reward": 1.0 + 0.1 * t,
            "terminated": t == n - 1,
            "truncated": False,
        }
        for e, n in enumerate(lengths)
        for t in range(n)
    ]
    alive = [{**rows[0], "episode_id": 8, "step": t, "obs": [5.0 + t], "terminated": False} for t in range(14)]
    assert "GYR329" in {f.code for f in judge(rows).findings}
    assert "GYR329" not in {f.code for f in judge([*rows, *alive]).findings}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_at_its_records_and_its_neighbour_is_silent(judge: Any, name: str) -> None:
    """Each fault gives its code at its records; the same data without it gives neither that code nor anything above a note."""
    bad, good, code, records = FAULTS[name]
    found = [f for f in judge(bad).findings if f.code == code and f.severity is not Severity.NOTE]
    assert [f.records for f in found] == [records]
    clean = [f for f in judge(good).findings if f.severity is not Severity.NOTE or f.code == code]
    assert clean == []


def test_a_final_observation_kept_apart_excuses_the_reset_one(judge: Any) -> None:
    """Where `final_observation` holds the true end, a reset observation in `next_obs` is a convention."""
    rows = reset_read(GOOD)
    for row, true in zip(rows, GOOD, strict=True):
        row["final_observation"] = true["next_obs"] if row["terminated"] or row["truncated"] else None
    assert [f.code for f in judge(rows).findings if f.severity is not Severity.NOTE] == []


def test_equal_starts_are_no_proof_of_a_reset_observation(judge: Any) -> None:
    """In a grid where every episode starts at 0, some ends at 0 are chance."""
    chance = random.Random(11)
    rows: Rows = []
    for episode in range(12):
        place, length = 0, chance.randint(4, 15)
        for t in range(length):
            action = chance.randint(0, 1)
            after = max(0, place + (1 if action else -1))
            rows.append(
                {
                    "episode": episode,
                    "t": t,
                    "obs": [place, 0],
                    "action": action,
                    "reward": 0.5 * t,
                    "next_obs": [after, 0],
                    "terminated": t == length - 1,
                    "truncated": False,
                }
            )
            place = after
    assert [f.code for f in judge(rows).findings if f.severity is not Severity.NOTE] == []


def test_interleaved_environments_are_put_in_order(judge: Any) -> None:
    """Rows of several environments in turns are judged episode by episode."""
    rows = sorted(GOOD, key=lambda row: (row["t"], row["episode_id"]))
    assert [f.code for f in judge(rows).findings if f.severity is not Severity.NOTE] == []


def test_shuffled_records_have_no_order_to_judge(judge: Any) -> None:
    """A replay sample in random order is said to be shuffled and raises nothing."""
    rows = random.Random(3).sample(steps((30, 30, 30), cut=()), 90)
    judged = judge(rows)
    assert [f.code for f in judged.findings if f.severity is not Severity.NOTE] == []
    assert any("shuffled" in text for text in judged.not_judged)


def test_what_lacks_its_fields_is_not_judged_and_said(judge: Any) -> None:
    """Without `next_obs` the successor is not judged, and the report says which field is missing."""
    judged = judge([{"obs": [1.0], "reward": 1.0, "done": False}])
    assert "successor observation: no next_obs" in judged.not_judged


def test_one_modality_that_is_none_is_found(judge: Any) -> None:
    """A part of a nested observation is judged like the whole."""
    rows = changed(
        GOOD, lambda n, row: (row.pop("next_obs"), row.update(obs={"image": None if n == 4 else row["obs"], "pose": [1.0, n / 7]}))
    )
    (found,) = [f for f in judge(rows).findings if f.code == "GYR307"]
    assert (found.field, found.records) == ("obs.image", "4")


def test_a_schema_is_held_against_every_record(judge: Any) -> None:
    """Required fields, shapes, kinds and ranges of a project's own contract are judged; strict names what is beside it."""
    schema = (
        'name = "mine"\nstrict = true\n[roles.obs]\nsummary = "o"\nrequired = true\nshape = [3]\n'
        '[roles.reward]\nsummary = "r"\nmaximum = 0.5\n[roles.goal]\nsummary = "g"\nrequired = true\n'
    )
    found = {
        f.code: f
        for f in judge([{"obs": [1.0, 2.0, 3.0], "reward": 0.25}, {"obs": [1.0, 2.0], "reward": 0.75, "spare": 1}], schema=schema).findings
    }
    assert (found["GYR303"].field, found["GYR303"].records) == ("goal", "1-2")
    assert found["GYR322"].records == "2"
    assert found["GYR307"].records == "2"
    assert found["GYR305"].field == "spare"


def test_a_role_can_be_given_by_hand(judge: Any) -> None:
    """`--field` names a key that nobody could guess."""
    rows = [{"zz": 9, "trainer_version": 3, "reward": 1.0}] * 3
    assert "GYR408" in {f.code for f in judge(rows, {"version": "zz"}).findings}
    assert "GYR408" not in {f.code for f in judge(rows).findings}
