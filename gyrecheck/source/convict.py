"""Which findings of a file an ignore comment hides, and which ignore comments hide nothing (GYR002).

A comment hides a finding only when it names its code, gives a reason, has not expired and stands on its statement. Hidden findings
stay in the result, marked with the reason. A comment for a rule that was not judged in this run is never called unused.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from gyrecheck.model.errors import did_you_mean
from gyrecheck.model.finding import Finding, Severity, fingerprint
from gyrecheck.model.fix import Fix, Replacement
from gyrecheck.source.suppressions import MARKER, Suppression, read_suppressions

UNUSED = "GYR002"
UNPARSABLE = "GYR001"


def convict(
    path: str,
    source: bytes,
    findings: Sequence[Finding],
    *,
    today: date,
    codes: Mapping[str, str],
    judged: Container[str],
    severity: Severity = Severity.WARNING,
) -> tuple[Finding, ...]:
    """The file's findings, hidden ones marked, followed by one GYR002 for each comment or code that hides nothing.

    `codes` maps every known code to its name (comments may use either); `judged` holds the codes that this run looked for. `severity`
    is that of GYR002. A file that does not parse gets no GYR002, since its findings are not known.
    """
    if MARKER not in source:
        return tuple(findings)
    comments = read_suppressions(source)
    docket = _Docket(path, today, codes, judged, severity)
    result = [docket.judge(finding, comments) for finding in findings]
    if UNUSED in judged and all(finding.code != UNPARSABLE for finding in findings):
        result += [complaint for comment in comments if (complaint := docket.complaint(comment)) is not None]
    return tuple(result)


@dataclass(slots=True)
class _Docket:
    """One file before the court: what is known, and which (comment, code) pairs have hidden something."""

    path: str
    today: date
    codes: Mapping[str, str]
    judged: Container[str]
    severity: Severity
    used: set[tuple[Suppression, str]] = field(default_factory=set)

    def judge(self, finding: Finding, comments: Sequence[Suppression]) -> Finding:
        """The finding, marked with the reason of the nearest comment that hides it; statement before file."""
        for comment in sorted(comments, key=lambda c: c.whole_file):
            if self._in_force(comment) and comment.covers(finding.line):
                for code in comment.codes:
                    if code in {finding.code, finding.name}:
                        self.used.add((comment, code))
                        return replace(finding, suppressed=comment.reason)
        return finding

    def _in_force(self, comment: Suppression) -> bool:
        return bool(comment.reason) and not comment.problem and (comment.until is None or self.today <= comment.until)

    def complaint(self, comment: Suppression) -> Finding | None:
        """What is wrong with a comment, the gravest first; None when it does its work or was not judged."""
        named = ", ".join(comment.codes)
        numbers = {name: code for code, name in self.codes.items()}
        unknown = [c for c in comment.codes if c not in self.codes and c not in numbers]
        if comment.problem:
            return self._finding(comment, f"{comment.problem}; nothing is hidden", "write # gyre: ignore[CODE] reason")
        if unknown:
            near = did_you_mean(unknown[0], [*self.codes, *numbers]) or "gyrecheck rules lists all codes"
            return self._finding(comment, f"unknown rule code `{unknown[0]}` in an ignore comment", near)
        if not comment.reason:
            message = f"the ignore comment for {named} gives no reason, so nothing is hidden"
            return self._finding(comment, message, "say why after the bracket")
        if comment.until is not None and self.today > comment.until:
            message = f"the ignore comment for {named} expired on {comment.until.isoformat()}, so nothing is hidden"
            return self._finding(comment, message, "mend the cause, or set a new date")
        idle = [c for c in comment.codes if (comment, c) not in self.used and numbers.get(c, c) in self.judged]
        if not idle:
            return None
        where = "in this file" if comment.whole_file else "here"
        message = f"the ignore comment for {', '.join(idle)} hides nothing {where}"
        if len(idle) < len(comment.codes):
            return self._finding(comment, message, f"remove {', '.join(idle)} from it")
        return self._finding(comment, message, "remove it", _removal(comment) if comment.alone else None)

    def _finding(self, comment: Suppression, message: str, hint: str, fix: Fix | None = None) -> Finding:
        return Finding(
            code=UNUSED,
            name=self.codes.get(UNUSED, "unused-suppression"),
            severity=self.severity,
            message=message,
            path=self.path,
            line=comment.line,
            column=comment.column,
            end_line=comment.line,
            end_column=comment.end_column,
            hint=hint,
            fingerprint=fingerprint(UNUSED, self.path, *comment.codes, comment.reason),
            fixes=(fix,) if fix else (),
        )


def _removal(comment: Suppression) -> Fix:
    end = (comment.line + 1, 1) if comment.lead == 1 else (comment.line, comment.end_column)
    return Fix("remove the ignore comment", safe=True, replacements=(Replacement(comment.line, comment.lead, *end, ""),))
