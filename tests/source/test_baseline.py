"""The baseline: what it accepts, what it calls new, how it shrinks, and what it refuses to read."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import Finding, Severity, fingerprint
from gyrecheck.source.baseline import Entry, baseline_text, compare, entries_of, read_baseline


def found(path="a.py", line=1, target="env.step", code="GYR204"):
    return Finding(code, "rollout-inside-update", Severity.ERROR, target, path, line, fingerprint=fingerprint(code, path, target))


def stored(tmp_path, findings):
    path = tmp_path / "baseline.json"
    path.write_text(baseline_text(entries_of(findings)))
    return read_baseline(path)


def test_accepted_findings_are_marked_and_kept(tmp_path):
    """The same findings at other lines are all baselined, and none is dropped."""
    old = [found(line=3), found("b.py", 9)]
    new = [replace(f, line=f.line + 40) for f in old]
    marked, stale = compare(new, stored(tmp_path, old))
    assert [f.baselined for f in marked] == [True, True]
    assert stale == ()


def test_one_more_of_the_same_is_new(tmp_path):
    """Two accepted, three found: the lowest in the file is the new one, wherever it stands in the list."""
    marked, stale = compare([found(line=30), found(line=5), found(line=7)], stored(tmp_path, [found(line=1), found(line=2)]))
    assert [(f.line, f.baselined) for f in marked] == [(30, False), (5, True), (7, True)]
    assert stale == ()


def test_mended_findings_make_the_file_shrink(tmp_path):
    """Three accepted, one left: two are stale, and writing again holds one."""
    baseline = stored(tmp_path, [found(line=1), found(line=2), found(line=3)])
    assert [e.count for e in baseline] == [3]
    marked, stale = compare([found(line=9)], baseline)
    assert [e.count for e in stale] == [2]
    assert [e.count for e in stored(tmp_path, marked)] == [1]


def test_a_file_not_checked_is_not_stale(tmp_path):
    """A run over one folder says nothing about the entries of another."""
    baseline = stored(tmp_path, [found("a.py"), found("b.py")])
    _, stale = compare([], baseline, checked={"a.py"})
    assert [e.path for e in stale] == ["a.py"]


def test_suppressed_findings_take_no_part(tmp_path):
    """A finding with an ignore comment is neither written nor does it use up an entry."""
    quiet = replace(found(), suppressed="why")
    assert entries_of([quiet]) == ()
    marked, stale = compare([quiet], stored(tmp_path, [found()]))
    assert [f.baselined for f in marked] == [False]
    assert len(stale) == 1


def test_the_text_is_stable_and_readable(tmp_path):
    """Any order of findings gives the same bytes, one line an entry, in UTF-8."""
    findings = [found("b.py", target="é"), found("a.py"), found("a.py", 4)]
    text = baseline_text(entries_of(findings))
    assert text == baseline_text(entries_of(findings[::-1]))
    assert json.loads(text)["entries"][0] == {
        "fingerprint": fingerprint("GYR204", "a.py", "env.step"),
        "code": "GYR204",
        "path": "a.py",
        "message": "env.step",
        "count": 2,
    }
    assert len(text.splitlines()) == 4 + 2 + 2
    assert json.loads(baseline_text(()))["entries"] == []


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "no valid JSON"),
        ("[" * 100_000, "no valid JSON"),
        ("[]", "no baseline of schema 1"),
        ('{"schema": 2, "entries": []}', "no baseline of schema 1"),
        ('{"schema": 1, "entries": [3]}', "entry 1 is 3"),
        ('{"schema": 1, "entries": [{"fingerprint": "x", "code": "c", "path": "p", "message": "m", "count": "1"}]}', "`count` '1'"),
    ],
)
def test_a_broken_file_is_refused(tmp_path, text, word):
    """A baseline that does not load ends the run with one sentence, since an empty one would report old findings as new."""
    path = tmp_path / "baseline.json"
    path.write_text(text)
    with pytest.raises(GyreError, match=word):
        read_baseline(path)


def test_a_missing_file_is_refused_with_the_command_that_makes_it(tmp_path):
    """The hint names `--write-baseline`."""
    with pytest.raises(GyreError) as error:
        read_baseline(tmp_path / "none.json")
    assert "--write-baseline" in error.value.hint


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9))), st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9))))
def test_numbers_add_up(before, after):
    """For any two runs: accepted + stale = what the baseline holds, accepted + new = what was found."""
    old = entries_of([found(target=t, line=n) for t, n in before])
    marked, stale = compare([found(target=t, line=n) for t, n in after], old)
    accepted = sum(f.baselined for f in marked)
    assert accepted + sum(e.count for e in stale) == len(before)
    assert len(marked) == len(after)
    for target in "abc":
        both = min(sum(t == target for t, _ in before), sum(t == target for t, _ in after))
        assert sum(f.baselined for f in marked if f.message == target) == both


def test_entries_of_two_files_may_share_a_fingerprint():
    """A file merged by hand may list one fingerprint twice; the counts add."""
    entry = Entry("x", "GYR204", "a.py", "m", 1)
    marked, stale = compare([replace(found(), fingerprint="x")] * 2, [entry, entry])
    assert [f.baselined for f in marked] == [True, True]
    assert stale == ()
