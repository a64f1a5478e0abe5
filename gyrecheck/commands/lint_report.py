"""From what was judged to what is shown: selection, per-path ignores, suppressions, hints, then the report with its closing line."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from gyrecheck.commands.lint_check import Judged, Timer, unparsable
from gyrecheck.commands.lint_compare import Accepted
from gyrecheck.commands.lint_fix import Mender
from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import Confidence, Finding, Report, Scalar, Severity, Table, Topology
from gyrecheck.rulebook.codes import Code, select_codes
from gyrecheck.rulebook.project_config import ProjectConfig, fits
from gyrecheck.source.texts import Text

if TYPE_CHECKING:
    from gyrecheck.model.facts import Unreadable

_MARKER = b"gyre:"


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which findings a run shows."""

    codes: frozenset[str]
    per_path: tuple[tuple[str, frozenset[str]], ...]
    hints: bool
    suppressed: bool
    root: str

    @classmethod
    def of(
        cls,
        codes: dict[str, Code],
        settings: ProjectConfig,
        select: tuple[str, ...],
        extend: tuple[str, ...],
        ignore: tuple[str, ...],
        *,
        hints: bool,
        suppressed: bool,
    ) -> Chosen:
        """Command line first, then the project's settings.

        Raises:
            GyreError: a code, prefix or name that fits none, or a selection that leaves no code.
        """
        chosen = set(select_codes(codes, select or settings.select, ()))
        more = (*settings.extend_select, *extend)
        if more:
            chosen |= select_codes(codes, more, (), option="--extend-select")
        left_out = (*settings.ignore, *ignore)
        if left_out:
            chosen -= select_codes(codes, left_out, (), option="--ignore")
        if not chosen:
            raise GyreError("no rule is left to check: the selection is empty", hint="gyrecheck rules lists all codes")
        ignored = settings.per_path_ignores.items()
        per_path = tuple((glob, select_codes(codes, entries, (), option="per-path-ignores")) for glob, entries in ignored)
        return cls(frozenset(chosen), per_path, hints, suppressed, settings.root)

    def shows(self, finding: Finding) -> bool:
        """Whether a finding passes selection, per-path ignores and the hints switch."""
        if finding.code not in self.codes or (finding.confidence is Confidence.HINT and not self.hints):
            return False
        return not any(finding.code in codes and fits(finding.path, glob, self.root) for glob, codes in self.per_path)


def report_of(
    judged: Judged,
    texts: tuple[Text, ...],
    failed: tuple[Unreadable, ...],
    chosen: Chosen,
    codes: dict[str, Code],
    *,
    inputs: tuple[str, ...],
    declared: bool,
    timer: Timer | None,
    duties: bool,
    accepted: Accepted | None = None,
    mender: Mender | None = None,
) -> Report:
    """The report of a lint run; findings accepted before are marked, and fixes planned, when there are means to."""
    findings = tuple(f for f in (*(unparsable(u, codes) for u in failed), *judged.findings) if chosen.shows(f))
    findings = with_suppressions(findings, texts, chosen.codes, codes)
    if accepted is not None:
        findings = accepted.mark(findings, frozenset((*(t.file.shown for t in texts), *(u.path for u in failed))))
    if mender is not None:
        findings = mender.plan(findings, texts)
    findings = _relocated(findings, texts)
    tables: dict[str, Table] = {}
    if duties:
        tables["duties"] = Table(("duty", "function", "place", "why"), judged.duties, "Duties")
    statistics = _statistics(judged, findings, texts, timer) if timer is not None else {}
    if timer is not None:
        counts = Counter((f.code, f.name, f.severity.value) for f in findings if not f.suppressed)
        rows = tuple((*key, n) for key, n in sorted(counts.items()))
        tables["statistics"] = Table(("code", "name", "severity", "count"), rows, "Findings by code")
        tables["run"] = Table(("quantity", "value"), tuple(statistics.items()), "Run")
    if accepted is not None and accepted.compares:
        statistics = {**statistics, "baselined": sum(f.baselined for f in findings)}
    hidden = [f for f in findings if f.suppressed]
    shown = [f for f in findings if not f.suppressed and not f.baselined]
    return Report(
        command="lint",
        inputs=inputs,
        topology=judged.topology,
        topology_reason=judged.reason,
        findings=findings,
        tables=tables,
        sentences=tuple(f"Suppressed {f.code} at {f.path}:{f.line}: {f.suppressed}" for f in hidden) if chosen.suppressed else (),
        summary="\n".join(
            [
                _summary(judged, shown, hidden, len(texts) + len(failed), declared=declared),
                *(accepted.summary(findings) if accepted is not None else ()),
            ]
        ),
        skipped=(),
        unresolved=judged.unresolved,
        statistics=statistics,
        next=f"gyrecheck explain {shown[0].code}" if shown else "",
    )


