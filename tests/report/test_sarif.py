"""SARIF: valid against the schema, and nothing that a code-scanning service needs is missing."""

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gyrecheck.model.finding import Evidence, Finding, Report, Severity
from gyrecheck.report import sarif
from gyrecheck.report.sarif import render
from gyrecheck.report.style import Style
from gyrecheck.rulebook.codes import Code

SCHEMA = json.loads((Path(__file__).parent / "schemas" / "sarif-2.1.0.json").read_text())
VALIDATOR = jsonschema.Draft4Validator(SCHEMA)


def written(report, exit_code=1):
    log = json.loads(render(report, exit_code=exit_code, style=Style()))
    VALIDATOR.validate(log)
    return log["runs"][0]


def test_golden(ci_report, golden, monkeypatch):
    """The bytes of a full report are kept; the rule's prose is fixed here, so that rewording a rule does not touch the golden file."""
    rule = Code("GYR203", "reward-model-in-loss", ("lint",), Severity.ERROR, what="What.", why="Why.", fix="Fix.")
    monkeypatch.setattr(sarif, "load_codes", lambda: {"GYR203": rule})
    golden("report.sarif", render(ci_report, exit_code=1, style=Style()))


def test_the_schema_refuses_what_is_wrong():
    """The validator is alive: a misspelt key and a line 0 are refused."""
    log = json.loads(render(Report("lint"), exit_code=0, style=Style()))
    log["runs"][0]["resluts"] = []
    assert not VALIDATOR.is_valid(log)


def test_an_empty_report_is_valid():
    """No findings: a run with an empty list of results, since a missing list reads as a run that failed."""
    run = written(Report("lint"), 0)
    assert run["results"] == []
    assert run["invocations"] == [{"executionSuccessful": True, "exitCode": 0}]


def test_the_chain_is_a_code_flow(ci_report):
    """The flow starts at the finding and follows the evidence in its order."""
    (flow,) = written(ci_report)["results"][0]["codeFlows"]
    steps = [s["location"]["physicalLocation"] for s in flow["threadFlows"][0]["locations"]]
    assert [(s["artifactLocation"]["uri"], s["region"]["startLine"]) for s in steps] == [
        ("src/agent/ppo%20one.py", 88),
        ("src/agent/ppo%20one.py", 130),
        ("src/agent/score.py", 12),
    ]


def test_suppressed_and_baselined_are_marked_not_dropped(ci_report):
    """Each of the seven findings is a result; two carry a suppression; every state is new or unchanged."""
    results = [r for r in written(ci_report)["results"] if "kind" not in r]
    assert len(results) == 7
    assert [r.get("suppressions", [{}])[0].get("kind") for r in results] == [None, None, None, "external", "inSource", None, None]
    assert [r["baselineState"] for r in results] == ["new", "new", "new", "unchanged", "new", "new", "new"]
    assert results[4]["suppressions"][0]["justification"] == "tests only"


def test_without_a_baseline_there_is_no_state():
    """`baselineState` is only written when there was something to compare with."""
    report = Report("lint", findings=(Finding("GYR203", "reward-model-in-loss", Severity.ERROR, "m", "a.py", 1),))
    assert "baselineState" not in written(report)["results"][0]


def test_fixes_and_fingerprints(ci_report):
    """A fix is a replacement with its region, an unsafe one says so; the fingerprint stands in both places."""
    result = written(ci_report)["results"][1]
    (fix,) = result["fixes"]
    assert "unsafe" in fix["description"]["text"]
    (replacement,) = fix["artifactChanges"][0]["replacements"]
    assert replacement["deletedRegion"] == {"startLine": 4, "startColumn": 1, "endLine": 4, "endColumn": 1}
    assert result["fingerprints"] == result["partialFingerprints"] == {"gyrecheck/v1": "bbbbbbbbbbbbbbbb"}


def test_messages_are_not_taken_for_placeholders_or_links(ci_report):
    """A brace is doubled and a link's bracket escaped, a plain bracket is left as it is."""
    text = written(ci_report)["results"][1]["message"]["text"]
    assert "\\[B, T](2) and {{0}}" in text


def test_verdicts_have_kinds(ci_report):
    """Broken is fail, undecided is open, holding is pass."""
    results = [r for r in written(ci_report)["results"] if "kind" in r]
    assert [(r["ruleId"], r["kind"], r["level"]) for r in results] == [
        ("GYR507", "fail", "error"),
        ("GYR404", "open", "none"),
        ("GYR501", "pass", "none"),
    ]


def test_rules_are_listed_once_and_found_by_index(ci_report):
    """`ruleIndex` points at the rule of the same id."""
    run = written(ci_report)
    rules = run["tool"]["driver"]["rules"]
    assert len({r["id"] for r in rules}) == len(rules)
    assert all(rules[r["ruleIndex"]]["id"] == r["ruleId"] for r in run["results"])


@pytest.mark.parametrize("code", [2, 4, 130])
def test_a_run_that_could_not_check_says_so(code):
    """An exit code that is no verdict is an unsuccessful execution."""
    assert written(Report("lint"), code)["invocations"][0]["executionSuccessful"] is False


@given(st.text(min_size=1, max_size=30), st.text(max_size=60), st.tuples(*[st.integers(0, 9)] * 4))
def test_any_finding_is_valid(path, text, span):
    """Whatever a path, message or span holds, the log is valid and survives UTF-8."""
    seen = (Evidence(path, span[0], text, span[1]),)
    finding = Finding("GYR203", "reward-model-in-loss", Severity.ERROR, text, path, *span, snippet=text, evidence=seen)
    log = render(Report("lint", findings=(finding,)), exit_code=1, style=Style())
    VALIDATOR.validate(json.loads(log.encode()))
