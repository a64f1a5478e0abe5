"""Counts of each round beside running totals, and two counters of one flow: neither is balanced against what it is no part of."""

from __future__ import annotations

from pathlib import Path

from gyrecheck.commands.ledger_run import judge_text
from gyrecheck.model.finding import Severity, State
from gyrecheck.rulebook.codes import load_codes

LOGS = Path(__file__).parents[3] / "fixtures" / "logs"


def _lines(trained: int, rejected: int, ready: int) -> str:
    """Twenty rounds that train a constant number each, beside totals of what was let in and of what was turned away."""
    return "\n".join(
        f"round {n} trained {trained} | accepted {n * trained + ready} rejected {n * rejected} ready {ready} | version {n}"
        for n in range(1, 21)
    )


def test_a_number_that_stands_still_while_the_version_rises_is_of_each_round() -> None:
    """20 rounds of 64 are 1,280 trained; 1,280 + 100 waiting are the 1,380 let in, and the 40 turned away were never among them."""
    judged = judge_text(_lines(64, 2, 100), load_codes())
    taken, sampled = judged.accounts[0].taken, judged.accounts[0].sampled
    assert taken is not None and sampled is not None  # noqa: PT018 - both must be known
    assert (taken.name, taken.last, sampled.name, sampled.last) == ("trained", 1280, "accepted", 1380)
    assert [v.message for v in judged.verdicts if v.state is not State.HOLDS] == []


def test_a_total_that_stands_still_while_nothing_is_trained_stays_a_total() -> None:
    """Without a version that rises, 64 on every line is one batch of 64 and no more."""
    lines = "\n".join(f"tick {n}: sampled {64 + 10 * n} trained 64 queued {10 * n}" for n in range(1, 21))
    taken = judge_text(lines, load_codes()).accounts[0].taken
    assert taken is not None
    assert taken.last == 64


def test_what_is_lost_before_it_is_let_in_is_still_missing() -> None:
    """Of 50 sent a round 5 never come in: the counter of what came in does not stand for what was sent."""
    lines = "\n".join(f"round {n}: sampled {50 * n} accepted {45 * n} consumed {44 * n} waiting {n} version {n}" for n in range(1, 21))
    judged = judge_text(lines, load_codes())
    assert [v.quantity for v in judged.verdicts if v.code == "GYR507" and v.state is not State.HOLDS]


def test_drops_told_at_each_event_and_as_a_total_count_once() -> None:
    """1,185 over-age ones are told line by line and as a running total; counted twice, more would have left than came in."""
    judged = judge_text((LOGS / "legitimate" / "rejected-at-batch.log").read_text(encoding="utf-8"), load_codes())
    assert judged.accounts[0].dropped() == 1185
    assert judged.balances[0].residual == 0


def test_a_number_that_the_runs_own_steps_have_passed_is_not_its_length() -> None:
    """A warm-up of 8 steps is compared with the 60 steps of the run, not with 2 iterations over each batch."""
    text = "num_iterations=2 warmup_steps=8 max_steps=60\n" + "\n".join(f"step {n} loss 0.{n:02d}" for n in range(1, 21))
    assert not [v for v in judge_text(text, load_codes()).verdicts if v.code == "GYR514" and v.state is State.BROKEN]
    short = text.replace("max_steps=60", "max_steps=6").replace("num_iterations=2 ", "").split("step 7 ")[0]
    assert [v.value for v in judge_text(short, load_codes()).verdicts if v.code == "GYR514" and v.state is State.BROKEN] == [6]


def test_drops_for_two_reasons_stand_in_one_balance_whatever_part_names_them() -> None:
    """100 started a line are 80 consumed, 12 crashed and 8 evicted: what the store evicts is of the environment's episodes, too."""
    lines = [
        f"env/episodes_started={100 * n} learner/episodes_consumed={80 * n} env/episodes_crashed={12 * n} store/episodes_evicted={n * n // 4} "
        f"store/episodes_resident={8 * n - n * n // 4}"
        for n in range(1, 25)
    ]
    judged = judge_text("\n".join(lines), load_codes())
    assert judged.accounts[0].dropped() == 12 * 24 + 24 * 24 // 4
    assert judged.balances[0].residual == 0


def test_a_balance_that_closes_without_its_drops_is_at_most_a_warning() -> None:
    """10 sampled and 10 trained a line beside 3 dropped: those were never counted as sampled, or they are used all the same."""
    lines = [f"step {n}: sampled={10 * n + n // 3} trained={10 * n + n // 3} buffer_left=0 dropped={3 * n}" for n in range(1, 21)]
    found = [v for v in judge_text("\n".join(lines), load_codes()).verdicts if v.code == "GYR510"]
    assert [(v.value, v.severity) for v in found] == [(-60, Severity.WARNING)]


def test_totals_that_stand_still_at_the_end_stay_totals() -> None:
    """Twenty lines of 25 begun and 3 that threw, then forty on which nothing moves: 500 and 60, not the sum of all lines."""
    lines = [
        f"round {n} begun {min(25 * n, 500)} threw {min(3 * n, 60)} learned {min(19 * n, 380)} waiting {min(3 * n, 60)}"
        for n in range(1, 61)
    ]
    judged = judge_text("\n".join(lines), load_codes())
    assert judged.accounts[0].dropped() == 60
    assert judged.balances[0].residual == 0


def test_groups_without_spread_as_a_total_are_drops_where_they_close_the_balance() -> None:
    """30 groups sampled a step, 5 or 6 of them flat, the others trained: nothing is missing."""
    flat = [5 * n + n // 2 for n in range(1, 21)]
    lines = [f"step {n} groups_sampled={30 * n} groups_flat={f} groups_trained={30 * n - f}" for n, f in enumerate(flat, 1)]
    judged = judge_text("\n".join(lines), load_codes())
    assert judged.accounts[0].dropped("filter") == 110
    assert judged.balances[0].residual == 0
