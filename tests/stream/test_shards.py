"""Reading what a hooked run left behind."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gyrecheck.hook.events import EventFile
from gyrecheck.hook.shard import Shard
from gyrecheck.model import shard_layout as layout
from gyrecheck.stream.shards import events_of, read_events, read_run, read_shard


def test_a_shard_is_read_as_it_was_written(tmp_path):
    """Cells, entries, call sites and identity come back as they were stored."""
    shard = Shard(str(tmp_path), "run7")
    shard.cells["optimizer_steps"][0] = 12
    shard.cells["left"][0] = -3
    shard.place_for("E S env.step toy.Env.step")[0] = 2**40
    shard.site("C S env.step /a b/train.py:7 collect")[0] = 5
    found = read_shard(tmp_path / (shard.name + layout.SUFFIX))
    assert found.run_id == "run7"
    assert found.cells["optimizer_steps"] == 12
    assert found.cells["left"] == -3
    assert found.calls("S") == 2**40
    assert [(s.entry, s.label, s.calls) for s in found.sites] == [(True, "toy.Env.step", 2**40), (False, "/a b/train.py:7 collect", 5)]


def test_a_place_that_was_never_counted_is_not_shown(tmp_path):
    """A site that was named but not counted yet is no row."""
    shard = Shard(str(tmp_path), "r")
    shard.place_for("E T marked update")
    assert read_shard(tmp_path / (shard.name + layout.SUFFIX)).sites == ()


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda raw: raw[:100], "wrong size"),
        (lambda raw: b"\0" * len(raw), "first bytes"),
        (lambda raw: raw[:8] + struct.pack("<I", 9) + raw[12:], "layout 9"),
    ],
)
def test_a_bad_shard_is_named_and_left_out(tmp_path, damage, says):
    """A cut, empty or future shard is a problem of the run, and the good one beside it is still read."""
    good, bad = Shard(str(tmp_path), "r"), Shard(str(tmp_path), "r")
    good.place_for("E S marked rollout")[0] = 4
    path = tmp_path / (bad.name + layout.SUFFIX)
    path.write_bytes(damage(path.read_bytes()))
    run = read_run(tmp_path)
    assert run is not None
    assert run.calls("S") == 4
    assert len(run.problems) == 1
    assert says in run.problems[0]
    assert path.name in run.problems[0]


def test_a_folder_without_a_hooked_run_is_none(tmp_path):
    """Other files make no hooked run."""
    (tmp_path / "train.log").write_text("step=1\n")
    assert read_run(tmp_path) is None


def test_events_come_back_in_time(tmp_path):
    """Events of several processes are ordered by their moment, and keep file and line."""
    shard = Shard(str(tmp_path), "r")
    events = EventFile(shard)
    events.write("publish", version=3)
    events.write("loaded", version=3)
    run = read_run(tmp_path)
    assert run is not None
    assert [(e.kind, e.line, e.number("version")) for e in run.events] == [("publish", 1, 3.0), ("loaded", 2, 3.0)]
    assert {e.pid for e in run.events} == {run.processes[0].pid}


def test_a_cut_last_line_is_no_event(tmp_path):
    """The line that death cut is left out; a broken line in the middle is a named problem."""
    path = tmp_path / f"x{layout.EVENTS_SUFFIX}"
    path.write_bytes(b'{"k":"a","at":1}\nnonsense\n{"k":"b","at":2}\n{"k":"c","at"')
    problems: list[str] = []
    assert [e.kind for e in read_events(path, 1, problems)] == ["a", "b"]
    assert problems == [f"{path.name}:2: is no event line"]


@given(st.binary(max_size=400))
def test_any_bytes_are_read_without_an_exception(tmp_path_factory, raw):
    """Whatever stands in an event file, reading it ends."""
    path = tmp_path_factory.mktemp("events") / f"x{layout.EVENTS_SUFFIX}"
    path.write_bytes(raw)
    for event in read_events(path, 1, []):
        event.number("n")
        event.text("site")
        event.words("path")


def test_a_long_line_is_replaced_by_a_short_one(tmp_path):
    """An event beyond one pipe write is cut to its kind, so no two processes' lines can mix."""
    shard = Shard(str(tmp_path), "r")
    EventFile(shard).write("crossing", path=["x" * 10_000])
    run = read_run(tmp_path)
    assert run is not None
    assert [(e.kind, e.fields) for e in run.events] == [("crossing", {"cut": True})]


def test_the_ledger_set_is_never_mixed(tmp_path):
    """A set that is being written (odd sequence) is waited for; one whose writer died is read as it stands."""
    shard = Shard(str(tmp_path), "r")
    shard.cells["sequence"][0] = 5
    shard.cells["ledger_calls"][0] = 2
    shard.cells["sampled"][0] = 40
    assert read_shard(tmp_path / (shard.name + layout.SUFFIX)).cells["sampled"] == 40


def test_counters_become_events_of_the_one_form(tmp_path):
    """ledger() totals and versions are the same events that a log gives; two processes give two, which add up."""
    for sampled, taken in ((30, 20), (10, 10)):
        shard = Shard(str(tmp_path), "r")
        shard.cells["ledger_calls"][0] = 1
        shard.cells["sampled"][0] = sampled
        shard.cells["taken"][0] = taken
    EventFile(shard).write("publish", version=4)
    run = read_run(tmp_path)
    assert run is not None
    events = list(events_of(run))
    assert sum(e.value for e in events if e.kind == "sampled") == 40
    assert sum(e.value for e in events if e.kind == "taken") == 30
    assert [e.value for e in events if e.kind == "published"] == [4.0]
    assert all(e.cumulative for e in events if e.kind == "sampled")
