"""Weights that are sent and change nothing, told by a norm of the parcel or by a gap that no new version makes smaller."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gyrecheck.commands.ledger_run import judge_text
from gyrecheck.model.finding import State
from gyrecheck.rulebook.codes import load_codes


def _found(text: str) -> list[tuple[str, object]]:
    return [(v.quantity, v.value) for v in judge_text(text, load_codes()).verdicts if v.code == "GYR420" and v.state is State.BROKEN]


def _gaps(name: str, gap: Callable[[int], float], every: int = 4) -> str:
    return "\n".join(
        f"update {n}: sampler_version={every * ((n - 1) // every)} {name}={gap(n):.4f} sampled={32 * n} trained={32 * n}"
        for n in range(1, 33)
    )


@pytest.mark.parametrize("name", ["old_logp_diff", "logprob_gap", "policy/mismatch_kl", "engine_trainer_kl"])
def test_a_gap_that_no_new_version_makes_smaller_is_the_distance_from_the_start(name: str) -> None:
    """It climbs from 0.0030 to 0.0960 over seven new versions; that of a sampler that loads falls back at each."""
    assert _found(_gaps(name, lambda n: 0.003 * n)) == [(name, 0.096)]
    assert _found(_gaps(name, lambda n: 0.003 * (1 + (n - 1) % 4))) == []


def test_a_gap_with_a_new_version_at_every_reading_says_nothing_here() -> None:
    """Where each reading has a new version there is no course between two of them to fall from."""
    assert _found(_gaps("logp_diff", lambda n: 0.003 * n, every=1)) == []


@pytest.mark.parametrize("name", ["q_proj weight norm", "sent params checksum", "layers.0.mlp norm"])
def test_a_norm_that_is_the_same_to_the_last_figure_is_of_what_is_not_trained(name: str) -> None:
    """Eight syncs of 75.377708 with gradients; not with five figures, not at rate 0, not where another norm moves."""

    def lines(value: Callable[[int], str], lr: float = 1e-5, more: Callable[[int], str] = lambda _: "") -> str:
        return "\n".join(f"sync {n} done, {name} {value(n)}{more(n)} | grad_norm 0.{30 + n} lr {lr}" for n in range(8))

    assert _found(lines(lambda _: "75.377708")) == [(name, 75.377708)]
    assert _found(lines(lambda n: f"75.37{7708 + n}")) == []
    assert _found(lines(lambda _: "75.38")) == []
    assert _found(lines(lambda _: "75.377708").replace("sync", "step").replace("sent ", "")) == []  # a frozen part, on its own
    assert _found(lines(lambda _: "75.377708", lr=0.0)) == []
    assert _found(lines(lambda _: "75.377708", more=lambda n: f", adapter weight norm 1.22{n}771")) == []


def test_a_norm_that_moves_where_it_is_sent_and_stays_where_it_is_loaded() -> None:
    """Eight syncs: the trainer's norm moves in each, the engine's does not; where both move, and where only a head is frozen, nothing is said."""

    def lines(trainer: Callable[[int], str], engine: Callable[[int], str], names: tuple[str, str]) -> str:
        return "\n".join(f"sync {n}: {names[0]} {trainer(n)} {names[1]} {engine(n)}" for n in range(8))

    names = ("trainer weights norm", "engine weights norm")
    moves: Callable[[int], str] = lambda n: f"75.37{7708 + n}"  # noqa: E731
    assert _found(lines(moves, lambda _: "75.377708", names)) == [(names[1], 75.377708)]
    assert _found(lines(moves, moves, names)) == []
    assert _found(lines(moves, lambda _: "75.377708", ("first layer norm", "lm head norm"))) == []


def test_a_number_without_a_key_of_the_format_is_understood_where_it_only_measures() -> None:
    """Verl has no key for `rollout_corr/kl`; a penalty on the reference policy is not taken for it, nor is an unknown count for one."""
    line = "step:{n} - actor/pg_loss:0.01 - actor/grad_norm:0.31 - actor/kl_loss:0.0{n} - rollout_corr/kl:0.00{n} - samples_trained:{n} - training/global_step:{n}"
    judged = judge_text("\n".join(line.format(n=n) for n in range(1, 10)), load_codes())
    read = {s.name: s.key.term for s in judged.run.snapshot.series}
    assert read["rollout_corr/kl"] == "mismatch_kl"
    assert not {"actor/kl_loss", "samples_trained"} & set(read)


def test_rollouts_that_are_aborted_at_a_load_are_no_failed_load() -> None:
    """`policy 3 loaded, 5 rollouts past the limit aborted` tells of a load that arrived; `policy 3 load aborted` does not."""

    def failed(line: str) -> list[object]:
        text = "\n".join(f"step {n} sampled {64 * n} trained {64 * n}\n{line.format(n=n)}" for n in range(1, 13))
        return [v.value for v in judge_text(text, load_codes()).verdicts if v.code == "GYR406" and v.state is State.BROKEN]

    assert failed("policy {n} loaded, 5 rollouts past the off-policy limit aborted") == []
    assert failed("policy {n} load aborted") == [12]
