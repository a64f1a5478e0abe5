"""Weights that do not arrive: a sync that fails or is left out, line after line, while training goes on."""

from __future__ import annotations

from gyrecheck.model.finding import Severity, State
from gyrecheck.verdict.flows import most_between
from gyrecheck.verdict.ruling import Because, Docket
from gyrecheck.verdict.view import View


def judge_syncs(run: View, docket: Docket) -> None:
    """Enter the verdict on failed syncs."""
    failed = run.snapshot.marked("load_failed")
    bad = {m.order for m in failed}
    done = [m for m in run.snapshot.marked("load_done") if m.order not in bad]
    last_good = max((m.order for m in done), default=0)
    since = [m for m in failed if m.order > last_good]
    usual = most_between([m.order for m in failed], [m.order for m in done])
    if len(since) < docket.rules.thresholds.late_load or len(since) <= 2 * usual:
        return
    place = since[0].place
    docket.add(
        "GYR406",
        State.BROKEN,
        f"the last {len(since)} weight syncs did not arrive, from line {place.line} on: sampling stays at the weights of before, "
        "whatever version is written beside the data",
        quantity="failed syncs",
        value=len(since),
        first=place,
        because=[*([Because(done[-1].place, "last that arrived")] if done else []), Because(since[-1].place, "still failing")],
        hint="count the version up only when the load is acknowledged, and end the run when it is not",
        at_most=None if done else Severity.WARNING,
    )
