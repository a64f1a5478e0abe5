"""JUnit XML: a test case a finding or verdict, in one suite a file, so that any CI shows what was found and where.

Findings at or above a warning and broken verdicts are failures; notes pass and say what they are; suppressed, baselined and undecided
ones are skipped with the reason. A clean report is one passing case, since an empty file reads as a run that never happened.
"""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

from gyrecheck.model.finding import Finding, Report, Severity, State, Verdict
from gyrecheck.report.style import Style

# characters that XML 1.0 cannot hold in any form
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report, *, exit_code: int, style: Style) -> str:
    """One `testsuites` element; counts of tests, failures and skipped add up over its suites."""
    del exit_code, style
    suites: dict[str, list[tuple[str, str]]] = {}
    for finding in report.findings:
        suites.setdefault(finding.path, []).append(_finding(finding))
    for verdict in report.verdicts:
        suites.setdefault(verdict.first.path if verdict.first else report.command, []).append(_verdict(verdict, report.command))
    if not suites:
        suites[report.command] = [("pass", _case(report.summary or "no findings", report.command, "", 0, ""))]
    kinds = [kind for cases in suites.values() for kind, _ in cases]
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f"<testsuites name={_attribute(f'gyrecheck {report.command}')}{_counts(kinds)}>"]
    for name, cases in suites.items():
        lines.append(f"  <testsuite name={_attribute(name)}{_counts([kind for kind, _ in cases])}>")
        lines += [case for _, case in cases]
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>"]) + "\n"


def _counts(kinds: list[str]) -> str:
    return f' tests="{len(kinds)}" failures="{kinds.count("failure")}" errors="0" skipped="{kinds.count("skipped")}"'


def _finding(finding: Finding) -> tuple[str, str]:
    title = f"{finding.code} {finding.name}" + (f" at line {finding.line}" if finding.line else "")
    reason = finding.suppressed or ("in the baseline" if finding.baselined else "")
    if reason:
        kind, inner = "skipped", f"<skipped message={_attribute(reason)}/>"
    elif finding.severity.rank >= Severity.WARNING.rank:
        text = [finding.message]
        text += [f"because: {e.label or e.text.strip()} ({e.path}:{e.line})" for e in finding.evidence]
        text += [f"hint: {finding.hint}"] if finding.hint else []
        kind = "failure"
        opening = f"<failure type={_attribute(finding.severity.value)} message={_attribute(finding.message)}>"
        inner = opening + _text("\n".join(text)) + "</failure>"
    else:
        kind, inner = "pass", f"<system-out>{_text(f'{finding.severity.value}: {finding.message}')}</system-out>"
    return kind, _case(title, finding.code, finding.path, finding.line, inner)


def _verdict(verdict: Verdict, command: str) -> tuple[str, str]:
    path, line = (verdict.first.path, verdict.first.line) if verdict.first else ("", 0)
    if verdict.state is State.BROKEN:
        kind, inner = "failure", f"<failure type={_attribute(verdict.severity.value)} message={_attribute(verdict.message)}/>"
    elif verdict.state is State.UNDECIDED:
        kind, inner = "skipped", f"<skipped message={_attribute('undecided: ' + verdict.message)}/>"
    else:
        kind, inner = "pass", ""
    return kind, _case(f"{verdict.code} {verdict.name}", command, path, line, inner)


def _case(name: str, group: str, path: str, line: int, inner: str) -> str:
    place = (f" file={_attribute(path)}" if path else "") + (f' line="{line}"' if line else "")
    head = f"    <testcase name={_attribute(name)} classname={_attribute(f'gyrecheck.{group}')}{place}"
    return f"{head}>{inner}</testcase>" if inner else f"{head}/>"


def _attribute(text: str) -> str:
    return quoteattr(_FORBIDDEN.sub("\ufffd", text), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def _text(text: str) -> str:
    return escape(_FORBIDDEN.sub("\ufffd", text))
