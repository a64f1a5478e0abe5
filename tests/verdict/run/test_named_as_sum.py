"""A gap that two numbers nobody understood make up, on the first line as on the last, is no loss."""

from __future__ import annotations

from gyrecheck.commands.ledger_run import judge_text
from gyrecheck.model.finding import State
from gyrecheck.rulebook.codes import load_codes


def _states(flumped: int) -> set[State]:
    """Twenty ticks: 40 started, 31 trained, and `flumped` a tick of which the log does not say what they are, beside 20 that are under way."""
    lines = [
        f"tick {n}: started={40 * n + 20} trained={31 * n} waiting={n} flumped={flumped * n} quib={20 + (8 - flumped if n == 1 else 0)}"
        for n in range(1, 21)
    ]
    return {v.state for v in judge_text("\n".join(lines), load_codes()).verdicts if v.code == "GYR507"}


def test_two_numbers_that_make_up_the_gap_leave_it_undecided() -> None:
    """820 started, 620 trained, 20 waiting: 180 are 160 flumped with 20 others."""
    assert _states(8) == {State.UNDECIDED}


def test_numbers_that_make_it_up_on_one_line_only_do_not() -> None:
    """With 5 flumped a tick it fits on the first line and not on the last: 60 are lost."""
    assert _states(5) == {State.BROKEN}
