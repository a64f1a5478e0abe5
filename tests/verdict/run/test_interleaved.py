"""Several processes under one name: told apart by their ids they add up, without ids their sum is not known."""

from __future__ import annotations

import random

import pytest

from gyrecheck.commands.ledger_run import judge_text
from gyrecheck.model.finding import State
from gyrecheck.rulebook.codes import load_codes


def _states(prefix: str, name: str, *, shuffled: bool = False) -> set[tuple[str, State]]:
    """24 rounds of three actors that sample 10, 11 and 12 a round; of the 33 a round four wait at first and at last."""
    draw, lines = random.Random(5), []
    for n in range(1, 25):
        turns = [prefix.format(a=a, pid=4711 + a) + f" {name}={(10 + a) * n}" for a in range(3)]
        if shuffled:
            draw.shuffle(turns)
        lines += [*turns, f"[learner] taken_total={33 * n - 4} buffer_left=4"]
    return {(v.code, v.state) for v in judge_text("\n".join(lines), load_codes()).verdicts if v.code in {"GYR507", "GYR510"}}


@pytest.mark.parametrize("name", ["sampled_total", "sampled"])
@pytest.mark.parametrize("prefix", ["[actor-{a} {pid}]", "[actor {a}]", "[rank{a}]:", "actor_{a}:"])
def test_totals_that_take_turns_are_undecided(prefix: str, name: str) -> None:
    """Their values fall on a third of all lines, and each is below all that come three readings later."""
    assert _states(prefix, name) == {("GYR507", State.UNDECIDED)}
    assert _states(prefix, name, shuffled=True) == {("GYR507", State.UNDECIDED)}


def test_with_process_ids_they_add_up() -> None:
    """3 actors' last totals are 240, 264 and 288: 792 sampled, 788 taken, 4 left."""
    assert _states("(Actor pid={pid})", "sampled_total") == {("GYR507", State.HOLDS)}


def test_counts_of_each_round_that_grow_are_no_totals_in_turn() -> None:
    """Counts that wander upwards by chance fall below earlier ones again and again, however far apart."""
    draw = random.Random(3)
    counts = [draw.randint(10 + n, 40 + 3 * n) for n in range(60)]
    lines = [f"round {n}: sampled={made} taken={made} queue=0" for n, made in enumerate(counts)]
    found = {(v.code, v.state) for v in judge_text("\n".join(lines), load_codes()).verdicts if v.code == "GYR507"}
    assert found == {("GYR507", State.HOLDS)}
