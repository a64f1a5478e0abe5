"""The questions that are asked of a program, one file each; a new question is a new file and one line here."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gyrecheck.program.program import Program
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.gradient_rhythm import gradient_rhythm
from gyrecheck.verdict.shapes.pure_sides import pure_sides
from gyrecheck.verdict.shapes.recorded_forward import recorded_forward
from gyrecheck.verdict.shapes.schedule import schedule
from gyrecheck.verdict.shapes.standalone import standalone
from gyrecheck.verdict.shapes.suspect import Suspect

Shape = Callable[[Program, Layout], Iterable[Suspect]]
SHAPES: tuple[Shape, ...] = (
    standalone,
    pure_sides,
    recorded_forward,
    gradient_rhythm,
    schedule,
)
