"""Which output formats exist and where each is written; a writer is imported only when asked for."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, cast

from gyrecheck.model.errors import GyreError, did_you_mean
from gyrecheck.model.visible import visible_data, visible_json, visible_lines

if TYPE_CHECKING:
    from gyrecheck.model.finding import Report
    from gyrecheck.report.style import Style

WRITERS = {
    "full": "gyrecheck.report.full:render",
    "concise": "gyrecheck.report.concise:render",
    "json": "gyrecheck.report.json:render",
    "jsonl": "gyrecheck.report.json:render_lines",
    "md": "gyrecheck.report.table:render_markdown",
    "csv": "gyrecheck.report.table:render_csv",
    "html": "gyrecheck.report.html:render",
    "sarif": "gyrecheck.report.sarif:render",
    "github": "gyrecheck.report.github:render",
    "gitlab": "gyrecheck.report.gitlab:render",
    "junit": "gyrecheck.report.junit:render",
}
_JSON = {"json", "jsonl", "sarif", "gitlab"}


class Writer(Protocol):
    """A pure function from a report to text."""

    def __call__(self, report: Report, *, exit_code: int, style: Style) -> str:
        """The report as text, ending with a newline."""


def writer(name: str) -> Writer:
    """The writer of one format. Formats of JSON keep every character, escaped where it is unsafe; the others show its escape.

    Raises:
        GyreError: no such format; all are named.
    """
    if name not in WRITERS:
        near = did_you_mean(name, WRITERS)
        raise GyreError(f"unknown output format `{name}`", hint=(f"{near} " if near else "") + "formats: " + ", ".join(WRITERS))
    module, _, function = WRITERS[name].partition(":")
    render = cast("Writer", getattr(importlib.import_module(module), function))

    def as_json(report: Report, *, exit_code: int, style: Style) -> str:
        return visible_json(render(report, exit_code=exit_code, style=style))

    def as_text(report: Report, *, exit_code: int, style: Style) -> str:
        shown = replace(visible_data(report), summary=visible_lines(report.summary))  # its lines are ours
        return render(shown, exit_code=exit_code, style=style)

    return as_json if name in _JSON else as_text
