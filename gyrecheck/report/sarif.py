"""SARIF 2.1.0: one run, one result a finding, valid against the OASIS schema.

Suppressed and baselined results are marked, never dropped, since a dropped result reads as fixed and opens again later. A finding's
chain is a code flow, its fixes are fixes, its fingerprint is both the partial and the full one. Columns count Unicode code points.
Verdicts are results of kind `fail`, `open` (undecided) or `pass`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from gyrecheck import __version__
from gyrecheck.model.finding import Confidence, Evidence, Finding, Report, Severity, State, Verdict
from gyrecheck.model.fix import Fix
from gyrecheck.report.style import Style
from gyrecheck.rulebook.codes import Code, load_codes

SCHEMA_URI = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "gyrecheck/v1"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note", Severity.OFF: "none"}
_KINDS = {State.HOLDS: "pass", State.BROKEN: "fail", State.UNDECIDED: "open"}

_LINK = re.compile(r"(\[[^\[\]]*\]\()")

Object = dict[str, Any]


def render(report: Report, *, exit_code: int, style: Style) -> str:
    """The report as an indented SARIF log with a single run."""
    del style
    known = load_codes()
    names = {f.code: f.name for f in report.findings} | {v.code: v.name for v in report.verdicts}
    rules = [_rule(code, name, known.get(code)) for code, name in sorted(names.items())]
    places = {rule["id"]: at for at, rule in enumerate(rules)}
    compared = "baselined" in report.statistics or any(f.baselined for f in report.findings)
    results = [_result(f, places, compared=compared) for f in report.findings]
    results += [_verdict(v, places) for v in report.verdicts]
    invocation: Object = {"executionSuccessful": exit_code in {0, 1, 3}, "exitCode": exit_code}
    if notes := [*report.skipped, *report.not_judged]:
        invocation["toolExecutionNotifications"] = [{"level": "note", "message": {"text": text}} for text in notes]
    driver: Object = {"name": "gyrecheck", "version": __version__, "semanticVersion": _semantic(__version__), "rules": rules}
    run: Object = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"gyrecheck/{report.command}/"},
        "invocations": [invocation],
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    if properties := {key: value for key, value in (("topology", report.topology), ("unresolvedCalls", report.unresolved)) if value}:
        run["properties"] = properties
    return json.dumps({"$schema": SCHEMA_URI, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _semantic(version: str) -> str:
    parts = [*version.split("."), "0", "0"][:3]
    return ".".join("".join(ch for ch in part if ch.isdigit()) or "0" for part in parts)


def _rule(code: str, name: str, known: Code | None) -> Object:
    rule: Object = {
        "id": code,
        "name": "".join(word.capitalize() for word in name.split("-")),
        "shortDescription": {"text": name.replace("-", " ")},
    }
    if known is not None:
        rule["fullDescription"] = {"text": known.what}
        rule["help"] = {"text": f"{known.what}\n\nWhy: {known.why}\n\nFix: {known.fix}"}
        rule["defaultConfiguration"] = {"level": _LEVELS[known.severity]}
        rule["properties"] = {"tags": list(known.engines)}
    return rule


def _result(finding: Finding, places: dict[str, int], *, compared: bool) -> Object:
    result: Object = {
        "ruleId": finding.code,
        "ruleIndex": places[finding.code],
        "level": _LEVELS[finding.severity],
        "message": {"text": _message(finding.message, finding.hint)},
        "locations": [
            _location(finding.path, _region(finding.line, finding.column, finding.end_line, finding.end_column, finding.snippet))
        ],
    }
    if finding.fingerprint:
        result["partialFingerprints"] = {FINGERPRINT: finding.fingerprint}
        result["fingerprints"] = {FINGERPRINT: finding.fingerprint}
    _add_evidence(result, finding.evidence)
    if finding.evidence and finding.line:
        result["codeFlows"] = [_code_flow(finding)]
    if fixes := [_fix(finding.path, fix) for fix in finding.fixes if fix.replacements]:
        result["fixes"] = fixes
    suppressions: list[Object] = []
    if finding.suppressed:
        suppressions.append({"kind": "inSource", "status": "accepted", "justification": finding.suppressed})
    if finding.baselined:
        suppressions.append({"kind": "external", "status": "accepted", "justification": "in the baseline"})
    if suppressions:
        result["suppressions"] = suppressions
    if compared:
        result["baselineState"] = "unchanged" if finding.baselined else "new"
    properties: Object = {"confidence": finding.confidence.value} if finding.confidence is not Confidence.EXACT else {}
    properties |= {key: value for key, value in (("records", finding.records), ("field", finding.field)) if value}
    if properties:
        result["properties"] = properties
    return result


def _verdict(verdict: Verdict, places: dict[str, int]) -> Object:
    failed = verdict.state is State.BROKEN
    result: Object = {
        "ruleId": verdict.code,
        "ruleIndex": places[verdict.code],
        "kind": _KINDS[verdict.state],
        "level": _LEVELS[verdict.severity] if failed else "none",
        "message": {"text": _message(verdict.message or verdict.name.replace("-", " "), verdict.hint)},
    }
    if verdict.first is not None:
        result["locations"] = [_location(verdict.first.path, _region(verdict.first.line, snippet=verdict.first.text))]
    _add_evidence(result, verdict.evidence)
    return result


def _add_evidence(result: Object, evidence: Sequence[Evidence]) -> None:
    if evidence:
        result["relatedLocations"] = [{"id": at, **_place(e)} for at, e in enumerate(evidence, 1)]


def _code_flow(finding: Finding) -> Object:
    """From the finding along its evidence, in the order in which the engine gives the chain."""
    own = _location(finding.path, _region(finding.line, finding.column, finding.end_line, finding.end_column, finding.snippet))
    own["message"] = {"text": finding.message}
    steps: list[Object] = [own] + [_place(e) for e in finding.evidence]
    return {"threadFlows": [{"locations": [{"location": step, "executionOrder": at} for at, step in enumerate(steps, 1)]}]}


def _place(evidence: Evidence) -> Object:
    region = _region(evidence.line, evidence.column, evidence.line, evidence.end_column, evidence.text)
    return {**_location(evidence.path, region), "message": {"text": evidence.label or evidence.text.strip() or evidence.path}}


def _location(path: str, region: Object | None) -> Object:
    physical: Object = {"artifactLocation": {"uri": _uri(path)}}
    if region is not None:
        physical["region"] = region
    return {"physicalLocation": physical}


def _uri(path: str) -> str:
    """A relative POSIX path as a relative URI reference; an absolute one as a file URI."""
    posix = path.replace("\\", "/")
    quoted = quote(posix, safe="/~!$&'()*+,;=@", errors="surrogateescape")
    return f"file://{quoted}" if posix.startswith("/") else quoted


def _region(line: int, column: int = 0, end_line: int = 0, end_column: int = 0, snippet: str = "") -> Object | None:
    if line < 1:
        return None
    region: Object = {"startLine": line}
    if column > 0:
        region["startColumn"] = column
    if end_line >= line:
        region["endLine"] = end_line
        if end_column > 0 and (end_line > line or end_column >= column):
            region["endColumn"] = end_column
    if snippet:
        region["snippet"] = {"text": snippet.encode("utf-8", "replace").decode()}
    return region


def _fix(path: str, fix: Fix) -> Object:
    replacements = [
        {
            "deletedRegion": {"startLine": r.line, "startColumn": r.column, "endLine": r.end_line, "endColumn": r.end_column},
            "insertedContent": {"text": r.text},
        }
        for r in fix.replacements
    ]
    title = fix.title if fix.safe else f"{fix.title} (unsafe: may change what the program computes)"
    return {"description": {"text": title}, "artifactChanges": [{"artifactLocation": {"uri": _uri(path)}, "replacements": replacements}]}


def _message(message: str, hint: str) -> str:
    """Plain text. SARIF takes `{0}` for a placeholder and `[x](1)` for a link: braces are doubled, a link's bracket is escaped."""
    text = f"{message}\nhint: {hint}" if hint else message
    text = text.encode("utf-8", "replace").decode().replace("{", "{{").replace("}", "}}")
    return _LINK.sub(r"\\\1", text)
