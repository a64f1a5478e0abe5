"""JUnit XML: well formed whatever the text, and the counts add up."""

import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from gyrecheck.model.finding import Finding, Report, Severity
from gyrecheck.report.junit import render
from gyrecheck.report.style import Style


def parsed(report):
    return ET.fromstring(render(report, exit_code=1, style=Style()).encode())  # noqa: S314 - our own text


def test_golden(ci_report, golden):
    """The bytes of a full report are kept."""
    golden("report.junit.xml", render(ci_report, exit_code=1, style=Style()))


def test_counts_add_up(ci_report):
    """10 cases: 7 findings (4 failures, 2 skipped, 1 note) and 3 verdicts (1 failure, 1 skipped, 1 pass)."""
    root = parsed(ci_report)
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("10", "5", "3")
    for suite in root:
        assert int(suite.get("tests")) == len(suite.findall("testcase"))
        assert int(suite.get("failures")) == len(suite.findall("testcase/failure"))
        assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped"))


def test_a_clean_report_is_one_passing_case():
    """No findings: one case that passes, named by the summary."""
    root = parsed(Report("lint", summary="No findings in 3 files."))
    assert [case.get("name") for case in root.iter("testcase")] == ["No findings in 3 files."]
    assert root.get("failures") == "0"


@given(st.text(max_size=50), st.text(min_size=1, max_size=20))
def test_any_text_is_well_formed(message, path):
    """Control characters that XML cannot hold are replaced; the rest arrives unchanged."""
    report = Report("lint", findings=(Finding("GYR203", "n", Severity.ERROR, message, path, 1),))
    failure = parsed(report).find("testsuite/testcase/failure")
    if message.isprintable():
        assert failure.get("message") == message
