"""Files as frameworks write them, healthy ones: nothing above a note is found, and the fields go by their roles."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet

from gyrecheck.commands.handoff_check import check_report, show_report
from gyrecheck.model.finding import Severity

STEPS, COPIES = 200, 3


def played(steps: int = STEPS, copies: int = COPIES, width: int = 4) -> dict[str, np.ndarray]:
    """[time, environment, ...] of environments that are reset where an episode ends, by chance or after 60 steps."""
    chance = np.random.default_rng(5)
    rows: dict[str, list[np.ndarray]] = {key: [] for key in ("obs", "next_obs", "terminated", "truncated", "first")}
    current, age, first = chance.normal(0, 0.1, (copies, width)), np.zeros(copies, int), np.ones(copies, bool)
    for _ in range(steps):
        after = current + chance.normal(0, 0.1, (copies, width))
        age += 1
        terminated = chance.random(copies) < 0.04
        truncated = (age >= 60) & ~terminated
        for key, value in zip(rows, (current, after, terminated, truncated, first), strict=True):
            rows[key].append(value)
        first = terminated | truncated
        age[first] = 0
        current = np.where(first[:, None], chance.normal(0, 0.1, (copies, width)), after)
    made = {key: np.stack(value) for key, value in rows.items()}
    made |= {"logprob": np.log(chance.uniform(0.3, 0.7, (steps, copies))), "value": chance.normal(1, 1, (steps, copies))}
    return made | {"advantage": chance.normal(0, 1, (steps, copies)), "action": chance.integers(0, 2, (steps, copies))}


def verl(path: Path) -> None:
    rows = [
        {
            "input": f"<|user|>\nWhat is {at // 8}+2?\n", "output": f"The answer is \\boxed{{{at // 8 + at % 3}}}", "gts": str(at // 8 + 2),
            "score": float(at % 3 == 2), "step": 12, "acc": at % 3 == 2,
        }
        for at in range(64)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def areal(path: Path) -> None:
    chance, lines = np.random.default_rng(1), []
    for at in range(40):
        prompt, answer = int(chance.integers(5, 9)), int(chance.integers(10, 30))
        versions = sorted(chance.integers(3, 5, answer).tolist())
        lines.append({
            "qid": f"q{at // 4}", "seqlen": prompt + answer, "prompt_len": prompt, "head_version": versions[0], "tail_version": versions[-1],
            "reward": float(chance.integers(0, 2)), "input_ids": chance.integers(1, 30_000, prompt + answer).tolist(),
            "loss_mask": [0] * prompt + [1] * answer, "logprobs": [0.0] * prompt + (-chance.exponential(1, answer)).tolist(),
            "versions": [-1] * prompt + versions,
        })  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in lines))


def nemo(path: Path) -> None:
    """Lists are padded to 32; `input_lengths` is the length without the padding."""
    chance, lines = np.random.default_rng(2), []
    for at in range(32):
        answer = int(chance.integers(8, 20))
        rest = 32 - 7 - answer
        sampled = (-chance.exponential(1, answer)).tolist()
        lines.append({
            "content": f"answer {at}", "rewards": float(at % 2), "input_lengths": 7 + answer,
            "token_ids": [*chance.integers(1, 30_000, 7 + answer).tolist(), *[0] * rest],
            "token_loss_mask": [0] * 7 + [1] * answer + [0] * rest, "sample_loss_mask": 1.0,
            "advantages": [float(chance.normal())] * 32, "generation_logprobs": [0.0] * 7 + sampled + [0.0] * rest,
            "prev_logprobs": [0.0] * 7 + [x + 0.001 for x in sampled] + [0.0] * rest, "idx": at,
        })  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in lines))


def trl(path: Path) -> None:
    chance = np.random.default_rng(3)
    rows = [
        {
            "prompt": [{"role": "user", "content": f"Q{at}"}], "completion": [{"role": "assistant", "content": f"A{at}"}],
            "reward": float(chance.random()), "advantage": float(chance.normal()), "step": at // 8,
        }
        for at in range(48)
    ]  # fmt: skip
    parquet.write_table(pa.Table.from_pylist(rows), path)


def preferences(path: Path) -> None:
    table = pa.Table.from_pylist([{"prompt": f"q{at}", "chosen": f"good {at}", "rejected": f"bad {at}"} for at in range(48)])
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def sb3_replay(path: Path) -> None:
    p = played()
    np.savez(
        path, observations=p["obs"].astype("f4"), next_observations=p["next_obs"].astype("f4"), actions=p["action"][..., None],
        rewards=np.ones((STEPS, COPIES), "f4"), dones=(p["terminated"] | p["truncated"]).astype("f4"), timeouts=p["truncated"].astype("f4"),
    )  # fmt: skip


def sb3_rollout(path: Path) -> None:
    p = played()
    np.savez(
        path, observations=p["obs"].astype("f4"), actions=p["action"][..., None].astype("f4"), rewards=np.ones((STEPS, COPIES), "f4"),
        episode_starts=p["first"].astype("f4"), values=p["value"], log_probs=p["logprob"], advantages=p["advantage"],
        returns=p["advantage"] + p["value"],
    )  # fmt: skip


def cleanrl(path: Path) -> None:
    """`dones[t]` says whether the step before t ended an episode, as CleanRL's loop keeps it."""
    p = played()
    np.savez(
        path, obs=p["obs"].astype("f4"), actions=p["action"], logprobs=p["logprob"], rewards=np.ones((STEPS, COPIES), "f4"),
        dones=p["first"].astype("f4") * (np.arange(STEPS) > 0)[:, None], values=p["value"], advantages=p["advantage"],
        returns=p["advantage"] + p["value"],
    )  # fmt: skip


