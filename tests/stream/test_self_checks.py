"""What a program measured of itself is told from its words: which number must be 0, which 1, and which is something else."""

from __future__ import annotations

import pytest

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.live import HookedRun, HookEvent, Measured, ProcessCounts
from gyrecheck.rulebook.codes import load_codes
from gyrecheck.rulebook.hook_table import load_hook_table
from gyrecheck.rulebook.thresholds import load_thresholds
from gyrecheck.stream.self_checks import read_measured
from gyrecheck.verdict.ruling import Docket, Rules
from gyrecheck.verdict.self_checks import judge_self_checks


def read(path, text):
    """What a log of this text says of itself."""
    checks = load_hook_table().self_checks
    path.write_text(text + "\n")
    return list(read_measured(path, checks.zero, checks.one, checks.zero_first, checks.never))


@pytest.mark.parametrize(
    ("text", "must", "values"),
    [
        ("first_pass_gap=0.31", 0, (0.31,)),
        ("{'round': 2, 'first_pass_gap': 0.31, 'loss': 0.2}", 0, (0.31,)),
        ("FIRST PASS GAP 0.000 1.216 1.461", 0, (0.0, 1.216, 1.461)),
        ("ratio off one before the first step of each round: [0.65, 7.5]", 0, (0.65, 7.5)),
        ("first minibatch: ratio deviation 0.31", 0, (0.31,)),
        ("round 3 | first-pass |ratio-1| 0.3", 0, (0.3,)),
        ("mean |ratio - 1| on the first pass: 0.12", 0, (0.12,)),
        ("logp diff before the update: 0.41", 0, (0.41,)),
        ("probability ratio gap at first step 0.2", 0, (0.2,)),
        ("firstPassKL=0.2", 0, (0.2,)),
        ("replayed logprob gap: 0.2, 0.3", 0, (0.2, 0.3)),
        ("first_pass_ratio_mean=1.214", 1, (1.214,)),
        ("ratio before the first update = 1.31", 1, (1.31,)),
    ],
)
def test_the_words_say_what_a_number_must_be(text, must, values, tmp_path):
    """Names and phrases of first pass, replay and ratio are understood in any order, case and joining."""
    assert [(m.must, m.first, m.values) for m in read(tmp_path / "log", text)] == [(must, False, values)]


@pytest.mark.parametrize(
    "text",
    [
        "first_pass_gap_limit=0.05",
        "first pass took 0.31 s",
        "the gap before the first pass was measured on 64 rows",
        "time before first pass: 0.31 s",
        "first pass kept ratio 0.83",
        "ratio after first pass 1.3",
        "first_step_clip_ratio: 0.31",
        "reward gap first pass 0.4",
        "first pass 3 of 4, ratio 0.98",
        "duality gap, first pass 0.9",
        "first pass difficulty 0.4",
        "first pass ratio rows: 12 14",
        "first_pass_gap 31%",
    ],
)
def test_other_numbers_beside_the_same_words_say_nothing(text, tmp_path):
    """Limits, times, counts, shares and other quantities are not taken for the ratio or the gap."""
    assert read(tmp_path / "log", text) == []


def run(steps: int, *events: HookEvent) -> HookedRun:
    """A process that made this many optimizer steps."""
    return HookedRun("", (ProcessCounts("", 1, 0, "", "", "", "", 0.0, {"optimizer_steps": steps, "update_calls": steps}),), events)


def found(measured: list[Measured], hooked: HookedRun):
    """The verdicts over these measurements."""
    docket = Docket(Rules(load_codes(), load_thresholds(), "synchronous", None))
    judge_self_checks(measured, 0.02, docket, hooked)
    return [(v.code, v.severity, v.value) for v in docket.verdicts if v.state is State.BROKEN]


def test_the_first_of_a_rounds_values_counts_where_each_had_a_step(tmp_path):
    """Two rounds of three values and six steps: 0.4 stood before any step. With twelve steps a value is a mean over several."""
    measured = read(tmp_path / "log", "ratio_off per pass: 0.4 0.6 0.7\nratio_off per pass: 0.0 0.6 0.7")
    assert [(m.first, m.values[0]) for m in measured] == [(True, 0.4), (True, 0.0)]
    assert found(measured, run(6)) == [("GYR402", Severity.ERROR, 0.4)]
    assert found(measured, run(12)) == []
    assert found(measured[1:], run(3)) == []


def test_a_ratio_must_be_one(tmp_path):
    """A mean ratio of 1.004 lies within the tolerance of 0.02, 0.9 does not."""
    assert found(read(tmp_path / "log", "first_pass_ratio=1.004"), run(3)) == []
    assert found(read(tmp_path / "log", "first_pass_ratio=0.9"), run(3)) == [("GYR402", Severity.ERROR, 0.9)]


def test_a_gap_is_no_fault_where_older_weights_act(tmp_path):
    """A copy that is behind the trained network by intention has a gap at its first pass: a note; what is replayed must still agree."""
    behind = HookEvent("phase", 0.0, 1, "", 1, {"version": 4, "differ": 2})
    assert found(read(tmp_path / "log", "first_pass_gap=0.3"), run(3, behind)) == [("GYR402", Severity.NOTE, 0.3)]
    assert found(read(tmp_path / "log", "replay_gap=0.3"), run(3, behind)) == [("GYR402", Severity.ERROR, 0.3)]
