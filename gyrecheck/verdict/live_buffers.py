"""Observations that are the environment's own buffer, held by the program beyond the step that writes them anew."""

from __future__ import annotations

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.live import HookedRun
from gyrecheck.verdict.live_places import place_at
from gyrecheck.verdict.ruling import Docket, count


def judge_buffers(run: HookedRun, docket: Docket) -> None:
    """Enter each environment attribute whose references grew with the steps while its values changed."""
    shown: set[tuple[str, str]] = set()
    for event in run.of("live_buffer"):
        what = (event.text("env"), event.text("name"))
        if what in shown:
            continue
        shown.add(what)
        more, steps = event.number("more"), event.number("steps")
        docket.add(
            "GYR413",
            State.BROKEN,
            f"in {count(steps)} steps the program came to hold {count(more)} more references to `{what[1]}` of {what[0]}, "
            "a buffer that each step writes anew: what was stored shows the newest observation, not its own",
            quantity="references_to_live_buffer",
            value=more,
            unit=f"in {count(steps)} steps",
            first=place_at(event.text("site")),
            hint="copy the observation before the next step, where it is stored",
            at_most=Severity.WARNING,
        )
