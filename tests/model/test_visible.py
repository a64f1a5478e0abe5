"""Promises of text made safe to show."""

import json

from hypothesis import given
from hypothesis import strategies as st

from gyrecheck.model.finding import Finding, Report, Severity, Table
from gyrecheck.model.visible import visible, visible_data, visible_json, visible_lines, visible_painted


def test_what_a_terminal_obeys_becomes_its_escape():
    """ESC, BEL, the 8-bit CSI, a bidi override, a new line and a byte that was no text are each shown, and words of any script stay."""
    assert visible("a\x1b[31m\x07\x9b2J\u202eb\n") == "a\\x1b[31m\\x07\\x9b2J\\u202eb\\n"
    assert visible("\udcff\udcfe.log") == "\\xff\\xfe.log"
    assert visible("π ≥ 3\tмодель 模型") == "π ≥ 3\tмодель 模型"


def test_colours_of_ours_survive_and_nothing_else():
    """Of painted text only colour codes and new lines keep their effect."""
    assert visible_painted("\x1b[1;31merror\x1b[0m\n\x1b[2J\x1b]0;t\x07") == "\x1b[1;31merror\x1b[0m\n\\x1b[2J\\x1b]0;t\\x07"


@given(st.text())
def test_json_gives_the_same_text_back(text):
    """JSON made visible reads as the very same value, surrogates and all."""
    assert json.loads(visible_json(json.dumps({text: [text]}, ensure_ascii=False))) == {text: [text]}


@given(st.text(st.characters()))
def test_nothing_is_left_to_obey(text):
    """Whatever the text, one line comes out, and a second pass finds nothing more."""
    shown = visible(text)
    assert len(shown.splitlines()) <= 1
    assert visible_lines(shown) == shown


def test_every_string_of_a_report_is_made_visible():
    """Paths, messages and cells of a report are treated, and what needs nothing is the same object."""
    found = Finding("GYR203", "n", Severity.ERROR, "m\x1b", "a\nb.py")
    report = Report("lint", ("a\nb.py",), findings=(found,), tables={"t": Table(("k\x07",), (("\u202e", 1),))})
    shown = visible_data(report)
    assert (shown.inputs, shown.findings[0].path, shown.findings[0].message) == (("a\\nb.py",), "a\\nb.py", "m\\x1b")
    assert (shown.tables["t"].columns, shown.tables["t"].rows) == (("k\\x07",), (("\\u202e", 1),))
    assert shown.findings[0].severity is Severity.ERROR
    clean = Report("lint", ("a.py",))
    assert visible_data(clean) is clean
