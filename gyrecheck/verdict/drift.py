"""A distance between sampler and trainer whose base line climbs under single spikes, at no greater age of the data.

The base line is the median of five neighbouring readings, so a reading that is back at once moves it nowhere. A multiplicative error of
probabilities is 1 where both sides agree.
"""

from __future__ import annotations

from itertools import pairwise

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Series
from gyrecheck.verdict.noise import beyond_noise, warming_up
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.view import View, quarters

CODE = "GYR417"
LEAST, SPAN = 20, 2
"""Readings from which on a base line has a course, and neighbours on each side that make it."""
STAYS = 0.8
"""The part of its highest that a base line keeps at the end when it does not come back."""


def judge_drift(run: View, docket: Docket) -> None:
    """Enter a base line that climbs; silent where a climb has been named."""
    if any(v.code in {CODE, "GYR402"} and v.state is State.BROKEN for v in docket.verdicts) or _ages(run):
        return
    factor = docket.rules.thresholds.gap_climb
    for series in run.series("prob_error", "logp_gap", "mismatch_kl", least=LEAST):
        line = base_line([abs(v - 1.0) if series.key.term == "prob_error" else abs(v) for v in series.values])
        start, end = line[0], line[-1]
        least = factor**2 if series.key.term == "mismatch_kl" else factor
        parts = quarters(line)
        climbs = parts[0] < parts[1] < parts[2] < parts[3] and 0 < least * start <= end and end >= STAYS * max(line)
        if series.key.term != "prob_error" and (not beyond_noise(series, end, docket.rules.thresholds) or warming_up(run)):
            continue
        if not climbs or max(b - a for a, b in pairwise(line)) > 0.5 * (end - start):
            continue
        above = _for_good(series) if series.key.term == "prob_error" else None
        where = "" if above is None else f", above {1.0 + USUAL:g} for good from line {series.lines[above]} on"
        if series.key.term == "prob_error" and (above is None or end < FAR):
            continue
        at = 0 if above is None else above
        docket.add(
            CODE,
            State.BROKEN,
            f"`{series.name}` climbs from {count(series.values[0])} to {count(series.last)} over {series.count} readings under its spikes and does "
            f"not come back{where}: the two sides compute the same weights ever less alike, or the weights do not arrive",
            quantity=series.name,
            value=series.last,
            first=series.place(at),
            because=[Because(series.place(0), "first reading"), Because(series.last_place, "last reading")],
            hint="score one batch on both sides with the same weights; restart the sampling engine alone and see whether the error falls back",
            at_most=Severity.WARNING,
        )
        return


USUAL, FAR = 0.05, 0.08
"""A multiplicative error that engines of other kernels and parallelism reach without a fault, and one that their longer answers do not."""


def _for_good(series: Series) -> int | None:
    """The reading from which on a multiplicative error stays above what is usual, to the end; None when it does not."""
    at = len(series)
    while at and abs(series.values[at - 1] - 1.0) > USUAL:
        at -= 1
    return at if at <= 0.9 * len(series) else None


def base_line(values: list[float]) -> list[float]:
    """The median of each reading and its neighbours; at the ends of the first and last five."""
    last = len(values) - 1
    middles = [min(max(i, SPAN), max(last - SPAN, 0)) for i in range(len(values))]
    parts = [sorted(values[max(m - SPAN, 0) : m + SPAN + 1]) for m in middles]
    return [part[len(part) // 2] for part in parts]


def _ages(run: View) -> bool:
    """Whether data gets older over the run: then a growing distance is no surprise."""
    for series in run.series("age", "age_max", least=4):
        first, _, _, last = quarters(list(series.values))
        if last > 1.5 * first + 0.5:
            return True
    return False
