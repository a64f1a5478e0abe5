"""Sampler and trainer disagree: a gap that is large from the first reading, that jumps and stays, or that clips almost every ratio.

The gap is |logprob of the trainer - logprob of the sampler| per token; a divergence grows with its square. With the same weights and
the same sampling settings both are at noise level, whatever the task.
"""

from __future__ import annotations

from itertools import pairwise

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Series
from gyrecheck.verdict.ratio import jump
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.view import View, quarters

_CODE = "GYR402"
_HINT = "compare temperature, precision and weights of both sides on one batch: gyrecheck handoff check --weights"


def judge_gap(run: View, docket: Docket) -> None:
    """Enter the verdicts on gaps that do not come from staleness, and on a run that leaves its own data."""
    if any(v.code in {_CODE, "GYR417"} and v.state is State.BROKEN for v in docket.verdicts):
        return
    if not _jumps(run, docket) and not _large(run, docket):
        _clips_all(run, docket)
    _leaves_its_data(run, docket)


def _jumps(run: View, docket: Docket) -> bool:
    t = docket.rules.thresholds
    for series in run.series("logp_gap", "mismatch_kl", least=t.gap_readings):
        far = [abs(v) for v in series.values]
        at = jump(far, t)
        if at is None:
            continue
        place = series.place(at)
        restart = next((m for m in run.restarts if series.orders[at - 1] < m.order <= series.orders[at]), None)
        rate = _first_learning(run, series, at)
        docket.add(
            _CODE,
            State.BROKEN,
            f"`{series.name}` jumps from {count(series.values[at - 1])} to {count(series.values[at])} at line {place.line}"
            f"{', after the restart,' if restart else ''} and stays{rate}: from there on the two sides do not compute the same policy",
            quantity=series.name,
            value=series.values[at],
            first=place,
            because=[Because(series.place(at - 1), "before"), Because(place, "after")]
            + ([Because(restart.place, "restart")] if restart else []),
            hint="see what changed there: a weight load that was lost, another precision, other sampling settings",
            at_most=None if far[at] >= t.gap_large else Severity.WARNING,
        )
        return True
    return False


def _first_learning(run: View, series: Series, at: int) -> str:
    """That the gap was small only while the learning rate was 0, in words: weights that never arrive show from the first real step on."""
    for lr in run.series("lr", least=4):
        before, now = lr.index(series.orders[at - 1]), lr.index(series.orders[at])
        if 0 <= before < now and all(v == 0 for v in lr.values[: before + 1]) and lr.values[now] > 0:
            return f", with the first `{lr.name}` above 0: while nothing was learned the weights of the start were the right ones"
    return ""


def _large(run: View, docket: Docket) -> bool:
    t = docket.rules.thresholds
    ages = [v for s in run.series("age", "age_max") for v in s.values]
    for series in run.series("logp_gap", "mismatch_kl", least=t.ratio_readings):
        off = [i for i, v in enumerate(series.values) if abs(v) >= t.gap_large]
        if len(off) < 0.8 * len(series) or abs(series.values[0]) < t.gap_large:
            continue
        mean = sum(abs(v) for v in series.values) / len(series)
        same = bool(ages) and max(ages) == 0
        docket.add(
            _CODE,
            State.BROKEN,
            f"`{series.name}` is {mean:.3g} on average, from the first reading on"
            + (
                " at age 0: with the same weights it must be at noise level" if same else ": staleness grows, this was there from the start"
            ),
            quantity=series.name,
            value=round(mean, 4),
            first=series.first_place,
            because=[series.first_place, series.last_place],
            hint=_HINT,
            at_most=None if same else Severity.WARNING,
        )
        return True
    return False


def _clips_all(run: View, docket: Docket) -> bool:
    t = docket.rules.thresholds
    for series in run.series("clip_fraction", least=t.ratio_readings):
        if series.high > 1.0 or sum(v >= t.clip_all for v in series.values) < 0.8 * len(series):
            continue
        docket.add(
            _CODE,
            State.BROKEN,
            f"`{series.name}` is {count(series.low)} to {count(series.high)} in {len(series)} readings: almost every ratio is clipped, so "
            "the recorded log-probabilities are not those of this policy, or of these actions",
            quantity=series.name,
            value=series.last,
            first=series.first_place,
            because=[series.first_place, series.last_place],
            hint=_HINT,
            at_most=Severity.WARNING,
        )
        return True
    return False


def _falls_to(series: Series, share: float) -> bool:
    first, *_, last = quarters(list(series.values))
    return first > 0 and last <= share * first


def _grows_by(series: Series, factor: float) -> bool:
    first, *_, last = quarters([abs(v) for v in series.values])
    rises = sum(b > a for a, b in pairwise(series.values))
    return first > 0 and last >= factor * first and rises >= 0.6 * (len(series) - 1)


def _leaves_its_data(run: View, docket: Docket) -> None:
    """Entropy collapses while the policy runs away from its data, in a run that reuses data or trains on old data."""
    t = docket.rules.thresholds
    reuse = [s for s in run.series("reuse", "declared_reuse") if s.high > 1]
    aged = [s for s in run.series("age", "age_max") if s.high > 0]
    entropy = next((s for s in run.series("entropy", least=8) if s.low >= 0 and _falls_to(s, t.collapse_entropy)), None)
    away = next((s for s in run.series("clip_fraction", "kl", "mismatch_kl", "logp_gap", least=8) if _grows_by(s, t.collapse_away)), None)
    if entropy is None or away is None or not (reuse or aged):
        return
    source = (reuse or aged)[0]
    docket.add(
        "GYR418",
        State.BROKEN,
        f"`{entropy.name}` falls from {count(entropy.values[0])} to {count(entropy.last)} while `{away.name}` grows from "
        f"{count(away.values[0])} to {count(away.last)}, with `{source.name}` at {count(source.high)}: the policy leaves the data it trains on",
        quantity=entropy.name,
        value=entropy.last,
        first=entropy.first_place,
        because=[Because(entropy.last_place, entropy.name), Because(away.last_place, away.name), Because(source.first_place, source.name)],
        hint="run a control with reuse 1 and lag 0, and set both side by side: gyrecheck ledger --compare",
        at_most=Severity.WARNING,
    )
