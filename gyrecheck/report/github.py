"""GitHub workflow commands: one annotation a shown finding or broken verdict, in the form that Actions reads from a job's log."""

from __future__ import annotations

import re

from gyrecheck.model.finding import Finding, Report, Severity, State, Verdict
from gyrecheck.report.style import Style

# a terminal escape in a message would recolour the job's log
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice", Severity.OFF: "notice"}


def render(report: Report, *, exit_code: int, style: Style) -> str:
    """Annotations in the report's order, then the summary as plain text; nothing a finding holds can start a command of its own."""
    del exit_code, style
    lines = [_finding(f) for f in report.shown]
    lines += [_verdict(v) for v in report.verdicts if v.state is not State.HOLDS]
    if report.summary:
        lines.append(_data(report.summary))
    return "\n".join(lines) + "\n"


def _finding(finding: Finding) -> str:
    properties = {"file": finding.path}
    if finding.line:
        properties["line"] = str(finding.line)
        if finding.end_line:
            properties["endLine"] = str(finding.end_line)
        # Actions refuses columns on an annotation of several lines
        if finding.column and finding.end_line in {0, finding.line}:
            properties["col"] = str(finding.column)
            if finding.end_column:
                properties["endColumn"] = str(finding.end_column)
    properties["title"] = f"{finding.code} {finding.name}"
    message = finding.message
    for evidence in finding.evidence:
        place = f"{evidence.path}:{evidence.line}" if evidence.line else evidence.path
        message += f"\nbecause: {evidence.label or evidence.text.strip()} ({place})"
    if finding.hint:
        message += f"\nhint: {finding.hint}"
    return _command(_COMMANDS[finding.severity], properties, message)


def _verdict(verdict: Verdict) -> str:
    word = "notice" if verdict.state is State.UNDECIDED else _COMMANDS[verdict.severity]
    properties = {"file": verdict.first.path, "line": str(verdict.first.line)} if verdict.first is not None else {}
    properties["title"] = f"{verdict.code} {verdict.name}" + (" (undecided)" if verdict.state is State.UNDECIDED else "")
    return _command(word, properties, verdict.message + (f"\nhint: {verdict.hint}" if verdict.hint else ""))


def _command(word: str, properties: dict[str, str], message: str) -> str:
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{word} {listed}::{_data(message)}"


def _data(text: str) -> str:
    text = _CONTROL.sub("\ufffd", text)
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