def rsl_rl(path: Path) -> None:
    p = played(24, 64)
    one = {key: torch.tensor(p[key])[..., None].float() for key in ("value", "advantage", "logprob")}
    torch.save(
        {
            "observations": torch.tensor(p["obs"]).float(), "actions": torch.randn(24, 64, 3), "rewards": torch.randn(24, 64, 1),
            "dones": torch.tensor(p["terminated"] | p["truncated"])[..., None].byte(), "values": one["value"],
            "returns": one["value"] + one["advantage"], "advantages": one["advantage"], "actions_log_prob": one["logprob"],
            "mu": torch.randn(24, 64, 3), "sigma": torch.ones(24, 64, 3),
        },
        path,
    )  # fmt: skip


def d4rl(path: Path) -> None:
    p = played(600, 1, 11)
    chance = np.random.default_rng(4)
    with h5py.File(path, "w") as file:
        file["observations"], file["next_observations"] = p["obs"][:, 0], p["next_obs"][:, 0]
        file["actions"], file["rewards"] = np.tanh(chance.normal(0, 1, (600, 3))), chance.normal(1, 0.3, 600)
        file["terminals"], file["timeouts"] = p["terminated"][:, 0], p["truncated"][:, 0]
        file["infos/action_log_probs"], file["metadata/algorithm"] = chance.normal(-2, 1, 600), np.bytes_("SAC")


def minari(path: Path) -> None:
    chance = np.random.default_rng(6)
    with h5py.File(path, "w") as file:
        for at in range(12):
            length = int(chance.integers(20, 60))
            group = file.create_group(f"episode_{at}")
            last = np.arange(length) == length - 1
            group["observations"], group["actions"] = chance.normal(0, 1, (length + 1, 4)), chance.integers(0, 2, length)
            group["rewards"], group["terminations"], group["truncations"] = np.ones(length), last & bool(at % 3), last & (at % 3 == 0)
            group.attrs.update({"id": at, "seed": at, "total_steps": length})


