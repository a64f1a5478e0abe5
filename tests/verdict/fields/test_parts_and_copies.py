"""Copies and parts of samples: which of them a loss counts decides whether they are a fault."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from gyrecheck.model.finding import Severity

Rows = list[dict[str, Any]]
CHANCE = random.Random(11)


def _drawn(size: int = 6) -> dict[str, Any]:
    return {
        "completion_ids": [CHANCE.randint(5, 900) for _ in range(size)],
        "rollout_logprobs": [round(-CHANCE.expovariate(1) - 0.01, 4) for _ in range(size)],
    }


def _groups(batches: int = 1, prompts: int = 4) -> Rows:
    return [
        {"train_batch": b, "prompt_id": f"b{b}q{q}", "sample_uid": f"u-{b}-{q}-{k}", **_drawn(), "completion_mask": [1] * 6, "reward": float(k % 2), "version": b, "trainer_version": b}
        for b in range(batches)
        for q in range(prompts)
        for k in range(4)
    ]  # fmt: skip


def _filled(mask: int, flag: str = "") -> Rows:
    rows = _groups()
    fillers = copy.deepcopy([rows[at] for at in (0, 1, 5)])
    for row in fillers:
        row["completion_mask"] = [mask] * 6
    return [row | ({flag: at >= 16} if flag else {}) for at, row in enumerate((*rows, *fillers))]


def _codes(judge: Any, rows: Rows, least: Severity = Severity.WARNING) -> dict[str, str]:
    return {f.code: f.records for f in judge(rows).findings if f.severity.rank >= least.rank}


@pytest.mark.parametrize("flag", ["", "is_dummy", "is_pad"])
def test_copies_that_fill_up_a_batch_are_a_fault_only_where_the_mask_counts_them(judge: Any, flag: str) -> None:
    """Copies of records 1, 2 and 6 at 17 to 19: counted they are duplicates, with mask 0 a note, with or without a flag that says so."""
    assert _codes(judge, _filled(1, flag))["GYR337"] == "17-19"
    assert _codes(judge, _filled(0, flag)) == {}
    assert _codes(judge, _filled(0, flag), Severity.NOTE)["GYR333"] == "17-19"


def test_a_mask_cleared_by_mistake_is_no_filler(judge: Any) -> None:
    """A mask of 0 in a record that copies none and does not say that it is filler is a warning."""
    rows = _groups()
    rows[3]["completion_mask"] = rows[9]["completion_mask"] = [0] * 6
    assert _codes(judge, rows) == {"GYR333": "4, 10"}


def _with_late(attempts: bool) -> Rows:
    rows = _groups(3)
    for source, at in ((3, 20), (25, 40)):
        rows.insert(at, rows[source] | _drawn() | {"train_batch": rows[at]["train_batch"], "retry": 1})
    return [row | {"retry": row.get("retry", 0)} if attempts else {k: v for k, v in row.items() if k != "retry"} for row in rows]


@pytest.mark.parametrize("attempts", [True, False])
def test_a_late_result_beside_its_retry_names_both(judge: Any, attempts: bool) -> None:
    """Two results of one name in one group, in two batches, with other tokens: which is meant is not told, so both are named."""
    assert _codes(judge, _with_late(attempts))["GYR337"] == "4, 21, 26, 41"


def test_a_group_that_comes_again_as_a_whole_is_the_next_epoch(judge: Any) -> None:
    """Names of a whole group with other tokens in a later batch: its prompt was drawn again."""
    rows = _groups(3)
    again = [row | _drawn() | {"train_batch": 3} for row in rows[:8]]
    assert _codes(judge, rows + again) == {}


def _parts(form: str, masked: bool, allowed: bool | None) -> Rows:
    rows: Rows = []
    for at in range(16):
        mixed = at in {3, 7, 8}
        row: dict[str, Any] = {"uid": f"s{at}", **_drawn(9), "trainer_version": 9, "max_lag": 1, "reward": CHANCE.random()}
        row["completion_mask"] = [0] * 4 + [1] * 5 if mixed and masked else [1] * 9
        if form == "texts":
            row |= {"model_versions": ["v7", "v9"] if mixed else ["v9"], "chunk_lens": [4, 5] if mixed else [9]}
        elif form == "numbers":
            row |= {"weight_versions": [7, 9] if mixed else [9], "segment_lengths": [4, 5] if mixed else [9]}
        elif form == "unknown lengths":
            row |= {"weight_versions": ["7", "9"] if mixed else ["9"]}
        else:
            row |= {"versions": [7] * 4 + [9] * 5 if mixed else [9] * 9}
        rows.append(row | ({"partial_rollout": allowed} if allowed is not None else {}))
    return rows


@pytest.mark.parametrize("form", ["texts", "numbers", "tokens", "unknown lengths"])
def test_only_versions_of_counted_parts_are_held_against_the_trainer(judge: Any, form: str) -> None:
    """A part of version 7 under trainer version 9 and a limit of 1 is over age at 4, 8, 9; masked out it is no matter."""
    assert _codes(judge, _parts(form, masked=False, allowed=True)) == {"GYR404": "4, 8-9"}
    assert _codes(judge, _parts(form, masked=False, allowed=False)) == {"GYR404": "4, 8-9", "GYR341": "4, 8-9"}
    assert _codes(judge, _parts(form, masked=True, allowed=True)) == {}


def _tagged(tag: int, limit: int = 1) -> Rows:
    return [
        {"uid": f"s{at}", **_drawn(9), "weight_version": tag if at in {3, 7} else 13, "token_versions": [12] * 4 + [13] * 5 if at in {3, 7} else [13] * 9, "max_lag": limit, "reward": 0.5}
        for at in range(12)
    ]  # fmt: skip


def test_a_tag_with_the_oldest_part_hides_nothing(judge: Any) -> None:
    """Parts of 12 and 13 under the tag 12 say all there is; under the tag 13 the older part is hidden, and beyond the limit it is too old."""
    assert _codes(judge, _tagged(12)) == {}
    assert _codes(judge, _tagged(13)) == {"GYR341": "4, 8"}
    assert _codes(judge, _tagged(12, limit=0)) == {"GYR341": "4, 8"}
