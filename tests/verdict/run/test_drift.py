"""A base line that climbs under spikes is a climb; spikes over a level base line are none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gyrecheck.commands.ledger_run import judge_text
from gyrecheck.model.finding import State
from gyrecheck.rulebook.codes import load_codes
from gyrecheck.verdict.drift import base_line


def _found(name: str, value: Callable[[int], float], age: Callable[[int], int] = lambda _: 0) -> list[tuple[str, object]]:
    """Forty readings with spikes at the 11th, 27th and 28th."""
    spike = {11: 0.3, 27: 0.2, 28: 0.1}
    lines = [f"step {n} trained 64 {name} {value(n) + spike.get(n, 0):.4f} staleness_mean {age(n)} loss 0.1" for n in range(1, 41)]
    judged = judge_text("\n".join(lines), load_codes())
    return [(v.quantity, v.value) for v in judged.verdicts if v.code == "GYR417" and v.state is State.BROKEN]


def test_a_base_line_is_not_moved_by_one_or_two_readings() -> None:
    """Of 1, 9, 1, 2, 2, 8, 2 the medians of five are 2, 2, 2, 2, 2, 2, 2 at the end and 2 at the start."""
    assert base_line([1, 9, 1, 2, 2, 8, 2]) == [2, 2, 2, 2, 2, 2, 2]


@pytest.mark.parametrize("name", ["token_mult_prob_error", "train/mult_logprob_error", "multiplicative_prob_error"])
def test_a_multiplicative_error_is_measured_from_one(name: str) -> None:
    """From 1.014 to 1.092 it climbs sixfold; from 1.014 to 1.045 threefold, which engines of other kernels reach, too."""
    assert _found(name, lambda n: 1.012 + 0.002 * n) == [(name, 1.092)]
    assert _found(name, lambda n: 1.005 + 0.001 * n) == []
    assert _found(name, lambda n: 1.012 + 0.001 * (n % 3)) == []


def test_a_gap_is_measured_from_zero() -> None:
    """From 0.0038 to 0.035; a level gap with the same spikes, and one that comes back, are left alone."""
    assert _found("logprob_gap", lambda n: 0.003 + 0.0008 * n) == [("logprob_gap", 0.035)]
    assert _found("logprob_gap", lambda n: 0.003 + 0.0002 * (n % 3)) == []
    assert _found("logprob_gap", lambda n: 0.003 + 0.0008 * min(n, 40 - n)) == []


def test_a_gap_that_grows_with_the_age_of_the_data_is_no_drift() -> None:
    """Data that is up to eight versions old is further away than fresh data."""
    assert _found("logprob_gap", lambda n: 0.003 + 0.0008 * n, age=lambda n: n // 5) == []