def none_checked(judged: Judged, texts: tuple[Text, ...], failed: tuple[Unreadable, ...]) -> bool:
    """There were files, and not one of them could be read and parsed."""
    unread = {u.path for u in failed} | {f.path for f in judged.findings if f.code == "GYR001"}
    return bool(unread) and unread >= {t.file.shown for t in texts}


def as_unchecked(report: Report) -> Report:
    """The report when no file could be checked: nothing in it may promise that others were."""
    hint = "no file could be checked: mend its syntax, or name another path"
    findings = tuple(replace(f, hint=hint) if f.code == "GYR001" else f for f in report.findings)
    return replace(report, findings=findings, summary="Nothing was checked: no file could be read as Python.")


def _summary(judged: Judged, shown: list[Finding], hidden: list[Finding], files: int, *, declared: bool) -> str:
    how = judged.topology if declared else f"{judged.topology}, inferred"
    sides = f"({how}: sampling {judged.sampling}, training {judged.training}, handoff {judged.handoff})"
    total = f"{files} file{'s' if files != 1 else ''}"
    if not shown:
        first = f"No findings in {total} {sides}."
    else:
        counts = [(sum(f.severity is s for f in shown), s.value) for s in (Severity.ERROR, Severity.WARNING, Severity.NOTE)]
        words = ", ".join(f"{n} {word}{'s' if n != 1 else ''}" for n, word in counts if n)
        inside = len({f.path for f in shown})
        place = f"{inside} of {total}" if files > 1 else total
        first = f"Found {words} in {place} {sides}."
    more = [f"Suppressed: {len(hidden)} (with reason)."] if hidden else []
    more += [f"Not resolved: {judged.unresolved} calls."] if judged.unresolved else []
    if judged.synchronous and not declared and judged.topology == Topology.SYNCHRONOUS.value:
        more.append("Boundary rules were not applied to synchronous code; --topology decoupled applies them.")
    return "\n".join([first, *([" ".join(more)] if more else [])])


def with_suppressions(
    findings: tuple[Finding, ...], texts: tuple[Text, ...], judged: frozenset[str], codes: dict[str, Code]
) -> tuple[Finding, ...]:
    """The findings with hidden ones marked, and one for each ignore comment that hides nothing."""
    marked = [t for t in texts if _MARKER in t.data]
    if not marked:
        return findings
    from gyrecheck.source.convict import convict

    today = datetime.now(timezone.utc).date()
    names = {number: code.name for number, code in codes.items()}
    by_path: dict[str, list[Finding]] = {}
    for finding in findings:
        by_path.setdefault(finding.path, []).append(finding)
    for text in marked:
        path = text.file.shown
        by_path[path] = list(convict(path, text.data, by_path.get(path, []), today=today, codes=names, judged=judged))
    return tuple(sorted((f for found in by_path.values() for f in found), key=lambda f: (f.path, f.line, f.column, f.code)))


def _relocated(findings: tuple[Finding, ...], texts: tuple[Text, ...]) -> tuple[Finding, ...]:
    books = {t.file.shown: t.raw for t in texts if t.file.shown.endswith(".ipynb")}
    if not any(f.path in books for f in findings):
        return findings
    from gyrecheck.source.notebooks import read_notebook

    opened = {shown: read_notebook(raw) for shown, raw in books.items() if any(f.path == shown for f in findings)}
    return tuple(opened[f.path].relocate(f, f.path) if f.path in opened else f for f in findings)


def _statistics(judged: Judged, findings: tuple[Finding, ...], texts: tuple[Text, ...], timer: Timer) -> dict[str, Scalar]:
    known = judged.resolved + judged.unresolved
    out: dict[str, Scalar] = {
        "files": len(texts),
        "lines": judged.lines,
        "functions": judged.functions,
        "findings": len(findings),
        "first_party_calls": known,
        "first_party_calls_resolved": judged.resolved,
        "call_resolution": round(judged.resolved / known, 4) if known else 1.0,
    }
    out.update({f"cpu_{stage}_s": round(seconds, 3) for stage, seconds in timer.stages.items()})
    return out
