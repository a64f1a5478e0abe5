"""A report as one self-contained page: no network, light and dark, printable; every text of a log is escaped."""

from __future__ import annotations

from html import escape

from gyrecheck.model.finding import Report, State, Table, Verdict
from gyrecheck.report.figure import Plot, render_image
from gyrecheck.report.style import Style

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --soft: #5b6575; --paper: #ffffff; --card: #f5f7fa; --line: #d8dde5;
  --bad: #b4232f; --warn: #8a5a00; --good: #1d6b3a; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ef; --soft: #9aa4b5; --paper: #14181f; --card: #1d232d; --line: #333c4a;
    --bad: #ff8088; --warn: #e8b04a; --good: #6fcf97; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 2rem 1.25rem; font: 16px/1.55 system-ui, sans-serif;
  color: var(--ink); background: var(--paper); }
h1 { font-size: 1.4rem; margin: 0 0 .25rem; }
h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
.soft { color: var(--soft); }
code, pre, td.n { font-family: ui-monospace, monospace; font-size: .88em; }
article { background: var(--card); border-left: 4px solid var(--line); padding: .75rem 1rem; margin: .75rem 0;
  border-radius: 4px; break-inside: avoid; }
article.error { border-color: var(--bad); }
article.warning { border-color: var(--warn); }
article.holds { border-color: var(--good); }
article b { font-weight: 650; }
article pre { margin: .4rem 0; white-space: pre-wrap; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
.wide { overflow-x: auto; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); }
td.n { text-align: right; white-space: nowrap; }
figure { margin: 1rem 0; background: #ffffff; border: 1px solid var(--line); border-radius: 4px; padding: .5rem; }
figure svg { width: 100%; height: auto; display: block; }
@media print { body { max-width: none; padding: 0; } article { border: 1px solid #999999; } }
"""


def render(report: Report, *, exit_code: int, style: Style) -> str:
    """The page without curves."""
    del exit_code, style
    return render_page(report, ())


def render_page(report: Report, plots: tuple[Plot, ...]) -> str:
    """The whole page: what was found first, then what holds, curves, tables."""
    title = f"gyrecheck {report.command}: {report.summary or ', '.join(report.inputs)}"
    parts = [f"<h1>{escape(title)}</h1>", *(f'<div class="soft">{escape(line)}</div>' for line in report.heading)]
    parts += [_verdict(v) for v in sorted(report.verdicts, key=lambda v: v.state is State.HOLDS)]
    parts += [f"<p>{escape(text)}</p>" for text in report.sentences]
    if plots:
        svg = render_image(plots, "svg").decode("utf-8")
        parts.append(f'<h2>Curves</h2><figure role="img" aria-label="curves of the run">{svg[svg.index("<svg") :]}</figure>')
    parts += [_table(name, table) for name, table in report.tables.items() if table.rows]
    if report.not_judged or report.skipped:
        parts.append(
            "<h2>Not judged</h2>" + "".join(f'<p class="soft">{escape(text)}</p>' for text in (*report.not_judged, *report.skipped))
        )
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _verdict(verdict: Verdict) -> str:
    word = {State.HOLDS: "holds", State.UNDECIDED: "undecided"}.get(verdict.state, verdict.severity.value)
    lines = [f'<article class="{word}"><div><b>{escape(word)}</b> <code>{escape(verdict.code)}</code> {escape(verdict.name)}</div>']
    lines.append(f"<div>{escape(verdict.message)}</div>")
    if verdict.steps:
        rows = "".join(f"<tr><td>{escape(s.name)}</td><td>{escape(s.state)}</td><td>{escape(s.message)}</td></tr>" for s in verdict.steps)
        lines.append(f'<div class="wide"><table>{rows}</table></div>')
    places = [(verdict.first.path, verdict.first.line, "", verdict.first.text)] if verdict.first else []
    places += [(e.path, e.line, e.label, e.text) for e in verdict.evidence if not places or (e.path, e.line) != places[0][:2]]
    for path, line, label, text in places:
        where = f"{path}:{line}" if line else path
        lines.append(f"<pre>{escape((label + ': ') if label else '')}{escape(where)}  {escape(text)}</pre>")
    if verdict.hint:
        lines.append(f'<div class="soft">hint: {escape(verdict.hint)}</div>')
    return "\n".join([*lines, "</article>"])


def _table(name: str, table: Table) -> str:
    head = "".join(f"<th>{escape(str(column))}</th>" for column in table.columns)
    rows = "".join("<tr>" + "".join(_cell(cell) for cell in row) + "</tr>" for row in table.rows)
    return f'<h2>{escape(table.title or name)}</h2><div class="wide"><table><tr>{head}</tr>{rows}</table></div>'


def _cell(cell: object) -> str:
    text = "" if cell is None else str(cell)
    number = text[:1].isdigit() or text[:1] == "-"
    return f'<td class="n">{escape(text)}</td>' if number else f"<td>{escape(text)}</td>"
