"""The machine formats: one JSON object (schema 1, the same outer object for every command), or one finding or verdict a line."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from gyrecheck import __version__

if TYPE_CHECKING:
    from gyrecheck.model.finding import Evidence, Finding, Report, Verdict
    from gyrecheck.report.style import Style

SCHEMA = 1


def render(report: Report, *, exit_code: int, style: Style) -> str:
    """The whole report as one indented object; `exit` is the number the process returns."""
    del style
    return json.dumps(as_object(report, exit_code), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def render_lines(report: Report, *, exit_code: int, style: Style) -> str:
    """One finding or verdict a line, each with `kind`, closed by a `summary` line with the exit code."""
    del style
    rows: list[dict[str, Any]] = [{"kind": "verdict", **verdict_object(v)} for v in report.verdicts]
    rows += [{"kind": "finding", **finding_object(f)} for f in report.findings]
    rows.append({"kind": "summary", "schema": SCHEMA, "command": report.command, "inputs": list(report.inputs), "exit": exit_code})
    return "".join(json.dumps(plain(row), ensure_ascii=False, allow_nan=False) + "\n" for row in rows)


def as_object(report: Report, exit_code: int) -> dict[str, Any]:
    """The report as plain dicts and lists."""
    return {
        "schema": SCHEMA,
        "tool": "gyrecheck",
        "version": __version__,
        "command": report.command,
        "topology": report.topology,
        "topology_reason": report.topology_reason,
        "inputs": list(report.inputs),
        "findings": [finding_object(f) for f in report.findings],
        "verdicts": [verdict_object(v) for v in report.verdicts],
        "tables": {
            name: {"title": t.title, "columns": list(t.columns), "rows": [[plain(c) for c in row] for row in t.rows], "note": t.note}
            for name, t in report.tables.items()
        },
        "sentences": list(report.sentences),
        "not_judged": list(report.not_judged),
        "suppressed": sum(bool(f.suppressed) for f in report.findings),
        "skipped": list(report.skipped),
        "unresolved": report.unresolved,
        "statistics": plain(report.statistics),
        "partial": report.partial,
        "summary": report.summary,
        "next": report.next,
        "exit": int(exit_code),
    }


def finding_object(finding: Finding) -> dict[str, Any]:
    """One finding; columns are 1-based, `line` is a record number in trajectory files, 0 means the whole file."""
    found: dict[str, Any] = {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "message": finding.message,
        "path": finding.path,
        "line": finding.line,
        "column": finding.column,
        "end_line": finding.end_line,
        "end_column": finding.end_column,
        "evidence": [evidence_object(e) for e in finding.evidence],
        "hint": finding.hint,
        "fingerprint": finding.fingerprint,
        "suppressed": finding.suppressed or False,
        "baselined": finding.baselined,
    }
    if finding.records or finding.field:
        found |= {"records": finding.records, "field": finding.field, "share": plain(finding.share), "side": finding.side}
    return found


def verdict_object(verdict: Verdict) -> dict[str, Any]:
    """One verdict with its first wrong line, evidence and rungs."""
    first = verdict.first
    return {
        "code": verdict.code,
        "name": verdict.name,
        "severity": verdict.severity.value,
        "state": verdict.state.value,
        "quantity": verdict.quantity,
        "value": plain(verdict.value),
        "unit": verdict.unit,
        "message": verdict.message,
        "first": {"path": first.path, "line": first.line, "time": first.time, "text": first.text} if first else None,
        "evidence": [evidence_object(e) for e in verdict.evidence],
        "steps": [{"name": s.name, "state": s.state, "message": s.message} for s in verdict.steps],
        "hint": verdict.hint,
        "next": verdict.next,
    }


def evidence_object(evidence: Evidence) -> dict[str, Any]:
    """One place and its text; the label says why it matters."""
    return {"path": evidence.path, "line": evidence.line, "column": evidence.column, "text": evidence.text, "label": evidence.label}


def plain(value: Any) -> Any:
    """The value with NaN and infinities as strings, since JSON has none, and whole floats as integers."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        return int(value) if value == int(value) and abs(value) < 2**53 else value
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value
