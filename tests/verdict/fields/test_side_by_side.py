"""Several environments side by side in one file, told by an id, by an environment's number, or only by how their observations chain."""

from __future__ import annotations

import random
from typing import Any

import pytest

from gyrecheck.model.finding import Severity

Rows = list[dict[str, Any]]
EVERY = ("episode", "env", "step")
WAYS = [("episode", "step"), ("episode",), ("number", "env", "step"), ("env", "step"), ("env",), ("step",), ()]


def _rows(ids: tuple[str, ...], after_reset: bool, count: int = 110, copies: int = 3, same_start: bool = False) -> Rows:
    chance = random.Random(4)

    def start() -> list[float]:
        return [0.05, 0.01] if same_start else [round(chance.uniform(-0.05, 0.05), 4), round(chance.uniform(-0.05, 0.05), 4)]

    state, step, number = [start() for _ in range(copies)], [0] * copies, [0] * copies
    rows: Rows = []
    while len(rows) < count:
        for copy in range(copies):
            obs = state[copy]
            following = [round(obs[0] + chance.gauss(0.02, 0.1), 4), round(obs[1] + chance.gauss(0, 0.1), 4)]
            terminated = chance.random() < 0.07
            truncated = not terminated and step[copy] >= 14
            ended = terminated or truncated
            state[copy] = start() if ended else following
            row: dict[str, Any] = {
                "obs": obs,
                "action": chance.randrange(2),
                "reward": round(chance.random(), 3),
                "next_obs": state[copy] if after_reset else following,
                "terminated": terminated,
                "truncated": truncated,
                "log_prob": -0.5,
                "policy_version": 5,
            }
            told = {"episode": f"{copy}-{number[copy]}", "number": number[copy], "env": copy, "step": step[copy]}
            names = {"episode": "episode_id", "number": "episode_id", "env": "env_id", "step": "step"}
            row |= {names[way]: told[way] for way in ids}
            rows.append(row)
            step[copy] = 0 if ended else step[copy] + 1
            number[copy] += ended
    return rows


def _grave(judge: Any, rows: Rows) -> dict[str, str]:
    return {f.code: f.records for f in judge(rows).findings if f.severity is not Severity.NOTE}


@pytest.mark.parametrize("ids", WAYS)
def test_copies_side_by_side_are_read_as_what_they_are(judge: Any, ids: tuple[str, ...]) -> None:
    """Whatever tells the copies apart, sound rows stay silent and a successor taken after the reset is found at every end."""
    rows = _rows(ids, after_reset=True)
    ends = [number for number, row in enumerate(rows, 1) if row["terminated"] or row["truncated"]]
    last = {copy: max(number for number in range(1, len(rows) + 1) if (number - 1) % 3 == copy) for copy in range(3)}
    assert all(number not in ends for number in last.values())
    assert _grave(judge, _rows(ids, after_reset=False)) == {}
    found = _grave(judge, rows)
    assert set(found) == {"GYR325"}
    first, *_, final = ends
    assert found["GYR325"].startswith(str(first))
    assert found["GYR325"].endswith(str(final))


def test_one_common_start_needs_nearly_all_ends(judge: Any) -> None:
    """Where every episode starts alike the finding is a warning at most, and sound rows stay silent."""
    assert _grave(judge, _rows(EVERY, after_reset=False, same_start=True)) == {}
    found = [f for f in judge(_rows(EVERY, after_reset=True, same_start=True)).findings if f.code == "GYR325"]
    assert [f.severity for f in found] == [Severity.WARNING]


def _episodes(cut: tuple[int, ...] = (), lose_rows: bool = True, versions: bool = False) -> Rows:
    chance = random.Random(5)
    rows: Rows = []
    for number in range(12):
        length = chance.randrange(6, 20)
        for step in range(length):
            if number in cut and lose_rows and step >= length // 2:
                continue
            last = step == length - 1 and number not in cut
            rows.append({
                "episode": f"e{number}", "step_in_episode": step, "state": [round(chance.random(), 4), 0.1], "action": 1, "reward": 1.0,
                "terminated": last and length < 18, "truncated": last and length >= 18, "policy_version": number // 4 if versions else 3,
            })  # fmt: skip
    return rows


