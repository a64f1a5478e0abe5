"""The first minibatch of each update: before any step was made on the batch, trainer and sampler must agree on it.

Later minibatches are off 1 in any healthy run. A log that names pass and minibatch lets the first of each update be looked at alone;
with data of the same version its ratio is 1, its divergence 0 and nothing is clipped, up to numerics.
"""

from __future__ import annotations

import re
from itertools import pairwise

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Series
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.view import View

_MINI = re.compile(r"(?i)(?<![a-z])(mini|mini[ _-]?batch|mb|micro|micro[ _-]?batch|inner[ _-]?step|sub[ _-]?step|batch)(?![a-z])")


def judge_first_mini(run: View, docket: Docket) -> None:
    """Enter the verdict; silent without minibatches, and on data that is older than the policy."""
    t = docket.rules.thresholds
    if any(v.code == "GYR402" and v.state is State.BROKEN for v in docket.verdicts):
        return
    for series in run.series("kl", "clip_fraction", least=2 * t.gap_readings):
        where = [s for s in run.series("within", least=series.count) if s.path == series.path]
        if not any(_MINI.search(s.name) for s in where):
            continue
        lows = [{order for order, v in zip(s.orders, s.values, strict=True) if v == s.low} for s in where]
        first = [i for i, order in enumerate(series.orders) if all(order in low for low in lows)]
        rest = [abs(v) for i, v in enumerate(series.values) if i not in set(first)]
        aged = _aged(run, series, first)
        if len(first) < t.ratio_readings or len(rest) < len(first) or aged:
            continue
        least = t.first_kl if series.key.term == "kl" else t.first_clip
        own = sorted(abs(series.values[i]) for i in first)
        middle, later = own[len(own) // 2], sorted(rest)[len(rest) // 2]
        if middle < least or own[0] < least / 2 or middle < t.first_share * later:
            continue
        place = series.place(first[0])
        versions = " on data of the same version" if aged is False else "; no version stands beside it, so the data may be older"
        docket.add(
            "GYR402",
            State.BROKEN,
            f"`{series.name}` is {count(own[0])} to {count(own[-1])} in the first minibatch of {len(first)} updates{versions}: before any step is "
            f"made on a batch it must be near 0 (later ones {count(later)}), so the recorded log-probabilities are not those of this policy",
            quantity=series.name,
            value=middle,
            first=place,
            because=[Because(place, "first minibatch"), Because(series.place(first[-1]), "and in the last update")],
            hint="compare precision, masks and sampling settings of both sides on one batch: gyrecheck handoff check --weights",
            at_most=None if aged is False else Severity.WARNING,
        )
        return


def _aged(run: View, series: Series, first: list[int]) -> bool | None:
    """Whether the data of those readings is older than the policy; None when the log does not tell."""
    known = [dict(zip(s.orders, s.values, strict=True)) for s in run.series("age", "age_max") if s.path == series.path]
    told = [ages[series.orders[i]] for ages in known for i in first if series.orders[i] in ages]
    return max(told) > 0 if len(told) >= len(first) else None


def cycles(series: Series) -> bool:
    """Whether a number counts up from 0 or 1 and begins anew, again and again: a position within something."""
    if series.count < 8 or series.falls < 2 or series.thinned > 1 or series.low not in {0.0, 1.0} or not 1 <= series.high <= 64:
        return False
    return all(b in {a, a + 1, series.low} for a, b in pairwise(series.values))
