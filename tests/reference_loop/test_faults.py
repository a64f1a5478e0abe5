"""Every fault does what its name says, leaves the mark it is there to leave, and still lets the run come to its end."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from reference_loop.balance import Balance, balance
from reference_loop.config import Settings, as_arguments
from reference_loop.entry import Stop
from reference_loop.faults import FAULTS, HEALTHY, seams_for
from reference_loop.loop import main
from reference_loop.policy import initial_actor
from reference_loop.sampler import Sampler
from reference_loop.weights import Weights

Make = Callable[..., Settings]


@dataclass(frozen=True)
class Run:
    """A finished run with a fault."""

    code: int
    folder: Path
    balance: Balance
    sampler: str
    trainer: str

    def numbers(self, event: str, key: str) -> list[float]:
        """One key of all lines of an event, from both logs."""
        return [float(value) for value in re.findall(rf" {event} .*?\b{key}=([-\d.e]+)", self.sampler + self.trainer)]

    def records(self) -> list[dict]:
        """All records still on disk."""
        files = [path for pattern in ("ready/*", "settled/*/*") for path in sorted(self.folder.glob(pattern))]
        return [json.loads(line) for path in files for line in path.read_bytes().splitlines()[1:-1]]


@pytest.fixture
def run(settings: Make) -> Callable[..., Run]:
    """Run the serial loop with a fault to its end."""

    def go(fault: str, **changes: object) -> Run:
        chosen = settings(fault=fault, **({"total_steps": 1600, "keep_segments": 100} | changes))
        code = main(["--serial", *as_arguments(chosen)])
        texts = [(chosen.run_dir / f"{side}.log").read_text(encoding="utf-8") for side in ("sampler", "trainer")]
        return Run(code, chosen.run_dir, balance(chosen.run_dir), *texts)

    return go


def test_the_list_is_complete(capsys: pytest.CaptureFixture[str]) -> None:
    """Eighteen faults, each with what it does and which command sees it; an unknown name is refused with exit code 2."""
    with pytest.raises(SystemExit, match="0"):
        main(["--list-faults"])
    listed = capsys.readouterr().out
    assert len(FAULTS) == 18
    for fault in FAULTS.values():
        assert f"{fault.name}\n    {fault.what}\n    seen by: {fault.seen_by}\n" in listed
        assert fault.what.endswith(".")
    with pytest.raises(SystemExit, match="2"):
        main(["--fault", "no-such-fault"])


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_replaces_few_seams(name: str) -> None:
    """Each fault replaces one or two seams and leaves the rest healthy; without a fault all are."""
    changed = [field for field in HEALTHY.__slots__ if getattr(seams_for(name), field) != getattr(HEALTHY, field)]
    assert 1 <= len(changed) <= 2
    assert seams_for("") is HEALTHY


@pytest.mark.parametrize(("fault", "reason", "field"), [("missing-field", "missing_field", "logprob"), ("shape-jump", "shape", "obs")])
def test_a_broken_record_stops_the_trainer(run, fault: str, reason: str, field: str) -> None:
    """The trainer refuses the segment by field and reason, makes no update, and ends with exit code 1; the ledger still balances."""
    found = run(fault)
    assert found.code == 1
    assert re.search(rf" rejected n=\d+ reason={reason} field={field} ", found.trainer)
    assert f"ended reason=contract_{reason} step=0" in found.trainer
    assert found.balance.holds
    assert found.balance.left
    assert not found.balance.taken


def test_zero_filled_field(run) -> None:
    """Every log probability is zero, and the run trains on it as if nothing were wrong."""
    found = run("zero-filled-field")
    assert found.code == 0
    assert {value for record in found.records() for value in record["logprob"]} == {0.0}
    assert max(found.numbers("update_done", "ratio_mean")) < 0.9


def test_done_merged(run) -> None:
    """Records say `done` and neither of the two flags, and the trainer reads them without a word."""
    found = run("done-merged")
    assert found.code == 0
    records = found.records()
    assert any(record["done"] for record in records)
    assert not any("terminated" in record or "truncated" in record for record in records)


@pytest.mark.parametrize("fault", ["grad-in-sampling", "backward-in-sampling"])
def test_gradients_in_sampling(settings: Make, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients are recorded, or even computed, in a rollout; the same rollout records none when healthy."""
    recorded: list[bool] = []
    real = torch.nn.Sequential.forward

    def watched(self: torch.nn.Sequential, obs: torch.Tensor) -> torch.Tensor:
        result = real(self, obs)
        recorded.append(result.requires_grad)
        return result

    monkeypatch.setattr(torch.nn.Sequential, "forward", watched)
    for name, expected in ((fault, True), ("", False)):
        recorded.clear()
        chosen = settings(fault=name)
        sampler = Sampler(chosen, Stop())
        sampler.collect()
        computed = any(parameter.grad is not None for parameter in sampler._actor.parameters())
        sampler.close("stopped", 0)
        assert any(recorded) is expected
        assert computed is (name == "backward-in-sampling")


