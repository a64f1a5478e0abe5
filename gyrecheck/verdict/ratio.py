"""Importance ratio and log-probability gap over time: off at age 0, exactly 1 at positive age, climbing until a restart.

exp(logprob now - recorded) with the recorded version's weights is 1. Off at the same version: wrong tag or other numerics. Exactly
1 on data of positive age: the denominator was recomputed. Climbing within an engine's lifetime and back at its restart: something
in the engine is stale, not the policy.
"""

from __future__ import annotations

from itertools import accumulate, pairwise

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Series
from gyrecheck.rulebook.thresholds import Thresholds
from gyrecheck.verdict.noise import beyond_noise, warming_up
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.view import View, lifetimes


def judge_ratio(run: View, docket: Docket) -> None:
    """Enter the verdicts on ratio and gap."""
    before = len(docket.verdicts)
    if not _saw_tooth(run, docket):
        _off(run, docket)
    _exact(run, docket)
    if len(docket.verdicts) == before:
        _agrees(run, docket)
    if not run.series("ratio", "logp_gap", "mismatch_kl", "prob_error"):
        docket.skip("logprob ratio (no ratio or gap is logged; give trajectories and weights to `gyrecheck handoff check`)")


def _distance(series: Series) -> list[float]:
    """How far from agreement: |ratio - 1|, |gap|, |kl|."""
    return [abs(v - 1.0) if series.key.term == "ratio" else abs(v) for v in series.values]


def _saw_tooth(run: View, docket: Docket) -> bool:
    t = docket.rules.thresholds
    for series in run.series("logp_gap", "ratio", "mismatch_kl", "kl", least=t.gap_readings):
        far = _distance(series)
        climbs = []
        for low, high, opener in lifetimes(series, run.restarts):
            part = far[low:high]
            if len(part) < 4:
                continue
            start, end = sum(part[:2]) / 2, sum(part[-2:]) / 2
            rises = sum(b > a for a, b in pairwise(part))
            climbs.append((low, high, opener, start, end, start > 0 and end >= t.gap_climb * start and rises >= 0.6 * (len(part) - 1)))
        teeth = [
            (a, b) for a, b in pairwise(climbs)
            if a[5] and far[b[0]] <= t.gap_drop * a[4] and (b[5] or len(climbs) == 2)
        ]  # fmt: skip
        if teeth:
            (low, high, _, start, end, _), after = teeth[0]
            per = (end - start) / max(high - low - 2, 1)
            opener = after[2]
            because = [
                Because(series.place(low), "start"),
                Because(series.place(high - 1), "before the restart"),
                Because(series.place(after[0]), "after it"),
            ]
            because += [Because(opener.place, "restart")] if opener else []
            what = (
                f"`{series.name}` climbs from {count(series.values[low])} to {count(series.values[high - 1])} (about "
                f"{per:.2g} a reading), is back at {count(series.values[after[0]])} after the restart, and climbs again: "
                "a saw-tooth tied to the engine's lifetime, not to training"
            )
            docket.add(
                "GYR417",
                State.BROKEN,
                what,
                quantity=series.name,
                value=series.values[high - 1],
                first=series.place(low),
                because=because,
                hint=(
                    "something in the engine outlives a weight update (prefix or key/value cache, a weight copy): clear it at each refit"
                ),
            )
            return True
        if (
            climbs
            and climbs[-1][5]
            and climbs[-1][4] >= _climb(series, t.gap_climb) * climbs[-1][3]
            and series.key.term in {"logp_gap", "mismatch_kl"}
            and beyond_noise(series, climbs[-1][4], t)
            and not (climbs[-1][4] < t.gap_large and warming_up(run))
            and len(climbs) == 1
            and max(b - a for a, b in pairwise(far)) <= 0.5 * (climbs[-1][4] - climbs[-1][3])  # a jump is no climb
            and jump(far, t) is None
        ):
            low, high, _, start, end, _ = climbs[0]
            what = (
                f"`{series.name}` climbs from {count(series.values[low])} to {count(series.values[high - 1])} over "
                f"{high - low} readings and does not come back"
            )
            docket.add(
                "GYR417",
                State.BROKEN,
                what,
                quantity=series.name,
                value=series.values[high - 1],
                first=series.place(low),
                because=[series.place(low), series.place(high - 1)],
                hint="restart the sampling engine alone: if the gap falls back, the engine is stale and not the policy",
                at_most=Severity.WARNING,
            )
            return True
    return False


