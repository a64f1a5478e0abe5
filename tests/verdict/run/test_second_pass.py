"""Several passes over a batch: the ratio leaves 1 in the second one, if a step lies between them."""

from __future__ import annotations

from gyrecheck.commands.ledger_run import judge_text
from gyrecheck.model.finding import Severity, State
from gyrecheck.rulebook.codes import load_codes


def _found(passes: int, ratio: str, head: str = "num_iterations={passes} learning_rate=2e-06") -> list[tuple[str, object, Severity]]:
    """Twenty rollouts, each gone over `passes` times; the second time with the ratio that is given."""
    lines = [head.format(passes=passes)]
    for n in range(1, 21):
        lines += [
            f"rollout={n} iteration={k}/{passes} loss=0.0{n} grad_norm=0.4 ratio_mean={'1.000000' if k == 1 else ratio} clip_frac=0.0"
            for k in range(1, passes + 1)
        ]
    judged = judge_text("\n".join(lines), load_codes())
    return [(v.quantity, v.value, v.severity) for v in judged.verdicts if v.code == "GYR516" and v.state is State.BROKEN]


def test_a_ratio_of_one_in_the_second_pass_says_that_no_step_lies_between() -> None:
    """Exactly 1 on all 40 lines with two passes; one that moves in the sixth figure, and a single pass, are left alone."""
    assert _found(2, "1.000000") == [("ratio_mean", 1, Severity.WARNING)]
    assert [q for q, _, _ in _found(2, "1.000031") if q == "ratio_mean"] == []
    assert _found(1, "1.000000") == []


def test_a_ratio_printed_with_few_figures_shows_nothing() -> None:
    """1.000 may be 1.0004: then the ratio is not what the verdict is about."""
    text = "num_iterations=2 lr=1e-6\n" + "\n".join(
        f"rollout={n} iteration={k}/2 ratio_mean=1.000 loss=0.1" for n in range(20) for k in (1, 2)
    )
    assert not [v for v in judge_text(text, load_codes()).verdicts if v.code == "GYR516" and v.state is State.BROKEN]
