"""Numbers that end a run in silence: losses and gradients that are no numbers, steps that are left out, counters below zero."""

from __future__ import annotations

from gyrecheck.model.finding import Severity, State
from gyrecheck.rulebook.log_formats import load_terms
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.view import View

_LEARNER = frozenset(("loss", "grad_norm", "kl", "entropy", "ratio"))


def judge_finite(run: View, docket: Docket) -> None:
    """Enter the verdicts on NaN, on skipped steps and on negative counters."""
    _not_finite(run, docket)
    _skipped(run, docket)
    _negative(run, docket)


def _not_finite(run: View, docket: Docket) -> None:
    """A gauge of the learner that is NaN or infinite in its last readings; a single one is a step that a scaler leaves out."""
    for series in run.series("not_finite", least=docket.rules.thresholds.inert_readings):
        good = [s for s in run.snapshot.series if s.name == series.name and s.key.term in _LEARNER and s.path == series.path]
        if not good and series.key.stream not in _LEARNER:
            continue
        last_good = max((s.orders[-1] for s in good), default=-1)
        tail = [i for i, order in enumerate(series.orders) if order > last_good]
        if len(tail) < docket.rules.thresholds.inert_readings:
            continue
        place = series.place(tail[0])
        docket.add(
            "GYR220",
            State.BROKEN,
            f"`{series.name}` is NaN or infinite from line {place.line} on, in {len(tail)} readings: no update since then is of any use",
            quantity=series.name,
            value="nan",
            first=place,
            because=[Because(place, "first"), Because(series.last_place, "last")],
            hint="test the gradient norm before the step, and look for log(0), 0/0 and exp of a large log-ratio in the loss",
        )
        return


def _skipped(run: View, docket: Docket) -> None:
    """Most train steps are left out."""
    skipped = run.flow("skipped_updates")
    if skipped is None or skipped.last <= 0:
        return
    updates = run.updates
    axis = next((s for s in run.series("step", least=3) if s.rises >= 2), None)
    steps = updates.last if updates is not None else (axis.last - axis.first + 1) if axis is not None else 0.0
    if steps < docket.rules.thresholds.inert_readings or skipped.last < 0.5 * steps:
        return
    docket.add(
        "GYR516",
        State.BROKEN,
        f"{count(skipped.last)} of {count(steps)} train steps are left out (`{skipped.name}`): they count as steps and change no weight",
        quantity=skipped.name,
        value=skipped.last,
        first=skipped.first_place,
        because=[skipped.first_place, skipped.last_place],
        hint="find the gradient that is not finite: log its norm, and lower the loss scale's start",
        at_most=None if skipped.last >= 0.95 * steps else Severity.WARNING,
    )


def _negative(run: View, docket: Docket) -> None:
    """A count below zero: it wrapped round, or was computed from two that do not belong together."""
    kinds = {name: rule.kind for name, rule in load_terms().terms.items()}
    for series in run.snapshot.series:
        if series.low >= 0 or kinds[series.key.term] not in {"counter", "level"}:
            continue
        if all(v >= 0 or v == -1 for v in series.values):
            continue  # which means not known
        at = next(i for i, v in enumerate(series.values) if v < 0)
        before = series.values[at - 1] if at else None
        wraps = before is not None and before > 2**30 and series.values[at] < -(2**30)
        how = f": it wrapped round after {count(before)} (a 32-bit integer)" if wraps and before is not None else ""
        docket.add(
            "GYR522",
            State.BROKEN,
            f"`{series.name}` is {count(series.values[at])} at line {series.lines[at]}, and nothing can be counted below zero{how}",
            quantity=series.name,
            value=series.values[at],
            first=series.place(at),
            because=([Because(series.place(at - 1), "before")] if at else []) + [Because(series.place(at), "below zero")],
            hint="count in 64 bits" if wraps else "see from which two numbers it is computed, and whether they count the same thing",
        )
        return