def jump(far: list[float], t: Thresholds) -> int | None:
    """Where a distance rises at once to many times all before it, and stays."""
    highest = list(accumulate(far, max))
    lowest = list(accumulate(reversed(far), min))[::-1]
    for at in range(2, len(far) - 3):
        base = highest[at - 1]
        if far[at] >= t.gap_jump * base > 0 and lowest[at] >= t.gap_jump / 2 * base and far[at] >= t.gap_large / 2:
            return at
    return None


def _climb(series: Series, factor: float) -> float:
    """A divergence grows with the square of the gap."""
    return factor**2 if series.key.term == "mismatch_kl" else factor


def _agrees(run: View, docket: Docket) -> None:
    for series in run.series("logp_gap", "ratio", least=docket.rules.thresholds.gap_readings)[:1]:
        text = f"`{series.name}` {count(series.low)} to {count(series.high)} over {series.count} readings: no climb, nothing off"
        docket.add("GYR417", State.HOLDS, text, quantity=series.name, value=series.last)


def _ages(run: View) -> list[float]:
    return [v for s in run.series("age", "age_max") for v in s.values]


def _off(run: View, docket: Docket) -> None:
    t = docket.rules.thresholds
    ages = _ages(run)
    for series in run.series("ratio", least=t.ratio_readings):
        off = [i for i, v in enumerate(series.values) if abs(v - 1.0) > t.ratio_off]
        if len(off) < 0.8 * len(series) or len(off) < t.ratio_readings:
            continue
        mean = sum(series.values) / len(series)
        if ages and max(ages) == 0:
            what, cap = f"`{series.name}` is {mean:.3g} on average at age 0: with the recorded weights it must be 1", None
        elif ages:
            what, cap = (
                f"`{series.name}` is {mean:.3g} on average at ages up to {count(max(ages))}: drift, or a wrong version tag",
                Severity.NOTE,
            )
        else:
            what, cap = (
                (
                    f"`{series.name}` is {mean:.3g} on average ({len(off)} of {len(series)} readings more than "
                    f"{t.ratio_off:.0%} off 1); no age is logged, so drift and a wrong tag cannot be told apart"
                ),
                Severity.WARNING,
            )
        docket.add(
            "GYR402",
            State.BROKEN,
            what,
            quantity=series.name,
            value=round(mean, 4),
            first=series.place(off[0]),
            because=[series.place(off[0]), series.place(off[-1])],
            hint="replay a batch with the recorded version's weights: gyrecheck handoff check --weights",
            at_most=cap,
        )
        return


def _exact(run: View, docket: Docket) -> None:
    t = docket.rules.thresholds
    ages = _ages(run)
    aged = [v for v in ages if v > 0]
    if not aged or len(aged) < t.ratio_readings or len(aged) * 2 < len(ages):
        return
    for series in run.series("ratio", least=t.ratio_readings):
        if all(abs(v - 1.0) <= t.ratio_exact for v in series.values):
            docket.add(
                "GYR407",
                State.BROKEN,
                (
                    f"`{series.name}` is exactly 1 in all {series.count} readings although the data is up to "
                    f"{count(max(ages))} old: the denominator comes from the current policy, so staleness cannot show"
                ),
                quantity=series.name,
                value=1,
                first=series.first_place,
                because=[series.first_place, series.last_place],
                hint="divide by the log-probability recorded when the action was sampled",
            )
            return