def _ends(rows: Rows, *numbers: int) -> str:
    return ", ".join(str(max(at for at, row in enumerate(rows, 1) if row["episode"] == f"e{number}")) for number in numbers)


@pytest.mark.parametrize("lose_rows", [True, False])
def test_a_few_episodes_that_stop_in_the_middle_of_a_file_are_a_warning(judge: Any, lose_rows: bool) -> None:
    """Two of twelve episodes have no end, each followed by others; the last one of a file may be open, and a whole file is silent."""
    rows = _episodes((3, 6), lose_rows)
    assert _grave(judge, rows) == {"GYR328": _ends(rows, 3, 6)}
    assert _grave(judge, _episodes((11,), lose_rows)) == {}
    assert _grave(judge, _episodes()) == {}


def test_episodes_that_stop_where_the_version_changes_are_a_note(judge: Any) -> None:
    """Episodes cut where a new version begins, or at multiples of one number of rows, were cut by a rollout's end."""
    rows = _episodes((3, 7), versions=True)
    assert _grave(judge, rows) == {}
    assert [f.records for f in judge(rows).findings if f.code == "GYR328"] == [_ends(rows, 3, 7)]


def test_episodes_that_stop_at_a_rollouts_length_are_a_note(judge: Any) -> None:
    """A writer that begins a new episode after every 32 rows leaves ends at 32, 64, 96 and 128."""
    chance = random.Random(9)
    rows: Rows = []
    number = 0
    while len(rows) < 160:
        length = chance.randrange(5, 12)
        for step in range(length):
            rows.append(
                {"episode": f"x{number}", "step": step, "state": [0.5, 0.1 * step], "reward": 1.0, "terminated": step == length - 1}
            )
            if len(rows) % 32 == 0:
                break
        number += 1
    assert _grave(judge, rows) == {}


def test_a_clock_set_back_by_less_than_a_second_is_no_fault(judge: Any) -> None:
    """5 ms back between records 1 ms apart is the clock's own correction, in seconds or nanoseconds; 300 s back is a record written again."""

    def rows(back: float, unit: float) -> Rows:
        times = [1.7e9 + 0.001 * at - (back if at >= 20 else 0.0) for at in range(40)]
        return [{"sample_id": at, "policy_version": 3, "wall_clock": round(time * unit), "reward": at % 3} for at, time in enumerate(times)]

    for unit in (1e6, 1e9):
        assert "GYR347" not in _grave(judge, rows(0.005, unit))
        assert _grave(judge, rows(300.0, unit))["GYR347"] == "21"


def test_rows_in_no_order_are_not_judged(judge: Any) -> None:
    """Transitions drawn from a buffer, without id or step: nothing follows the row before it, so no chain is broken."""
    rows = _rows((), after_reset=False, count=300)
    random.Random(1).shuffle(rows)
    judged = judge(rows)
    assert "GYR326" not in {f.code for f in judged.findings}
    assert any("in no order" in text for text in judged.not_judged)


def test_turns_with_their_own_versions_are_a_note_within_the_limit(judge: Any) -> None:
    """One trajectory's turns say versions 4 and 5: a warning, and a note where the trainer allows a lag of 1."""

    def rows(limit: dict[str, int]) -> Rows:
        return [
            {"trajectory_id": f"t{at // 3}", "turn": at % 3, "tokens": [5, 6, at], "logprobs": [-0.1, -0.2, -0.3], "policy_version": 4 + (at % 3 == 2), **limit}
            for at in range(12)
        ]  # fmt: skip

    assert _grave(judge, rows({}))["GYR341"] == "3, 6, 9, 12"
    assert "GYR341" not in _grave(judge, rows({"max_lag": 1}))
