"""Which panels there are, in reading order, without Textual."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from gyrecheck.screen.glyphs import Pen
from gyrecheck.screen.panels import conservation, counters, coupling, diagnosis, handoff, processes, staleness, verdicts
from gyrecheck.screen.view import View

Draw = Callable[[View, Pen, int, int], Text]

PANELS: tuple[tuple[str, Draw], ...] = (
    (counters.TITLE, counters.body),
    (coupling.TITLE, coupling.body),
    (conservation.TITLE, conservation.body),
    (staleness.TITLE, staleness.body),
    (diagnosis.TITLE, diagnosis.body),
    (processes.TITLE, processes.body),
    (handoff.TITLE, handoff.body),
    (verdicts.TITLE, verdicts.body),
)
