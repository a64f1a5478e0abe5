"""A count of updates that rises by the configured number although passes were ended early: it counts plans, not steps (GYR518)."""

from __future__ import annotations

from itertools import pairwise

from gyrecheck.model.finding import Severity, State
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.view import View


def judge_early_stops(run: View, docket: Docket) -> None:
    """Enter the verdict: the same rise in rounds that were cut short and in rounds that were not."""
    updates, stops = run.updates, run.snapshot.marked("early_stop")
    if updates is None or len(updates.orders) < 5 or not stops:
        return
    steps = [(low, high, b - a) for (low, a), (high, b) in pairwise(zip(updates.orders, updates.values, strict=True))]
    cut = [step for step in steps if any(step[0] < m.order <= step[1] for m in stops)]
    whole = [step for step in steps if step not in cut]
    rise = cut[0][2] if cut else 0.0
    passes = run.setting("declared_reuse")
    if len(cut) < docket.rules.thresholds.cut_rounds or not whole or rise < 2 or any(step[2] != rise for step in steps):
        return
    if passes is not None and rise % passes.last:
        return
    first = stops[0].place
    docket.add(
        "GYR518",
        State.BROKEN,
        f"`{updates.name}` rises by {count(rise)} in every round, in {len(cut)} of {len(steps)} that were stopped early too: it adds the "
        f"configured number, fewer than {count(updates.last)} updates were made",
        quantity=updates.name,
        value=updates.last,
        first=first,
        because=[Because(first, "first early stop"), Because(updates.last_place, updates.name)],
        hint="count one for each pass, or optimizer step, that was really made",
        at_most=Severity.WARNING,
    )
