"""What a project tells the hook: ledger terms, tags, versions; and the human lines."""

from __future__ import annotations

import logging

from gyrecheck.hook import ledger, load, log_calls, publish, sampling, tag, training
from gyrecheck.stream.shards import events_of


def test_ledger_terms_add_up_and_are_one_set(run):
    """What is told per batch adds up, a level is set; the sequence is even when no set is being written; an unknown name is an event."""
    ledger(sampled=100, taken=60, dropped_stale=30, left=10)
    ledger(sampled=20, taken=30, left=0, nonsense=3)
    cells = run().processes[0].cells
    assert [cells[name] for name in ("sampled", "taken", "dropped_stale", "left")] == [120, 90, 30, 0]
    assert cells["sequence"] == 4
    assert run().of("unknown_term")[0].words("names") == ("nonsense",)


def test_a_running_total_is_set_and_its_fall_is_noticed(run):
    """`sampled_total` is the total itself; one that falls is an event with both values, once, and its ledger is not balanced any more."""
    ledger(sampled_total=100, taken_total=90)
    ledger(sampled_total=130, taken_total=120)
    assert [run().processes[0].cells[name] for name in ("sampled", "taken")] == [130, 120]
    assert [(e.kind, e.value) for e in events_of(run())][:2] == [("sampled", 130), ("taken", 120)]
    ledger(sampled_total=40)
    ledger(sampled_total=30)
    told = run().of("total_fell")
    assert [(e.text("name"), e.number("before"), e.number("after")) for e in told] == [("sampled_total", 130, 40)]
    assert told[0].text("site").split()[-1] == "test_a_running_total_is_set_and_its_fall_is_noticed"
    assert not list(events_of(run()))


def test_an_update_within_an_update_is_no_further_one(run):
    """A marked update that holds two others, as it may hold optimizer steps, counts once; beside it they count themselves."""

    @training("step")
    def step():
        pass

    @training("update")
    def update():
        step()
        step()

    update()
    step()
    process = run().processes[0]
    assert process.calls("T") == 2
    assert process.calls("T", marked=True) == 4


def test_tags_carry_step_time_and_version(run):
    """A record's tags name the sample step, the wall clock and the newest loaded version, or what the caller says."""
    before = tag()
    load(7)
    after = tag(sample_step=40)
    assert before["policy_version"] == -1
    assert after["policy_version"] == 7
    assert after["sample_step"] == 40
    assert after["wall_clock"] >= before["wall_clock"]
    assert tag(policy_version=3)["policy_version"] == 3


def test_versions_are_noted(run):
    """publish() and load() leave their newest version in the counters and an event each."""
    publish(1)
    publish(2)
    load(1)
    cells = run().processes[0].cells
    assert (cells["published"], cells["published_version"], cells["loaded"], cells["loaded_version"]) == (2, 2, 1, 1)
    assert [e.number("version") for e in run().of("publish")] == [1, 2]


def test_human_lines_are_the_source_texts(run, caplog):
    """`sample_call n=... args=...` and `update_call n=...` come through logging when asked for, and stop when no longer wanted."""

    @sampling
    def rollout(count):
        pass

    @training
    def update():
        pass

    with caplog.at_level(logging.INFO, "gyrecheck"):
        log_calls()
        rollout(3)
        update()
        rollout(3)
        log_calls(on=False)
        rollout(3)
    assert [r.getMessage() for r in caplog.records] == ["sample_call n=1 args=int", "update_call n=1 args=", "sample_call n=2 args=int"]
