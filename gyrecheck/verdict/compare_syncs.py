"""Two runs that send weights at different intervals and drift away from their samplers alike: what is sent does not arrive."""

from __future__ import annotations

from gyrecheck.model.finding import Severity, State
from gyrecheck.verdict.compare import Pair
from gyrecheck.verdict.deliveries import CODE, HINT, climbs, load_orders
from gyrecheck.verdict.noise import warming_up
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.view import View

OFTEN, ALIKE = 2.0, 0.15
"""How many times as often one run sends, and the part of their level by which both curves may differ."""


def judge_sync_effect(a: View, b: View, found: Pair, docket: Docket) -> None:
    """Enter that the interval of weight syncs changes nothing of the gap that it should bound."""
    if warming_up(a) or warming_up(b):
        return
    for curve in found.curves:
        if curve.term not in {"logp_gap", "mismatch_kl"}:
            continue
        every = _interval(a, curve.term), _interval(b, curve.term)
        if every[0] is None or every[1] is None or max(every[0], every[1]) < OFTEN * min(every[0], every[1]):
            continue
        level = sum(map(abs, (*curve.a, *curve.b))) / (2 * len(curve.axis))
        apart = sum(abs(y - x) for x, y in zip(curve.a, curve.b, strict=True)) / len(curve.axis)
        t = docket.rules.thresholds
        if apart > ALIKE * level or not (climbs(curve.series_a, t) and climbs(curve.series_b, t)):
            continue
        series = curve.series_a if every[0] < every[1] else curve.series_b
        docket.add(
            CODE,
            State.BROKEN,
            f"`{curve.name}` climbs alike in both runs, to {count(curve.a[-1])} and {count(curve.b[-1])}, although weights are sent every "
            f"{every[0]:.3g} and every {every[1]:.3g} steps: the setting has no effect, the weights that are sent do not reach the sampler",
            quantity=curve.name,
            value=series.last,
            first=series.first_place,
            because=[Because(curve.series_a.last_place, found.names[0]), Because(curve.series_b.last_place, found.names[1])],
            hint=HINT,
            at_most=Severity.WARNING,
        )
        return


def _interval(run: View, term: str) -> float | None:
    """Steps from one sync to the next: as configured, else readings of the gap for each new version of the sampler."""
    said = run.setting("publish_interval")
    if said is not None and said.last > 0:
        return said.last
    gap = next(iter(run.series(term, least=8)), None)
    loads = load_orders(run, gap) if gap is not None else []
    return gap.count / len(loads) if gap is not None and loads else None