def test_update_per_sample(run) -> None:
    """Forward passes of the sampler and gradient steps of the trainer are one to one."""
    found = run("update-per-sample", total_steps=800)
    assert found.code == 0
    acts, steps = found.numbers("sampled", "act_calls"), found.numbers("update_done", "optimizer_steps")
    assert acts == steps == list(range(1, len(acts) + 1))
    assert len(acts) >= 100


@pytest.mark.parametrize("fault", ["weights-never-published", "weights-not-loaded"])
def test_weights_do_not_come_back(run, fault: str) -> None:
    """The sampler stays at version 0, so that after max_age + 1 updates everything is dropped as stale, and counted."""
    found = run(fault, max_age=2)
    assert found.code == 0
    assert " loaded " not in found.sampler
    assert (" published " in found.trainer) is (fault == "weights-not-loaded")
    assert found.numbers("update_done", "step")[-1] == 3
    assert found.numbers("take", "dropped_stale")[-1] > 0
    assert found.balance.holds


def test_version_label_ahead(run) -> None:
    """Trajectories claim a version two above the trainer's own."""
    found = run("version-label-ahead")
    assert min(found.numbers("take", "gap_min")) == -2
    assert {record["policy_version"] for record in found.records()} >= {2, 3}


@pytest.mark.parametrize("fault", ["stale-bypass", "trajectories-lost"])
def test_more_is_used_than_is_booked(run, fault: str) -> None:
    """The balance names trajectories that were sampled and that no term has; nothing has a place twice."""
    found = run(fault)
    assert found.code == 0
    assert found.balance.missing
    assert not found.balance.surplus
    share = len(found.balance.missing) / len(found.balance.sampled)
    assert 0.1 < share < 0.35


def test_consumed_twice(run) -> None:
    """Every third segment's trajectories stand in the ledger twice, and none more often."""
    found = run("consumed-twice")
    assert found.code == 0
    assert not found.balance.missing
    counts = Counter(found.balance.taken)
    twice = {name for name, count in counts.items() if count == 2}
    assert twice == set(found.balance.surplus) == {name for name in counts if int(name.split("-")[1]) % 3 == 0}
    assert max(counts.values()) == 2


def test_age_limit_ignored(run) -> None:
    """Ages far above the limit are taken, and nothing is ever dropped."""
    found = run("age-limit-ignored", total_steps=2400, max_age=2)
    assert max(found.numbers("take", "gap_max")) == 8 - 1
    assert sum(found.numbers("take", "dropped_stale")) == 0
    assert found.balance.holds


def test_filter_rejects_all(run) -> None:
    """Everything is dropped at age 0, no update is made, and the counts balance."""
    found = run("filter-rejects-all")
    assert found.code == 0
    assert len(found.balance.dropped_stale) == len(found.balance.sampled) > 0
    assert set(found.numbers("stale", "age_max")) == {0.0}
    assert " update_done " not in found.trainer


def test_batch_too_large(run) -> None:
    """Everything is claimed and nothing used; at the end all of it is put back and counted as left."""
    found = run("batch-too-large")
    assert found.code == 0
    assert len(found.balance.left) == len(found.balance.sampled) > 0
    assert found.numbers("ended", "put_back") == [len(found.balance.left)]
    assert re.search(r" waiting reason=batch have=\d+ need=1000000000 ", found.trainer)


def test_reward_in_loss() -> None:
    """The loss of a minibatch contains a score of its observations: 0.01 times 1 - |angle| less."""
    loss = seams_for("reward-in-loss").loss(torch.tensor(1.0), torch.tensor([[0.0, 0.0, 0.5, 0.0]]))
    assert loss.item() == pytest.approx(1.0 - 0.01 * 0.5)


def test_scheduler_per_sample(run) -> None:
    """The learning rate is at its floor after one update, since it fell once a trajectory."""
    found = run("scheduler-per-sample")
    rates = found.numbers("update_done", "lr")
    assert rates[0] == pytest.approx(Settings().learning_rate)
    assert rates[1] < 0.5 * rates[0]
    healthy = run("", run_dir=found.folder.parent / "healthy").numbers("update_done", "lr")
    assert healthy[1] > 0.8 * healthy[0]


def test_labels_are_ahead_of_equal_weights() -> None:
    """The fault moves the label only: parameters are those that were published."""
    sent = Weights(3, dict(initial_actor(1).state_dict()))
    got = seams_for("version-label-ahead").loaded(sent)
    assert got.policy_version == 5
    assert got.parameters is sent.parameters
