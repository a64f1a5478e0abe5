"""Numbers so large that sums and squares of them leave the range of floats: nothing is judged with them, and that is said."""

from __future__ import annotations

from dataclasses import replace

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Series, Snapshot
from gyrecheck.verdict.accounts import COUNTED, LEVELS
from gyrecheck.verdict.ruling import Because, Docket

LARGEST = 1e150
"""Squares and sums of millions of such numbers are still floats."""


def within_range(snapshot: Snapshot, docket: Docket) -> Snapshot:
    """The snapshot without keys that leave the range; a balance of which one term does is left out whole, as undecided."""
    beyond = [s for s in snapshot.series if not (s.low >= -LARGEST and s.high <= LARGEST)]
    if not beyond:
        return snapshot
    balanced = COUNTED | LEVELS
    counted = [s for s in beyond if s.key.term in balanced]
    for series in beyond:
        if series.key.term not in balanced:
            docket.skip(f"`{series.name}` ({_because(series)})")
    if counted:
        docket.add(
            "GYR507",
            State.UNDECIDED,
            "conservation is not judged, because " + "; ".join(f"`{s.name}` {_because(s)}" for s in counted),
            quantity="unaccounted",
            because=[Because(s.last_place, s.name) for s in counted],
            hint="look at what the program adds up there: no run counts that far",
            at_most=Severity.WARNING,
        )
    kept = tuple(s for s in snapshot.series if not any(s is one for one in beyond) and not (counted and s.key.term in balanced))
    return replace(snapshot, series=kept)


def _because(series: Series) -> str:
    largest = series.high if series.high > LARGEST else series.low
    return f"reaches {largest:.3g}, and sums with it leave the range of floats"