def robomimic(path: Path) -> None:
    chance = np.random.default_rng(7)
    with h5py.File(path, "w") as file:
        for at in range(6):
            group = file.create_group(f"data/demo_{at}")
            way = np.cumsum(chance.normal(0, 0.1, (51, 7)), axis=0)
            last = (np.arange(50) == 49).astype(int)
            group["actions"], group["rewards"], group["dones"] = np.tanh(chance.normal(0, 1, (50, 7))), last.astype(float), last
            group["obs/eef_pos"], group["next_obs/eef_pos"] = way[:-1, :3], way[1:, :3]
            group.attrs["num_samples"] = 50


FILES = {
    "12.jsonl": (verl, {"score": "reward"}),
    "areal.jsonl": (areal, {"input_ids": "tokens", "versions": "policy_version", "loss_mask": "mask"}),
    "train_data_step1.jsonl": (nemo, {"generation_logprobs": "logprob", "prev_logprobs": "proximal_logprob", "input_lengths": "length"}),
    "completions.parquet": (trl, {"reward": "reward", "advantage": "advantage"}),
    "preferences.arrow": (preferences, {}),
    "replay_buffer.npz": (sb3_replay, {"dones": "done", "timeouts": "truncated", "next_observations": "next_obs"}),
    "rollout_buffer.npz": (sb3_rollout, {"log_probs": "logprob", "episode_starts": "first"}),
    "rollout.npz": (cleanrl, {"logprobs": "logprob", "dones": "done"}),
    "storage.pt": (rsl_rl, {"actions_log_prob": "logprob", "dones": "done"}),
    "d4rl.hdf5": (d4rl, {"terminals": "terminated", "timeouts": "truncated", "infos.action_log_probs": "logprob"}),
    "main_data.hdf5": (minari, {"terminations": "terminated", "truncations": "truncated", "header.total_steps": ""}),
    "demo.hdf5": (robomimic, {"dones": "done", "obs.eef_pos": "obs", "header.num_samples": ""}),
}


@pytest.mark.parametrize("name", FILES)
def test_what_frameworks_write_is_in_order(tmp_path: Path, name: str) -> None:
    """A healthy file of each framework gives notes at most, no axis is left open where an episode is a group, and roles are told."""
    write, roles = FILES[name]
    write(tmp_path / name)
    report, _ = check_report([tmp_path / name], {})
    assert [(f.code, f.message) for f in report.findings if f.severity is not Severity.NOTE] == []
    shown, _ = show_report([tmp_path / name], {})
    told = {str(row[0]): row[1] for row in shown.tables["fields"].rows}
    assert {key: told[key] for key in roles} == roles
    assert len(report.skipped) == len(set(report.skipped))
    assert not name.endswith(".hdf5") or not report.skipped


def test_an_end_inside_a_buffer_s_column_is_no_fault_and_a_leak_is_one(tmp_path: Path) -> None:
    """A column of a replay buffer holds episode after episode; where its next observation is the reset one, that is found."""
    p = played()
    ended = p["terminated"] | p["truncated"]
    leak = p["next_obs"].copy()
    leak[:-1][ended[:-1]] = p["obs"][1:][ended[:-1]]
    for name, after, codes in (("sound.npz", p["next_obs"], set()), ("leak.npz", leak, {"GYR325"})):
        np.savez(
            tmp_path / name,
            observations=p["obs"],
            next_observations=after,
            actions=p["action"],
            rewards=p["value"],
            dones=ended,
            timeouts=p["truncated"],
        )
        report, _ = check_report([tmp_path / name], {})
        assert {f.code for f in report.findings if f.severity is not Severity.NOTE} == codes, name


def test_padding_behind_the_length_is_no_mismatch_and_a_short_list_is_one(tmp_path: Path) -> None:
    """A length below that of padded lists is the length without padding; one above them, or before tokens that count, is wrong."""
    nemo(tmp_path / "a.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    rows[4]["input_lengths"] = 40
    rows[9]["input_lengths"] = 8
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    report, _ = check_report([tmp_path / "a.jsonl"], {})
    assert [(f.code, f.records) for f in report.findings if f.code == "GYR324"] == [("GYR324", "5, 10")]
