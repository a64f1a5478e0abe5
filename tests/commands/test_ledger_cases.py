"""Small logs after public defect reports: each fault is found with its quantity and line, each near-miss stays silent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from gyrecheck.commands.ledger_run import Request, compared, ledger_of
from gyrecheck.model.finding import Report, Severity, State, Verdict
from gyrecheck.rulebook.codes import load_codes

CASES = Path(__file__).parents[2] / "fixtures" / "logs" / "cases"


@dataclass(frozen=True)
class Expected:
    """What a right answer holds: code, quantity, value, and a line that it names."""

    case: str
    code: str
    quantity: str
    value: object
    line: int
    severity: Severity


FOUND = (
    Expected("027-gap-climbs-and-resets-on-restart", "GYR417", "logp_gap_mean", 0.083, 14, Severity.ERROR),
    Expected("035-held-back-samples-lost-on-resume", "GYR507", "unaccounted", 384, 10, Severity.ERROR),
    Expected("039-stale-drops-pin-resume-cursor", "GYR512", "resume_cursor", 40, 1, Severity.ERROR),
    Expected("062-trained-counter-stays-zero", "GYR503", "env_steps_trained", 0, 1, Severity.WARNING),
    Expected("064-three-quarters-filtered", "GYR511", "dropped_filter_share", 0.7517, 1, Severity.WARNING),
    Expected("065-waits-for-policy-that-never-comes", "GYR515", "in_flight", 133, 12, Severity.ERROR),
    Expected("068-all-groups-flat", "GYR516", "flat_groups", 1, 1, Severity.ERROR),
    Expected("074-capacity-below-learning-start", "GYR513", "overwritten_before_first_update", 72000, 10, Severity.ERROR),
    Expected("074-capacity-below-learning-start", "GYR514", "replay capacity", 8000, 1, Severity.ERROR),
)


def _report(case: str, name: str, **options: object) -> Report:
    return ledger_of(Request((str(CASES / case / name),), **options), load_codes())  # type: ignore[arg-type]


def _broken(report: Report) -> dict[str, Verdict]:
    return {v.code: v for v in report.verdicts if v.state is State.BROKEN}


@pytest.mark.parametrize("expected", FOUND, ids=lambda e: f"{e.case[:3]}-{e.code}")
def test_fault_is_found(expected: Expected) -> None:
    """The verdict has the right code, quantity, value and severity, and names the right line, with no mapping given."""
    found = _broken(_report(expected.case, "input.log"))
    assert expected.code in found, list(found)
    verdict = found[expected.code]
    assert (verdict.quantity, verdict.value, verdict.severity) == (expected.quantity, expected.value, expected.severity)
    assert expected.line in {verdict.first.line if verdict.first else 0, *(e.line for e in verdict.evidence)}


@pytest.mark.parametrize("case", sorted({e.case for e in FOUND}))
def test_near_miss_stays_silent(case: str) -> None:
    """The legitimate twin has no broken verdict above a note."""
    assert [v.code for v in _broken(_report(case, "clean.log")).values() if v.severity is not Severity.NOTE] == []


@pytest.mark.parametrize(
    ("case", "mapping", "code", "value"),
    [
        (
            "035-held-back-samples-lost-on-resume",
            (("sampled_total", "generated"), ("taken", "trained"), ("buffer_left", "held_back")),
            "GYR507",
            384,
        ),
        (
            "064-three-quarters-filtered",
            (("sampled_total", "rollouts in"), ("dropped_filter", "removed"), ("taken", "to trainer")),
            "GYR511",
            0.7517,
        ),
    ],
)
def test_mapping_gives_the_same(case: str, mapping: tuple[tuple[str, str], ...], code: str, value: object) -> None:
    """Naming the keys by hand, with spaces in them, leads to the same verdict."""
    assert _broken(_report(case, "input.log", mapping=mapping))[code].value == value


def test_filtered_share_is_no_gap() -> None:
    """What is removed and accounted for (128 = 98 + 30) is no conservation gap, and `marked` is not the number subtracted."""
    verdicts = {v.code: v for v in _report("064-three-quarters-filtered", "input.log").verdicts}
    assert verdicts["GYR507"].state is State.HOLDS
    assert "1,732 of 2,304" in verdicts["GYR511"].message


def test_unwired_counter_is_said_to_be_possible() -> None:
    """A counter that stays 0 may be a counter that nobody wired: the verdict says that the log alone cannot tell."""
    assert "cannot tell" in _broken(_report("062-trained-counter-stays-zero", "input.log"))["GYR503"].message


@pytest.mark.parametrize("order", [("input_lag0.log", "input_lag3.log"), ("input_lag3.log", "input_lag0.log")])
def test_lag_destabilises_whatever_the_order(order: tuple[str, str]) -> None:
    """Of two runs the one at lag 3 diverges: 0.0009 to 0.0268 is 29.8 times, in either order of the arguments."""
    folder = CASES / "078-uniform-lag-destabilises"
    report = compared(Request(tuple(str(folder / name) for name in order)), load_codes())
    verdict = _broken(report)["GYR418"]
    assert verdict.quantity == "sampler_trainer_kl"
    assert verdict.value == 0.0268
    assert "29.8 times in input_lag3.log" in verdict.message
    assert "these two runs only" in verdict.message
    assert any("0 dropped, 48 under way, constant" in text for text in report.sentences)


def test_mild_lag_does_not() -> None:
    """A run at lag 1 that behaves like its control gives no difference."""
    folder = CASES / "078-uniform-lag-destabilises"
    report = compared(Request((str(folder / "clean_lag0.log"), str(folder / "clean_lag1.log"))), load_codes())
    assert _broken(report) == {}


def test_levels_and_shares_that_differ_are_said(tmp_path: Path) -> None:
    """Reward 1 against 9 and 0% against 50% dropped at every step are said, stand in the table, and are no fault by themselves."""
    for name, reward, dropped in (("a", 1, 0), ("b", 9, 32)):
        lines = [
            f"iter {n}: sampled_total={64 * n} dropped_stale={dropped * n} taken={(64 - dropped) * n} buffer_left=0 reward={reward} loss=0.{n}"
            for n in range(1, 9)
        ]
        (tmp_path / f"{name}.log").write_text("\n".join(lines) + "\n")
    report = compared(Request((str(tmp_path / "a.log"), str(tmp_path / "b.log"))), load_codes())
    said = next(v for v in report.verdicts if v.code == "GYR418")
    assert (said.state, said.value) == (State.HOLDS, 3)
    assert "`reward` 1 against 9, `taken of sampled` 100% against 50%, `dropped of sampled` 0% against 50%; that alone" in said.message
    assert "loss" not in said.message
    assert ("", "B", "0.5", "0.5", "0.5", "0.5", "0.5") in report.tables["compare"].rows
    assert report.summary.startswith("3 differences in level")
    same = compared(Request((str(tmp_path / "a.log"), str(tmp_path / "a.log"))), load_codes())
    assert "do not part" in same.verdicts[0].message


@pytest.mark.parametrize("term", ["dropped_cancelled", "dropped_other"])
def test_what_is_cancelled_in_flight_was_never_among_the_finished(term: str) -> None:
    """Of 12,196 finished 11,834 are scored and 320 stale; 42 lie in open groups. With 281 cancelled ones more would have left than came."""
    path = CASES.parent / "unseen" / "groups-never-fill" / "clean.log"
    keys = (("sampled_total", "completions"), ("taken", "scored"), (term, "cancelled_in_flight"), ("in_flight", "open_groups"))
    verdicts = ledger_of(Request((str(path),), mapping=keys), load_codes()).verdicts
    assert [v.message for v in verdicts if v.state is State.BROKEN] == []
    assert "together would need to be 42" in next(v.message for v in verdicts if v.code == "GYR507")
