"""Do sample calls and update calls grow one to one and in strict turns? Then the run is one loop in two places.

Alarm: ratio within 10 % of 1 and alternation at least 0.8, over at least 50 calls of each side, unless the topology is synchronous.
Alternation is the share of neighbouring call lines that belong to different sides.
"""

from __future__ import annotations

from itertools import pairwise

from gyrecheck.model.finding import State
from gyrecheck.model.snapshot import Snapshot
from gyrecheck.verdict.ruling import Because, Docket
from gyrecheck.verdict.view import View


def judge_coupling(run: View, docket: Docket) -> None:
    """Enter the verdict on coupling."""
    t = docket.rules.thresholds
    samples, updates = run.flow("sample_call"), run.flow("update_call")
    if samples is None or updates is None:
        return
    if min(samples.last, updates.last) < t.coupling_calls:
        docket.skip(f"coupling (needs {t.coupling_calls} calls of each side, has {samples.last:.0f} and {updates.last:.0f})")
        return
    ratio = samples.last / updates.last
    turns = alternation(run.snapshot)
    text = f"{ratio:.3g} sample calls per update call"
    if turns is None:
        one_to_one = abs(ratio - 1) <= t.coupling_ratio
        if one_to_one:
            docket.add(
                "GYR501",
                State.UNDECIDED,
                f"coupling: {text}, but single calls are not logged, so turns cannot be told",
                quantity="ratio",
                value=round(ratio, 4),
                because=[samples.last_place, updates.last_place],
                hint="log each call, or use gyrecheck run",
            )
        else:
            docket.add("GYR501", State.HOLDS, f"coupling: {text}: independent", quantity="ratio", value=round(ratio, 4))
        return
    if abs(ratio - 1) <= t.coupling_ratio and turns >= t.coupling_alternation:
        docket.add(
            "GYR501",
            State.BROKEN,
            (
                f"sample and update calls grow one to one and in turns: ratio {ratio:.2f} : 1 (alarm within "
                f"{t.coupling_ratio:.0%} of 1), alternation {turns:.2f} (alarm from {t.coupling_alternation})"
            ),
            quantity="ratio",
            value=round(ratio, 4),
            first=updates.first_place,
            because=[Because(samples.last_place, "sample calls"), Because(updates.last_place, "update calls")],
            hint="put a carrier between the sides: each its own entry point and its own pace",
        )
        return
    docket.add("GYR501", State.HOLDS, f"coupling: {text}, alternation {turns:.2f}: independent", quantity="ratio", value=round(ratio, 4))


def alternation(snapshot: Snapshot) -> float | None:
    """Share of neighbouring calls that change sides; None when lines do not stand for single calls, or cannot be ordered."""
    if not snapshot.ordered:
        return None
    calls: list[tuple[int, int]] = []
    counted = {0: 0.0, 1: 0.0}
    for series in snapshot.of("sample_call", "update_call"):
        which = int(series.key.term == "update_call")
        calls += [(order, which) for order in series.orders]
        counted[which] += series.last if series.falls == 0 and series.key.cumulative != "no" else series.total
    lines = [sum(which == side for _, which in calls) for side in (0, 1)]
    if any(lines[side] < 0.8 * counted[side] for side in (0, 1)) or len(calls) < 3:
        return None
    calls.sort()
    changes = sum(a[1] != b[1] for a, b in pairwise(calls))
    return changes / (len(calls) - 1)
