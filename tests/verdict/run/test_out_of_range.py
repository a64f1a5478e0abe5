"""Promises about numbers whose sums leave the range of floats."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gyrecheck.commands.ledger_run import judge_text
from gyrecheck.model.finding import State
from gyrecheck.rulebook.codes import load_codes

CODES = load_codes()
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def test_sums_beyond_floats_are_not_judged() -> None:
    """A balance with 1e308 taken and 1e308 dropped is undecided, and both keys are named with the line."""
    judged = judge_text("iter 1: sampled_total=5 dropped_stale=1e308 taken=1e308 buffer_left=0\n", CODES)
    verdict = next(v for v in judged.verdicts if v.code == "GYR507")
    assert verdict.state is State.UNDECIDED
    assert "not judged, because `dropped_stale` reaches 1e+308" in verdict.message
    assert [e.line for e in verdict.evidence] == [1, 1]
    assert not any("let the sampler log" in said for said in judged.not_judged)


def test_a_gauge_beyond_floats_leaves_the_balance_alone() -> None:
    """A loss of 1e300 is said not to be judged; 5 sampled = 5 taken still holds."""
    judged = judge_text("iter 1: sampled_total=5 dropped_stale=0 taken=5 buffer_left=0 loss=1e300\n", CODES)
    assert any(said.startswith("`loss` (reaches 1e+300") for said in judged.not_judged)
    assert any(v.code == "GYR507" and v.state is State.HOLDS for v in judged.verdicts)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(*[FLOATS] * 6), min_size=1, max_size=5))
def test_any_finite_numbers_are_judged_without_a_fault(rows: list[tuple[float, ...]]) -> None:
    """Whatever finite numbers a log holds, there is a judgement."""
    lines = [
        f"iter {n}: sampled_total={a!r} dropped_stale={b!r} taken={c!r} buffer_left={d!r} loss={e!r} reward={f!r}\n"
        for n, (a, b, c, d, e, f) in enumerate(rows, 1)
    ]
    judged = judge_text("".join(lines), CODES)
    assert judged.verdicts or judged.not_judged
