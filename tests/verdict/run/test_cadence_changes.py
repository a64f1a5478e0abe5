"""Copies into the target network: as many as their interval says, before a load as after it."""

from __future__ import annotations

from collections.abc import Callable

from gyrecheck.commands.ledger_run import judge_text
from gyrecheck.model.finding import State
from gyrecheck.rulebook.codes import load_codes


def _found(
    copies: Callable[[int], int], interval: int = 8000, updates: Callable[[int], int] = lambda n: 4000 * n, envs: int = 8
) -> list[tuple[str, object]]:
    """Twelve readings, 16,000 steps of the environment apart, of `envs` that are stepped at once."""
    lines = [f"target_update_interval={interval} train_freq=4 num_envs={envs}"]
    lines += [f"total_timesteps={16000 * n} n_updates={updates(n)} target_copies={copies(n)}" for n in range(1, 13)]
    judged = judge_text("\n".join(lines), load_codes())
    return [
        (v.quantity, v.value) for v in judged.verdicts if v.code == "GYR509" and v.quantity == "target_copies" and v.state is State.BROKEN
    ]


def test_a_pace_that_changes_in_mid_run_is_named() -> None:
    """Two copies in 16,000 steps up to the sixth reading and 16 from then on; half as many is a change, too."""
    assert _found(lambda n: 2 * n if n <= 6 else 12 + 16 * (n - 6)) == [("target_copies", 16)]
    assert _found(lambda n: 8 * n if n <= 6 else 48 + 2 * (n - 6), interval=2000) == [("target_copies", 2)]


def test_one_copy_more_or_less_is_no_change() -> None:
    """An interval of 10,000 gives one copy in some windows and two in others."""
    assert _found(lambda n: 16000 * n // 10000, interval=10000) == []
    assert _found(lambda n: (16000 * n + 9000) // 10000, interval=10000) == []
    assert _found(lambda n: n if n < 7 else 6 + 2 * (n - 6), interval=16000) == [("target_copies", 2)]


def test_copies_that_follow_the_updates_are_left_alone() -> None:
    """From the seventh reading on there are four times the updates, and four times the copies: one in 1,000 updates all along."""
    updates: Callable[[int], int] = lambda n: 4000 * n if n <= 6 else 24000 + 16000 * (n - 6)  # noqa: E731
    assert _found(lambda n: updates(n) // 1000, interval=1000, updates=updates) == []


def test_more_copies_than_the_interval_leaves_room_for() -> None:
    """192,000 steps and 48,000 updates have room for 24 copies at 8,000 steps; at 192 the interval was divided by eight once more."""
    assert _found(lambda n: 16 * n) == [("target_copies", 192)]
    assert _found(lambda n: 2 * n) == []
    assert _found(lambda n: 16 * n, envs=1) == []  # eight frames to a step of the agent, as far as the log says
    assert _found(lambda n: 4 * n, interval=1000) == []  # one in 1,000 updates
