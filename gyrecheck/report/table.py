"""Tables as text, Markdown and CSV."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from gyrecheck.report.style import number

if TYPE_CHECKING:
    from gyrecheck.model.finding import Report, Table
    from gyrecheck.report.style import Style


def text_table(table: Table, indent: str = "  ") -> list[str]:
    """Aligned lines: numbers to the right, words to the left, no rules; nothing is cut."""
    cells = [tuple(number(cell) for cell in row) for row in table.rows]
    numeric = [
        bool(table.rows) and all(row[at] is None or isinstance(row[at], (int, float)) for row in table.rows)
        for at in range(len(table.columns))
    ]
    headed = any(table.columns)
    widths = [max([len(head) if headed else 0, *(len(row[at]) for row in cells)]) for at, head in enumerate(table.columns)]
    lines = [table.title] if table.title else []
    rows = [tuple(table.columns), *cells] if headed else cells
    for row in rows:
        parts = [cell.rjust(width) if right else cell.ljust(width) for cell, width, right in zip(row, widths, numeric, strict=True)]
        lines.append((indent + "  ".join(parts)).rstrip())
    if table.note:
        lines.append(indent + table.note)
    return lines


def render_markdown(report: Report, *, exit_code: int, style: Style) -> str:
    """Headings, one table each, findings and verdicts as lists."""
    del style
    lines = [f"# gyrecheck {report.command}", ""]
    lines += [*report.heading, ""] if report.heading else []
    for name, table in report.tables.items():
        lines += [f"## {table.title or name}", "", "| " + " | ".join(c or " " for c in table.columns) + " |"]
        lines.append("|" + "---|" * len(table.columns))
        lines += ["| " + " | ".join(number(cell).replace("|", "\\|") for cell in row) + " |" for row in table.rows]
        lines.append("")
    if report.findings or report.verdicts:
        lines += ["## Verdicts", ""]
        for verdict in report.verdicts:
            place = f" (`{verdict.first.path}:{verdict.first.line}`)" if verdict.first else ""
            lines.append(f"- **{verdict.state.value}** {verdict.code} {verdict.name}: {verdict.message}{place}")
        for finding in report.shown:
            lines.append(
                f"- **{finding.severity.value}** {finding.code} {finding.name}: {finding.message} (`{finding.path}:{finding.line}`)"
            )
        lines.append("")
    lines += [f"- {sentence}" for sentence in report.sentences]
    lines += [f"- Not judged: {text}" for text in report.not_judged]
    lines += [report.summary] if report.summary else []
    lines += ["", f"Exit {exit_code}.", ""]
    return "\n".join(lines)


def render_csv(report: Report, *, exit_code: int, style: Style) -> str:
    """The first table of the report, or the findings when it has none; the header is always there."""
    del exit_code, style
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if report.tables:
        table = next(iter(report.tables.values()))
        writer.writerow(table.columns)
        writer.writerows(table.rows)
    else:
        writer.writerow(("code", "name", "severity", "path", "line", "column", "message"))
        writer.writerows((f.code, f.name, f.severity.value, f.path, f.line, f.column, f.message) for f in report.shown)
    return out.getvalue()
