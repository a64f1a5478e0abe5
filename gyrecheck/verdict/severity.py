"""From a report to the number the process returns: one place, so that every command agrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gyrecheck.model.errors import ExitCode
from gyrecheck.model.finding import Severity, State

if TYPE_CHECKING:
    from gyrecheck.model.finding import Report


def exit_code(report: Report, fail_on: Severity = Severity.WARNING, *, undecided_ok: bool = False) -> ExitCode:
    """1 when a shown finding or broken verdict reaches `fail_on` (`OFF` = never); else 3 when one above a note is undecided; else 0."""
    if fail_on is not Severity.OFF:
        found = [f.severity.rank for f in report.shown]
        found += [v.severity.rank for v in report.verdicts if v.state is State.BROKEN]
        if any(rank >= fail_on.rank for rank in found):
            return ExitCode.FOUND
    open_questions = any(v.state is State.UNDECIDED and v.severity.rank > Severity.NOTE.rank for v in report.verdicts)
    return ExitCode.UNDECIDED if open_questions and not undecided_ok else ExitCode.OK
