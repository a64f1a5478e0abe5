"""GitLab Code Quality: a JSON array of issues, each with a fingerprint of its own, since GitLab merges equal ones."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from gyrecheck.model.finding import Report, Severity, State, fingerprint
from gyrecheck.report.style import Style

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info", Severity.OFF: "info"}


def render(report: Report, *, exit_code: int, style: Style) -> str:
    """Shown findings and broken verdicts; an empty array when there are none."""
    del exit_code, style
    issues = [
        _issue(f.code, f.name, f.severity, message=f.message, path=f.path, lines=(f.line, f.end_line), identity=f.fingerprint)
        for f in report.shown
    ]
    for v in report.verdicts:
        if v.state is State.BROKEN:
            path, line = (v.first.path, v.first.line) if v.first else ((report.inputs or (report.command,))[0], 0)
            identity = fingerprint(v.code, path, v.quantity)
            issues.append(_issue(v.code, v.name, v.severity, message=v.message, path=path, lines=(line, line), identity=identity))
    seen: Counter[str] = Counter()
    for issue in issues:
        seen[issue["fingerprint"]] += 1
        if (nth := seen[issue["fingerprint"]]) > 1:
            issue["fingerprint"] = fingerprint(issue["fingerprint"], str(nth))
    return json.dumps(issues, indent=2, ensure_ascii=False) + "\n"


def _issue(code: str, name: str, severity: Severity, *, message: str, path: str, lines: tuple[int, int], identity: str) -> dict[str, Any]:
    return {
        "description": f"{code} {name}: {message}",
        "check_name": code,
        "fingerprint": identity or fingerprint(code, path, message),
        "severity": _SEVERITIES[severity],
        "location": {"path": path, "lines": {"begin": max(lines[0], 1), "end": max(*lines, 1)}},
    }
