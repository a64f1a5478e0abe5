"""Environments side by side, first-row flags, and log-probs beside the distribution that they are of."""

from __future__ import annotations

import json
import math
import random

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app


def _told(tmp_path, rows, code) -> list[str]:
    path = tmp_path / "steps.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = json.loads(CliRunner().invoke(build_app(), ["handoff", "check", str(path), "--output-format", "json"]).stdout)
    return [f["records"] for f in done["findings"] if f["code"] == code and f["severity"] != "note"]


def _steps(lane: int, seed: int, *, whole: bool = False, greedy: bool = False) -> list[dict[str, object]]:
    chance = random.Random(seed)
    rows, now = [], [0.0, 0.0]
    for at in range(20):
        after = [float(chance.randrange(5)) if whole else round(x + chance.uniform(-0.2, 0.2), 4) for x in now]
        lp = 0.0 if greedy else round(-chance.uniform(0.2, 2), 4)
        row = {"env_id": lane, "episode_id": f"{lane}-{at // 5}", "t": at % 5, "obs": now, "action": chance.randrange(4), "logprob": lp}
        rows.append(
            row
            | {"reward": round(chance.random(), 3), "next_obs": after, "terminated": at % 5 == 4, "truncated": False, "policy_version": 3}
        )
        now = after
    return rows


@pytest.mark.parametrize(
    ("seeds", "more", "told"),
    [
        ((1, 2, 3), {}, False),
        ((1, 2, 1), {}, True),
        ((4, 4, 4), {}, True),
        ((4, 4, 4), {"whole": True}, False),
        ((4, 4, 4), {"greedy": True}, False),
    ],
)
def test_environments_that_hold_the_same_steps(tmp_path, seeds, more, told):
    """Two of three lanes with one seed are told; on a grid, or with a greedy policy, equal steps are no wonder."""
    rows = [row for tick in zip(*(_steps(lane, seed, **more) for lane, seed in enumerate(seeds)), strict=True) for row in tick]
    assert bool(_told(tmp_path, rows, "GYR337")) == told


@pytest.mark.parametrize(("place", "told"), [(0, []), (1, ["2, 7, 12, 17"]), (4, ["5, 10, 15, 20"])])
def test_the_flag_of_an_episodes_first_row(tmp_path, place, told):
    """Four episodes of five steps: the flag on the second or on the last row of each is told, on the first it is not."""
    rows = [row | {"is_first": row["t"] == place} for row in _steps(0, 1)]
    assert _told(tmp_path, rows, "GYR328") == told


@pytest.mark.parametrize("spread", ["std", "log_std"])
@pytest.mark.parametrize(("how", "told"), [("clipped", True), ("drawn", False), ("clipped before", False), ("other", False)])
def test_the_density_of_the_stored_action(tmp_path, spread, how, told):
    """60 draws of two dimensions, some beyond the bounds: told where the clipped action stands beside the log-prob of the draw, at just those rows."""
    chance, rows, off = random.Random(3), [], []
    for at in range(60):
        mean = [round(chance.uniform(-0.6, 0.6), 4) for _ in range(2)]
        draw = [round(chance.gauss(m, 0.5), 4) for m in mean]
        kept = [max(-1.0, min(1.0, a)) for a in draw]
        of = kept if how == "clipped before" else draw
        lp = sum(-((a - m) ** 2) / 0.5 - math.log(0.5) - 0.5 * math.log(2 * math.pi) for a, m in zip(of, mean, strict=True))
        lp += 0.7 * chance.random() if how == "other" else 0.0
        row = {"t": at, "obs": [round(chance.random(), 4)], "action": draw if how == "drawn" else kept, "action_mean": mean}
        row |= {"std": [0.5, 0.5]} if spread == "std" else {"log_std": [round(math.log(0.5), 6)] * 2}
        rows.append(row | {"logprob": round(lp, 4), "reward": round(chance.random(), 3), "policy_version": 5})
        if kept != draw and abs(sum(((a - m) ** 2 - (b - m) ** 2) / 0.5 for a, b, m in zip(draw, kept, mean, strict=True))) > 0.1:
            off.append(at + 1)
    found = _told(tmp_path, rows, "GYR315")
    assert bool(found) == told
    if told:
        numbers = [n for part in found[0].split(", ") for n in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)]
        assert numbers == off
