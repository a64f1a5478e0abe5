"""Updates that a program counts and its optimizer never made: a batch is passed over, and the counters move on all the same."""

from __future__ import annotations

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.live import HookedRun
from gyrecheck.model.snapshot import Snapshot
from gyrecheck.verdict.live_places import place_at
from gyrecheck.verdict.ruling import Docket, count

_COUNTED = ("update", "policy_version")
_LEAST, _SHARE = 2, 0.05
"""Passes, and their share of all, from which on it is told: mixed precision leaves out a step now and then by design."""


def judge_passed_over(snapshot: Snapshot, run: HookedRun, docket: Docket) -> None:
    """Set the program's own totals beside the optimizer's steps.

    It is told where one optimizer made fewer steps than there were backward passes, the gradients of exactly the missing ones were cleared
    unused, and a running total of the program's counts the passes and not the steps.
    """
    totals = run.of("totals")
    if len(totals) != 1 or len([p for p in run.processes if p.calls("T")]) != 1:
        return
    steps, passes = totals[0].number("steps"), totals[0].number("backwards")
    skipped = totals[0].number("n_cleared_nan") + totals[0].number("n_cleared_unused")
    if skipped < max(_LEAST, _SHARE * passes) or passes != steps + skipped or snapshot.of("skipped_updates"):
        return
    series = next((s for s in snapshot.of(*_COUNTED) if s.count > 1 and s.last == passes), None)
    event = next((e for e in run.of("cleared_nan", "cleared_unused")), None)
    if series is None or event is None:
        return
    lost = totals[0].number("n_cleared_nan")
    why = "were not finite and were cleared" if lost == skipped else "were cleared"
    docket.add(
        "GYR423",
        State.BROKEN,
        f"`{series.name}` ends at {count(passes)}, and the optimizer made {count(steps)} steps: the gradients of {count(skipped)} passes {why} "
        "before any step, and their updates are counted",
        quantity="optimizer_steps",
        value=steps,
        unit="step",
        first=place_at(event.text("site")),
        at_most=Severity.WARNING,
        hint="count an update, its version and its samples as trained only where the optimizer steps; the rest is dropped",
    )
