"""Tables as text, Markdown and CSV."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from gyrecheck.report.style import number

if TYPE_CHECKING:
    from gyrecheck.model.finding import Report, Table
    from gyrecheck.report.style import Style

_LEAST = 6
"""Columns that a column of words keeps."""
_MOST = 3
"""Lines that a folded cell may take; what is longer ends with `…`."""


def text_table(table: Table, indent: str = "  ", width: int = 0) -> list[str]:
    """Aligned lines: numbers to the right, words to the left, no rules; folded only where a `width` is given, words first, and cut after a few lines."""
    cells = [tuple(number(cell) for cell in row) for row in table.rows]
    numeric = [
        bool(table.rows) and all(row[at] is None or isinstance(row[at], (int, float)) for row in table.rows)
        for at in range(len(table.columns))
    ]
    headed = any(table.columns)
    widths = [max([len(head) if headed else 0, *(len(row[at]) for row in cells)]) for at, head in enumerate(table.columns)]
    if width:
        _fit(widths, numeric, width - len(indent))
    lines = [table.title] if table.title else []
    rows = [tuple(table.columns), *cells] if headed else cells
    for row in rows:
        folded = [_folded(cell, room) for cell, room in zip(row, widths, strict=True)]
        for at in range(max(map(len, folded))):
            part = [cell[at] if at < len(cell) else "" for cell in folded]
            parts = [cell.rjust(room) if right else cell.ljust(room) for cell, room, right in zip(part, widths, numeric, strict=True)]
            lines.append((indent + "  ".join(parts)).rstrip())
    if table.note:
        lines.append(indent + table.note)
    return lines


def _folded(cell: str, room: int) -> list[str]:
    if len(cell) <= room:
        return [cell]
    import textwrap  # only a narrow terminal pays for it

    return textwrap.wrap(cell, room, max_lines=_MOST, placeholder="…")


def _fit(widths: list[int], numeric: list[bool], room: int) -> None:
    """Take from the widest column of words until the row fits, or no column of words has more than its least."""
    while sum(widths) + 2 * (len(widths) - 1) > room:
        at = max((at for at in range(len(widths)) if not numeric[at]), key=lambda at: widths[at], default=-1)
        if at < 0 or widths[at] <= _LEAST:
            return
        widths[at] -= 1


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
