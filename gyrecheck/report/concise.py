"""One line a finding or verdict, `path:line:col: severity CODE name: message`, for editors and grep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gyrecheck.model.finding import State

if TYPE_CHECKING:
    from gyrecheck.model.finding import Finding, Report, Verdict
    from gyrecheck.report.style import Style


def render(report: Report, *, exit_code: int, style: Style) -> str:
    """All shown findings and all verdicts that do not hold; a clean report is its summary line."""
    del exit_code
    lines = [_finding(f, style) for f in report.shown]
    lines += [_verdict(v, report, style) for v in report.verdicts if v.state is not State.HOLDS]
    if not lines:
        lines = [report.summary or "No findings.", *report.sentences]
    return "\n".join(lines) + "\n"


def _finding(finding: Finding, style: Style) -> str:
    place = finding.path + (f":{finding.line}" if finding.line else "") + (f":{finding.column}" if finding.column else "")
    sure = " (by name only)" if finding.confidence.value == "hint" else ""
    return f"{place}: {style.paint(finding.severity.value, finding.severity.value)} {finding.code} {finding.name}: {finding.message}{sure}"


def _verdict(verdict: Verdict, report: Report, style: Style) -> str:
    if verdict.first is not None:
        place = f"{verdict.first.path}:{verdict.first.line}"
    elif verdict.evidence:
        place = f"{verdict.evidence[0].path}:{verdict.evidence[0].line}"
    else:
        place = report.inputs[0] if report.inputs else report.command
    word = "undecided" if verdict.state is State.UNDECIDED else verdict.severity.value
    return f"{place}: {style.paint(word, word)} {verdict.code} {verdict.name}: {verdict.message}"
