"""GitHub annotations: the right command, and no text that could start another."""

from gyrecheck.model.finding import Finding, Report, Severity
from gyrecheck.report.github import render
from gyrecheck.report.style import Style


def test_golden(ci_report, golden):
    """The bytes of a full report are kept."""
    golden("report.github.txt", render(ci_report, exit_code=1, style=Style()))


def test_only_what_counts_is_annotated(ci_report):
    """Five of seven findings are shown (one suppressed, one baselined), and two of three verdicts do not hold."""
    lines = render(ci_report, exit_code=1, style=Style()).splitlines()
    assert sum(line.startswith("::") for line in lines) == 5 + 2


def test_a_message_cannot_start_a_command():
    """Line breaks, percent signs, colons and commas are escaped where they would end the field."""
    finding = Finding("GYR203", "n", Severity.ERROR, "a\n::set-output name=x::1\r100%", "b,c:d.py", 2)
    (line,) = render(Report("lint", findings=(finding,)), exit_code=1, style=Style()).splitlines()
    assert line == "::error file=b%2Cc%3Ad.py,line=2,title=GYR203 n::a%0A::set-output name=x::1%0D100%25"


def test_columns_only_on_one_line(ci_report):
    """An annotation of several lines has no columns, since Actions refuses them."""
    lines = render(ci_report, exit_code=1, style=Style()).splitlines()
    assert lines[0].startswith("::error file=src/agent/ppo one.py,line=88,endLine=88,col=18,endColumn=50,title=")
    assert lines[1].startswith("::warning file=src/a.py,line=3,endLine=4,title=")
