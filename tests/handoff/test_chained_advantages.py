"""Generalised advantages at the ends of episodes: of the episode alone, however they are scaled and laid out."""

from __future__ import annotations

import json
import random
import statistics

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app

GAMMA, LAM = 0.98, 0.9


def _told(tmp_path, rows) -> set[str]:
    path = tmp_path / "steps.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = json.loads(CliRunner().invoke(build_app(), ["handoff", "check", str(path), "--output-format", "json"]).stdout)
    return {f["code"] for f in done["findings"] if f["code"] in {"GYR344", "GYR329"}}


def _lane(lane: int, how: str) -> list[dict[str, object]]:
    """90 steps of one environment; every third end is a cut-off, whose successor's value stands beside it."""
    chance, rows, episode, t = random.Random(lane), [], 0, 0
    for at in range(90):
        end = at == 89 or (t > 3 and chance.random() < 0.15)
        cut = end and episode % 3 == 2
        row = {"env_id": lane, "episode_id": f"{lane}-{episode}", "t": t, "obs": [round(chance.random(), 4)], "action": 1, "logprob": -0.5}
        row |= {
            "reward": round(chance.random(), 3),
            "value": round(chance.uniform(0, 4), 4),
            "terminated": end and not cut,
            "truncated": cut,
        }
        rows.append(row | {"last_value": round(chance.uniform(1, 4), 4) if cut else 0.0, "policy_version": 4})
        episode, t = (episode + 1, 0) if end else (episode, t + 1)
    gain = 0.0
    for at in reversed(range(90)):
        if how == "early":
            then = rows[at + 1] if at < 89 else None
            cut = then is None or then["terminated"] or then["truncated"]
            gain = rows[at]["reward"] + (0.0 if cut else GAMMA * then["value"] + GAMMA * LAM * gain) - rows[at]["value"]
            rows[at]["advantage"] = gain
            continue
        row, then = rows[at], rows[at + 1] if at < 89 else None
        end = row["terminated"] or row["truncated"]
        ahead = then["value"] if then else 0.0
        if end and (how != "across" or then is None):
            ahead, gain = (row["last_value"] if row["truncated"] and how != "dropped" else 0.0), 0.0
        gain = row["reward"] + GAMMA * ahead - row["value"] + GAMMA * LAM * gain
        row["advantage"] = gain
    return rows


def _rows(how: str, lanes: int, scaled: bool, packed: bool) -> list[dict[str, object]]:
    each = [_lane(lane, how) for lane in range(lanes)]
    rows = [row for tick in zip(*each, strict=True) for row in tick]
    mean, spread = (
        (statistics.fmean(r["advantage"] for r in rows), statistics.pstdev(r["advantage"] for r in rows)) if scaled else (0.0, 1.0)
    )
    rows = [row | {"advantage": round((row["advantage"] - mean) / spread, 4)} for row in rows]
    if not packed:
        return rows
    out = []
    for name in dict.fromkeys(row["episode_id"] for row in sorted(rows, key=lambda r: r["env_id"])):
        own = [row for row in rows if row["episode_id"] == name]
        record = {"traj_id": name, "policy_version": 4, "last_value": own[-1]["last_value"]}
        record |= {flag: own[-1][flag] for flag in ("terminated", "truncated")}
        lists = {"rewards": "reward", "values": "value", "advantages": "advantage", "actions": "action", "logprobs": "logprob"}
        out.append(record | {key: [row[of] for row in own] for key, of in lists.items()})
    return out


@pytest.mark.parametrize(
    ("lanes", "scaled", "packed"), [(1, False, False), (3, False, False), (2, True, False), (1, False, True), (1, True, True)]
)
@pytest.mark.parametrize(("how", "codes"), [("across", {"GYR344"}), ("dropped", {"GYR329"}), ("", set())])
def test_ends(tmp_path, lanes, scaled, packed, how, codes):
    """Sums that run into the next episode, and cut-offs without the value beside them, are told; advantages of the episode alone are not."""
    assert _told(tmp_path, _rows(how, lanes, scaled, packed)) == codes


@pytest.mark.parametrize("lanes", [1, 3])
def test_a_sum_that_stops_one_step_early(tmp_path, lanes):
    """Where episode ids bear the flags out, advantages that are cut at the row before an end, and not at the end, are told."""
    assert _told(tmp_path, _rows("early", lanes, scaled=False, packed=False)) == {"GYR344"}


def test_flags_that_stand_before_an_episode_are_read_as_such(tmp_path):
    """A `done` that belongs to the observation stands in the first row of the next episode: nothing runs over an end there."""
    rows = _rows("", 1, scaled=False, packed=False)
    ends = [False, *(row.pop("terminated") | row.pop("truncated") for row in rows)][:-1]
    rows = [
        {k: v for k, v in row.items() if k not in {"episode_id", "t", "last_value"}} | {"done": end}
        for row, end in zip(rows, ends, strict=True)
    ]
    assert _told(tmp_path, rows) == set()
