"""Limits in the log's own unit, and what a log lacks, said in full."""

from __future__ import annotations

import pytest

from gyrecheck.commands.ledger_run import judge_text
from gyrecheck.model.finding import State
from gyrecheck.rulebook.codes import load_codes
from gyrecheck.stream.reader import FormatReader
from gyrecheck.stream.scan import Scan
from gyrecheck.verdict.judge import Judgement, judge
from gyrecheck.verdict.tally import Tally


def _aged(name: str, limit: float, unit: str) -> Judgement:
    text = "".join(f"sampled={8 * n} taken={8 * n} dropped=0 left=0 {name}={n}\n" for n in range(1, 11))
    tally = Tally()
    tally.feed(Scan("run.log", FormatReader(None, mapping=(("age", name),))).feed(text.encode()))
    return judge(tally.snapshot(), load_codes(), max_age=limit, age_unit=unit)


@pytest.mark.parametrize(
    ("name", "limit", "unit", "broken"),
    [
        ("age_s", 8, "second", True),
        ("age_s", 12, "second", False),
        ("lag_steps", 8, "step", True),
        ("lag_steps", 8, "version", True),  # a step of the trainer makes a version
        ("lag", 8, "version", True),
    ],
)
def test_limit_in_the_ages_unit(name: str, limit: float, unit: str, broken: bool) -> None:
    """Ages 1 to 10 pass a limit of 8 at the ninth line and never one of 12, in the unit that their name tells."""
    found = [v for v in _aged(name, limit, unit).verdicts if v.code == "GYR404"]
    assert [v.state for v in found] == [State.BROKEN if broken else State.HOLDS]
    if broken:
        assert found[0].first is not None
        assert (found[0].first.line, found[0].value) == (9, 10)


def test_limit_in_another_unit_is_not_judged() -> None:
    """A limit in seconds says nothing of an age in versions, and the reason is given."""
    judged = _aged("lag", 8, "second")
    assert not [v for v in judged.verdicts if v.code == "GYR404"]
    assert "staleness (--max-age is in seconds, `lag` in versions)" in judged.not_judged


def test_two_missing_terms_are_told_together() -> None:
    """Where neither what is left nor what was dropped is counted, only their sum can be named: 40 - 30 = 10."""
    lines = "".join(f"sampled={4 * n} taken={3 * n}\n" for n in range(1, 11))
    verdict = next(v for v in judge_text(lines, load_codes()).verdicts if v.code == "GYR507")
    assert verdict.state is State.UNDECIDED
    assert "nor of what was dropped" in verdict.message
    assert "left and dropped together would need to be 10" in verdict.message


@pytest.mark.parametrize("name", ["openrlhf", "nemo_rl_single_controller"])
def test_what_a_format_lacks_is_said_without_a_balance(name: str) -> None:
    """A log whose format prints no balance at all says in the format's own words what is missing."""
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).parents[3] / "fixtures" / "logs" / "frameworks"))
    from generate import log_of

    from gyrecheck.rulebook.log_formats import load_formats

    judged = judge_text("\n".join(log_of(name, broken=False)) + "\n", load_codes())
    assert not judged.balances
    said = next(text for text in judged.not_judged if text.startswith("conservation ("))
    assert load_formats()[name].lacks["sampled"] in said
    assert load_formats()[name].lacks["left"] in said
