"""The report for a person: heading, tables, what holds in a sentence each, then every finding and verdict with its evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gyrecheck.model.finding import State
from gyrecheck.report.table import text_table

if TYPE_CHECKING:
    from gyrecheck.model.finding import Evidence, Finding, Report, Verdict
    from gyrecheck.report.style import Style


def render(report: Report, *, exit_code: int, style: Style) -> str:
    """Blocks parted by blank lines; only tables and heading are fitted, and only to a terminal that has a width."""
    del exit_code
    blocks: list[list[str]] = [[part for line in report.heading for part in _folded(line, style.width)]]
    blocks += [text_table(table, width=style.width) for table in report.tables.values() if table.rows]
    blocks += [_steps(v, style) for v in report.verdicts if v.steps and v.state is not State.HOLDS]
    blocks.append([*(v.message for v in report.verdicts if v.state is State.HOLDS and v.message), *report.sentences])
    blocks += [_broken(v, style) for v in report.verdicts if v.state is State.BROKEN]
    blocks += [finding_block(f, style) for f in report.shown]
    blocks += [_broken(v, style) for v in report.verdicts if v.state is State.UNDECIDED]
    blocks.append([f"Not judged: {text}" for text in report.not_judged])
    closing = ["Interrupted: this report is partial."] if report.partial else []
    closing += [report.summary] if report.summary else []
    closing += [f"Skipped: {text}" for text in report.skipped]
    blocks.append(closing)
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _folded(line: str, width: int) -> list[str]:
    if not width or len(line) <= width:
        return [line]
    import textwrap

    return textwrap.wrap(line, width, subsequent_indent=" " * 11, break_on_hyphens=False) or [line]


def finding_block(finding: Finding, style: Style) -> list[str]:
    """One finding: head line, place, source frame where there is source, further evidence, hint."""
    word = finding.severity.value
    sure = " (by name only)" if finding.confidence.value == "hint" else ""
    lines = [f"{style.paint(f'{word}[{finding.code}]', word)} {style.paint(finding.name, 'code')}: {finding.message}{sure}"]
    place = finding.path + (f":{finding.line}" if finding.line else "") + (f":{finding.column}" if finding.column else "")
    there = f"  {style.paint('-->', 'place')} {place}"
    lines.append(there + (f"   records {finding.records}" if finding.records not in {"", str(finding.line)} else ""))
    if finding.snippet:
        lines += _frame(finding, style)
        others = [e for e in finding.evidence if e.path != finding.path or not e.text]
    else:
        others = list(finding.evidence)
        first = next((e for e in others if (e.path, e.line) == (finding.path, finding.line) and e.text and not e.label), None)
        if first is not None and lines[-1] == there:  # nothing is said of the place yet
            lines[-1] = f"{there}   {first.text.strip()}"
            others.remove(first)
    lines += [_because(e) for e in others]
    lines += _hint(finding.hint, style)
    return lines


def _frame(finding: Finding, style: Style) -> list[str]:
    spans: list[tuple[int, str, int, int, str, str]] = [
        (finding.line, finding.snippet, finding.column, _end(finding), "^", ""),
    ]
    own = [e for e in finding.evidence if e.path == finding.path and e.text]
    spans += [(e.line, e.text, e.column, e.end_column, "-", e.label) for e in own]
    spans.sort(key=lambda span: (span[0], span[4] == "^"))
    width = max(len(str(span[0])) for span in spans)
    gutter = " " * width
    bar = style.paint("|", "place")
    lines = [f"{gutter} {bar}"]
    previous = 0
    for line, text, column, end, mark, label in spans:
        if line != previous:
            lines.append(f"{style.paint(str(line).rjust(width), 'place')} {bar} {text}")
        previous = line
        start = max(column, 1)
        length = max(1, (end if end > start else start + 1) - start)
        lead = "".join("\t" if ch == "\t" else " " for ch in text[: start - 1]).ljust(start - 1)
        marks = mark * min(length, max(1, len(text) - start + 1))
        note = f" because: {label.removeprefix('because: ')}" if label else ""
        lines.append(f"{gutter} {bar} {lead}{style.paint(marks, finding.severity.value if mark == '^' else 'place')}{note}")
    return [*lines, f"{gutter} {bar}"]


def _end(finding: Finding) -> int:
    return finding.end_column if finding.end_line in {0, finding.line} else len(finding.snippet) + 1


def _because(evidence: Evidence) -> str:
    place = f"{evidence.path}:{evidence.line}" if evidence.line else evidence.path
    label = evidence.label.removeprefix("because: ")
    if evidence.text and label:
        return f"   because: {label}: {place}   {evidence.text.strip()}"
    return f"   because: {label} ({place})" if label else f"  --> {place}   {evidence.text.strip()}".rstrip()


def _hint(hint: str, style: Style) -> list[str]:
    return [f" {style.paint('hint:', 'dim')} {hint}"] if hint else []


def _broken(verdict: Verdict, style: Style) -> list[str]:
    word = "undecided" if verdict.state is State.UNDECIDED else verdict.severity.value
    lines = [f"{style.paint(f'{word}[{verdict.code}]', word)} {style.paint(verdict.name, 'code')}: {verdict.message}"]
    if verdict.first is not None:
        place, at = f"{verdict.first.path}:{verdict.first.line}", f" at {verdict.first.time}" if verdict.first.time else ""
        lines.append(f"  {style.paint('-->', 'place')} {place}   {verdict.first.text.strip()}{at}".rstrip())
    known = (verdict.first.path, verdict.first.line) if verdict.first else None
    lines += [_because(e) for e in verdict.evidence if (e.path, e.line) != known]
    return lines + _hint(verdict.hint, style)


def _steps(verdict: Verdict, style: Style) -> list[str]:
    lines = [f"Diagnosis: {verdict.name.replace('-', ' ')}"]
    width = max(len(step.name) for step in verdict.steps)
    lines += [
        f"  {at}  {step.name.ljust(width)}  {style.paint(step.state, step.state)}{' ' * (9 - len(step.state))}  {step.message}".rstrip()
        for at, step in enumerate(verdict.steps, 1)
    ]
    return lines
