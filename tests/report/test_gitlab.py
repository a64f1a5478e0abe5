"""GitLab Code Quality: the required keys, and a fingerprint of its own for each issue."""

import json

from gyrecheck.model.finding import Report
from gyrecheck.report.gitlab import render
from gyrecheck.report.style import Style


def test_golden(ci_report, golden):
    """The bytes of a full report are kept."""
    golden("report.gitlab.json", render(ci_report, exit_code=1, style=Style()))


def test_each_issue_has_the_required_keys_and_its_own_fingerprint(ci_report):
    """Two findings of one fingerprint become two issues; five shown findings and one broken verdict are six."""
    issues = json.loads(render(ci_report, exit_code=1, style=Style()))
    assert len(issues) == 6
    assert len({i["fingerprint"] for i in issues}) == 6
    for issue in issues:
        assert set(issue) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert issue["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert 1 <= issue["location"]["lines"]["begin"] <= issue["location"]["lines"]["end"]


def test_nothing_found_is_an_empty_array():
    """GitLab takes an empty array for `all fixed`."""
    assert json.loads(render(Report("lint"), exit_code=0, style=Style())) == []
