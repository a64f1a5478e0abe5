"""Do clear, backward and step keep one rhythm? (GYR206, GYR207).

GYR206: two steps of one optimizer with no clearing between. GYR207: gradients cleared on passes that do not step, or between
backward and the step it feeds.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.program.program import Program
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes import steps
from gyrecheck.verdict.shapes.cleared_early import cleared_early
from gyrecheck.verdict.shapes.left_over import left_over
from gyrecheck.verdict.shapes.never_cleared import never_cleared
from gyrecheck.verdict.shapes.steps import STEP
from gyrecheck.verdict.shapes.suspect import Suspect


def gradient_rhythm(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every break of rhythm, each place once, seen from the outermost function that shows it."""
    seen: set[tuple[str, int, int]] = set()
    for fn in program.functions:
        table = program.full.of[fn.number]
        if STEP not in table and "scaler.step" not in table:
            continue
        if fn.fact.name.startswith("test"):
            continue  # a test steps to see what one step does
        found = steps.events(program, fn.number)
        for suspect in (*never_cleared(program, fn.number, found), *cleared_early(program, found), *left_over(program, fn.number, found)):
            key = (suspect.code, suspect.function, suspect.line)
            if key not in seen:
                seen.add(key)
                yield suspect
