"""The ledger's arithmetic: totals do not depend on order between processes or on cuts into files; the gap's line and size are exact."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gyrecheck.commands.ledger_run import Request, judge_paths, judge_text
from gyrecheck.model.events import Event, Source, Unit
from gyrecheck.model.finding import Severity, State, Verdict
from gyrecheck.rulebook.codes import load_codes
from gyrecheck.verdict.judge import Judgement, judge
from gyrecheck.verdict.series_tally import LIMIT
from gyrecheck.verdict.tally import Tally

CODES = load_codes()


def _judged(text: str, **options: str) -> Judgement:
    return judge_text(text, CODES, **options)


def _one(text: str, code: str) -> Verdict:
    return next(v for v in _judged(text).verdicts if v.code == code)


def _log(rows: list[str]) -> str:
    return "\n".join(rows) + "\n"


def _balanced(lines: int) -> list[str]:
    return [f"generated={256 * i} trained={192 * i} dropped=0 held_back={64 * i}" for i in range(1, lines + 1)]


def test_gap_has_its_line_size_and_term() -> None:
    """A buffer of 4 x 64 = 256 that is empty at line 5 leaves 256 unaccounted from line 5 on, and the term that fell is named."""
    rows = _balanced(4) + [f"generated={256 * i} trained={192 * i} dropped=0 held_back={64 * (i - 4)}" for i in range(5, 9)]
    verdict = _one(_log(rows), "GYR507")
    assert (verdict.state, verdict.value) == (State.BROKEN, 256)
    assert verdict.first is not None
    assert verdict.first.line == 5
    assert "`held_back` fell from 256 to 64" in verdict.message


def test_counts_per_step_and_running_totals_are_told_apart() -> None:
    """The same run printed per step or as totals holds both times: 3 x 100 = 3 x 80 + 3 x 10 + 30."""
    per_step = _log(
        ["sampled=100 taken=80 stale=10 left=10", "sampled=100 taken=81 stale=9 left=20", "sampled=100 taken=79 stale=11 left=30"]
    )
    totals = _log(
        ["sampled=100 taken=80 stale=10 left=10", "sampled=200 taken=161 stale=19 left=20", "sampled=300 taken=240 stale=30 left=30"]
    )
    for text in (per_step, totals):
        verdict = _one(text, "GYR507")
        assert verdict.state is State.HOLDS
        assert "300 sampled = 240 taken + 30 stale + 30 left" in verdict.message


def test_negative_gap_is_used_twice() -> None:
    """500 sampled, 540 taken, 20 left: 60 more left the ledger than came in."""
    rows = [f"sampled={100 * i} taken={100 * i - 20 + 20 * max(0, i - 2)} dropped_stale=0 left=20" for i in range(1, 6)]
    verdict = _one(_log(rows), "GYR510")
    assert verdict.value == -60
    assert verdict.first is not None
    assert verdict.first.line == 3


def test_a_use_told_again_is_no_half_cycle() -> None:
    """3 sampled and 3 taken close; 3 more taken of the same 3 sampled is a use twice, not a cycle that the log cuts."""
    verdict = _one(_log(["sampled_total=3", "taken=3"] * 2), "GYR510")
    assert (verdict.state, verdict.value) == (State.BROKEN, -3)


def test_missing_term_is_undecided_with_the_value_it_needs() -> None:
    """48,320 - 41,984 - 5,120 = 1,216 would have to be left."""
    rows = [f"sampled={s} taken={t} dropped_stale={d}" for s, t, d in ((24000, 20000, 2500), (48320, 41984, 5120))]
    verdict = _one(_log(rows), "GYR507")
    assert (verdict.state, verdict.quantity, verdict.value) == (State.UNDECIDED, "left", 1216)


@pytest.mark.parametrize(("updates", "severity"), [(40, Severity.WARNING), (60, Severity.ERROR)])
def test_a_version_that_never_came_may_be_rare_in_a_short_log(updates: int, severity: Severity) -> None:
    """One version over 40 updates is a warning, since nobody knows how often one is due; over 60 (from 50 on) an error."""
    verdict = _one(_log([f"update={i} taken={8 * i} sampled={8 * i} left=0 policy_version=0" for i in range(1, updates + 2)]), "GYR403")
    assert (verdict.state, verdict.severity) == (State.BROKEN, severity)


def test_units_never_mix() -> None:
    """100 trajectories sampled and 3,200 steps taken are no balance."""
    text = _log([f"trajectories_sampled={100 * i} steps_taken={3200 * i} left=0" for i in range(1, 6)])
    assert [v for v in _judged(text).verdicts if v.code in {"GYR507", "GYR510"} and v.state is State.BROKEN] == []


def test_lines_of_one_cycle_are_no_gap() -> None:
    """`100 in` on one line and `100 taken` on the next close at the end of each cycle, wherever the log ends."""
    rows = [row for i in range(1, 6) for row in (f"step {i}: 100 rollouts in", f"step {i}: 90 consumed, 10 expired")]
    for end in (10, 9):
        assert _one(_log(rows[:end]), "GYR507").state is State.HOLDS


def test_two_runs_in_one_log_are_balanced_apart() -> None:
    """Where all counters begin anew another run begins; what the first left is no loss of the second."""
    rows = [f"iter {i}: generated={100 * i} trained={100 * i - 20} dropped=0 held_back=20" for i in (*range(1, 8), *range(1, 6))]
    judged = _judged(_log(rows))
    assert [v.state for v in judged.verdicts if v.code == "GYR507"] == [State.HOLDS, State.HOLDS]
    assert any("line 8" in note for note in judged.notes)


def test_one_side_restarted_goes_on_counting() -> None:
    """A sampler that restarts from 0 at 500 and reaches 500 again has sampled 1,000."""
    rows = [f"generated={100 * (i if i <= 5 else i - 5)} trained={90 * i} dropped=0 held_back={10 * i}" for i in range(1, 11)]
    verdict = _one(_log(rows), "GYR507")
    assert verdict.state is State.HOLDS
    assert "1,000 sampled" in verdict.message


def test_suppressed_lines_leave_the_balance_open() -> None:
    """After `[repeated 7x across cluster]` on a counted line nothing is said to hold or to be lost."""
    rows = [f"(R pid=1) sampled_total={64 * i}\n(T pid=2) dropped_stale=0 taken=64 buffer_left=0" for i in range(1, 5)]
    rows.append("(T pid=2) dropped_stale=0 taken=64 buffer_left=0 [repeated 7x across cluster]")
    verdict = _one(_log(rows), "GYR507")
    assert verdict.state is State.UNDECIDED
    assert "left out 7 lines" in verdict.message


def test_given_left_closes_the_balance() -> None:
    """With --left 1216 the balance above holds."""
    rows = [f"sampled={s} taken={t} dropped_stale={d}" for s, t, d in ((24000, 20000, 2500), (48320, 41984, 5120))]
    tally = Tally()
    from gyrecheck.stream.logs import read_sample

    tally.feed(read_sample(_log(rows), None))
    judged = judge(tally.snapshot(), CODES, left=1216)
    assert next(v for v in judged.verdicts if v.code == "GYR507").state is State.HOLDS


def test_throttled_producer_is_no_fault() -> None:
    """A full queue that holds sampling back is a note that holds, and no warning."""
    rows = [
        row
        for i in range(1, 9)
        for row in ("queue full, rollout workers paused", f"step {i} produced {64 * i + 256} consumed {64 * i} queued 256 dropped 0")
    ]
    judged = _judged(_log(rows))
    assert [v for v in judged.verdicts if v.state is State.BROKEN] == []
    assert any(v.code == "GYR519" and v.severity is Severity.NOTE for v in judged.verdicts)


def test_ladder_skips_below_the_first_failing_rung() -> None:
    """With 384 sampled and none consumed, train steps are skipped; the first failing cause ends the causes."""
    rows = [f"sampled={64 * i} consumed=0 dropped_stale={64 * i - 2} left=2 updates=0 max_age=0 lag=1" for i in range(1, 7)]
    verdict = _one(_log(rows), "GYR503")
    states = [step.state for step in verdict.steps]
    assert states[:3] == ["pass", "FAIL", "skipped"]
    assert states[5] == "FAIL"
    assert states[6] == "skipped"


@pytest.mark.parametrize("topology", ["decoupled", "synchronous"])
def test_coupling_is_no_fault_of_a_synchronous_loop(topology: str) -> None:
    """60 strict turns alarm where two sides are claimed, and not where none are."""
    text = _log([row for i in range(1, 61) for row in (f"sample_call n={i} args=", f"update_call n={i}")])
    found = [v for v in _judged(text, topology=topology).verdicts if v.code == "GYR501"]
    assert [v.state for v in found] == ([State.BROKEN] if topology == "decoupled" else [])


def test_events_of_a_hook_are_judged_like_lines() -> None:
    """The same counts as events and as lines give the same verdict: 300 = 200 + 60 + 40."""
    tally = Tally()
    for i in (1, 2, 3):
        source = Source("shard", i)
        for kind, value in (("sampled", 100.0 * i), ("taken", 200.0 * i / 3), ("dropped_stale", 20.0 * i), ("left", 40.0 * i / 3)):
            tally.feed_events([Event(kind, value, Unit.TRAJECTORY, cumulative=True, pid=4, source=source)])
    verdict = next(v for v in judge(tally.snapshot(), CODES).verdicts if v.code == "GYR507")
    assert verdict.state is State.HOLDS
    assert "300 sampled = 200 taken + 60 stale + 40 left" in verdict.message


def test_history_is_thinned_and_totals_stay_exact() -> None:
    """Of 100,000 readings at most 32,768 are kept, the last always, and sum, first and last are exact."""
    tally = Tally()
    number = 100_000
    tally.feed_events(Event("taken", 3.0, Unit.TRAJECTORY, source=Source("s", i)) for i in range(1, number + 1))
    (series,) = tally.snapshot().series
    assert (series.count, series.total) == (number, 3.0 * number)
    assert len(series) <= LIMIT
    assert series.lines[-1] == number
    assert series.totals[-1] == 3.0 * number


ROWS = st.lists(st.tuples(st.integers(1, 90), st.integers(0, 30)), min_size=3, max_size=12)


@settings(max_examples=40, deadline=None)
@given(ROWS, st.randoms(use_true_random=False))
def test_any_interleaving_gives_the_same_totals(rows: list[tuple[int, int]], random: object) -> None:
    """However the lines of two processes lie between each other, what each counted is the same."""
    rows = [*rows, (95, 31), (1, 0)]  # a fall, so that these can only be counts per step
    sampler = [f"(Sampler pid=1) sampled_total={100 * i}" for i in range(1, len(rows) + 1)]
    trainer = [f"(Trainer pid=2) dropped_stale={d} taken={t} buffer_left=0" for t, d in rows]
    picks = [0] * len(sampler) + [1] * len(trainer)
    random.shuffle(picks)  # type: ignore[attr-defined]
    sources = [iter(sampler), iter(trainer)]
    mixed = _judged(_log([next(sources[p]) for p in picks])).run
    straight = _judged(_log([*sampler, *trainer])).run
    assert mixed.sampled is not None
    assert straight.sampled is not None
    assert mixed.taken is not None
    assert (mixed.sampled.last, mixed.taken.last) == (straight.sampled.last, sum(t for t, _ in rows))


@settings(max_examples=25, deadline=None)
@given(cuts=st.lists(st.integers(1, 11), max_size=3), loss=st.integers(0, 1))
def test_any_cut_into_files_gives_the_same_verdict(cuts: list[int], loss: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A log cut at any lines into a rotated set has the same verdicts, values and sizes as in one piece."""
    rows = [f"generated={256 * i} trained={192 * i} dropped=0 held_back={64 * i - (64 * 6 if loss and i > 6 else 0)}" for i in range(1, 13)]
    folder = tmp_path_factory.mktemp("cut")
    edges = [0, *sorted(set(cuts)), 12]
    paths = []
    for at in range(len(edges) - 1):
        number = len(edges) - 2 - at
        path = folder / ("train.log" if number == 0 else f"train.log.{number}")
        path.write_text(_log(rows[edges[at] : edges[at + 1]]))
        paths.append(str(path))
    judged, _, _ = judge_paths(Request(tuple(paths)), CODES)
    whole = _judged(_log(rows))
    assert [(v.code, v.state, v.value) for v in judged.verdicts] == [(v.code, v.state, v.value) for v in whole.verdicts]


def test_joined_tallies_count_like_one(tmp_path: Path) -> None:
    """Two tallies of a log's halves, joined, give the snapshot of the whole."""
    from gyrecheck.stream.logs import read_sample

    readings = read_sample(_log(_balanced(10)), None)
    whole, first, second = Tally(), Tally(), Tally()
    whole.feed(readings)
    first.feed(readings[:4])
    second.feed(readings[4:])
    first.absorb(second)
    one, other = whole.snapshot(), first.snapshot()
    assert [(s.name, s.count, s.total, s.last, s.rises, list(s.orders), list(s.totals)) for s in one.series] == [
        (s.name, s.count, s.total, s.last, s.rises, list(s.orders), list(s.totals)) for s in other.series
    ]
