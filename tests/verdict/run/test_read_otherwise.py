"""What closes outranks what is called: numbers are read another way only where that, and nothing else, makes the lines close."""

from __future__ import annotations

from gyrecheck.commands.ledger_run import judge_text
from gyrecheck.model.finding import State, Verdict
from gyrecheck.rulebook.codes import load_codes
from gyrecheck.verdict.judge import Judgement

FLAT = (0, 3, 4, 9, 11, 15, 16, 22)
"""What a filter has refused after each of eight steps."""


def _judged(rows: list[str]) -> Judgement:
    return judge_text("\n".join(rows) + "\n", load_codes())


def _balance(judged: Judgement) -> Verdict:
    return next(v for v in judged.verdicts if v.code in {"GYR507", "GYR510"})


def test_a_number_that_is_all_that_is_missing_is_a_drop() -> None:
    """30 sampled a step, 20 taken, `flat` refused, the rest lies there: with `flat` each of eight lines closes, and that is said."""
    rows = [f"finished={30 * i} trained={20 * i} stale=0 flat={f} ready={10 * i - f}" for i, f in enumerate(FLAT, 1)]
    judged = _judged(rows)
    verdict = _balance(judged)
    assert verdict.state is State.HOLDS
    assert "240 sampled" in verdict.message or "= 160 taken" in verdict.message
    assert any("`flat` is exactly what is missing" in note for note in judged.notes)


def test_what_is_lost_beside_such_a_number_is_still_lost() -> None:
    """The same run with 6 of what lies there gone from the fifth line on: no reading closes, 6 and more are unaccounted."""
    rows = [f"sampled={30 * i} trained={20 * i} dropped=0 filtered={f} ready={10 * i - f - 6 * (i > 4)}" for i, f in enumerate(FLAT, 1)]
    verdict = _balance(_judged(rows))
    assert (verdict.state, verdict.value) == (State.BROKEN, 6)
    assert verdict.first is not None
    assert verdict.first.line == 5


def test_of_two_counters_the_one_that_closes_is_what_was_sampled() -> None:
    """Actors tell what they sent in lines of their own, the learner what it got: 8 a step = 8 used + 0 stale + what waits."""
    rows = []
    for i in range(1, 9):
        rows += [f"actor-{a} sent {12 * i + a} unrolls" for a in range(3)]
        rows.append(f"learner upd {i} | recv {8 * i + i % 3} | used {8 * i} | stale 0 | queue {i % 3}")
    verdict = _balance(_judged(rows))
    assert verdict.state is State.HOLDS
    assert "66 sampled = 64 taken + 0 stale + 2 left" in verdict.message


def test_a_run_that_goes_back_to_a_save_keeps_its_running_totals() -> None:
    """Twenty rounds of 96, back to round 16 without a word, on to 24: 24 x 96 = 2,304 = 24 x 72 + 24 x 20 + 96 left."""
    rounds = [*range(1, 21), *range(17, 25)]
    rows = [f"round {r} | issued {96 * r} | fitted {72 * r} | shelved {4 * r} | discarded {20 * r}" for r in rounds]
    verdict = _balance(_judged(rows))
    assert verdict.state is State.HOLDS
    assert "2,304 sampled = 1,728 taken + 480 dropped + 96 left" in verdict.message


def test_a_level_of_the_first_line_is_no_level_of_the_run() -> None:
    """A sentence before the first count says 80 lie there; the lines after it tell none, so what is left is not known to be 80."""
    rows = ["start: 80 held back from before", *[f"issued={96 * r} fitted={72 * r} discarded={20 * r}" for r in range(1, 9)]]
    verdict = _balance(_judged(rows))
    assert verdict.state is not State.BROKEN


def test_an_even_loss_is_not_explained_by_a_number_that_is_counted_up() -> None:
    """One of eight is lost on each of twelve lines, and `step`, `policy_version` and `updates` happen to say as many: 12 are lost."""
    rows = [
        f"step={i} sampled_total={8 * i} taken_total={7 * i} dropped_stale_total=0 buffer_left=0 policy_version={i} updates={i}"
        for i in range(1, 13)
    ]
    verdict = _balance(_judged(rows))
    assert (verdict.state, verdict.value) == (State.BROKEN, 12)


def test_versions_and_steps_are_no_drops() -> None:
    """What is missing is uneven and `policy_version` happens to say as many on each line: 22 are lost all the same."""
    rows = [f"sampled={30 * i} trained={20 * i} dropped=0 left={10 * i - f} policy_version={f}" for i, f in enumerate(FLAT, 1)]
    assert not any("exactly what is missing" in note for note in _judged(rows).notes)


def test_a_total_that_goes_back_once_is_a_total_without_a_balance_too() -> None:
    """The same way back where nothing tells what is left: 24 x 96 were issued, not the sum of all readings."""
    rounds = [*range(1, 21), *range(17, 25)]
    (account, *_) = _judged([f"round {r} issued={96 * r} fitted={72 * r}" for r in rounds]).accounts
    assert account.sampled is not None
    assert account.sampled.last == 2304


def test_the_screen_shows_a_residual_of_nothing_where_no_drop_is_counted() -> None:
    """8 a line sampled and taken, none left: the residual is 0; with one a line missing it is not known whether they were dropped."""
    from gyrecheck.screen.build import balance_rows

    for taken, shown in ((8, 0.0), (7, None)):
        judged = _judged([f"sampled_total={8 * i} taken_total={taken * i} buffer_left=0" for i in range(1, 9)])
        assert balance_rows(judged, None)[-1].value == shown
