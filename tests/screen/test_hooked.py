"""Promises for hooked run folders: counters are shown while they grow, and watch says what `run` and `ledger` say, to the digit."""

import json
import os
import time

import pytest

from gyrecheck.cli import main
from gyrecheck.commands.run_report import recorded
from gyrecheck.commands.watch_run import HookedJudge, Look, feed_of
from gyrecheck.hook.events import EventFile
from gyrecheck.hook.shard import Shard
from gyrecheck.rulebook.codes import load_codes


class Run:
    """A run folder under a hook, driven by hand."""

    def __init__(self, folder):
        self.folder = folder
        self.shard = Shard(str(folder), "run7")
        self.events = EventFile(self.shard)
        self.out = (folder / "stdout.log").open("a", buffering=1)
        self.calls = 0

    def step(self, number=1, turns=True):
        for _ in range(number):
            self.calls += 1
            self.shard.place_for("E S marked rollout")[0] += 1
            self.shard.place_for("E T marked update")[0] += 1
            self.shard.cells["turns_marked"][0] += turns

    def ledger(self, **totals):
        self.shard.cells["ledger_calls"][0] += 1
        for name, value in totals.items():
            self.shard.cells[name][0] = value


@pytest.fixture
def run(tmp_path):
    made = Run(tmp_path)
    yield made
    made.out.close()


def feed_for(folder, **options):
    return feed_of(Look((str(folder),), load_codes(), **options))


def said(verdicts):
    return [(v.code, v.state, v.severity, v.quantity, v.value, v.message, v.first) for v in verdicts]


def test_the_picture_follows_the_counters(run):
    """70 + 70 calls, then 30 + 30 more: the rows, the ratio and the coupling verdict are those of the shard at each look."""
    run.step(70)
    feed = feed_for(run.folder, topology="decoupled")
    first = feed.poll()
    run.step(30)
    second = feed.poll()
    feed.close()
    rows = [{row.name: row.total for row in view.counters} for view in (first, second)]
    assert [(r["sample calls"], r["update calls"]) for r in rows] == [(70, 70), (100, 100)]
    assert ("ratio", "1 : 1") in second.coupling
    assert "GYR501" in [v.code for v in second.broken]
    assert second.state == "live"
    assert [(p.pid, p.state) for p in second.processes] == [(str(os.getpid()), "alive")]


def test_watch_says_what_run_and_ledger_say(run):
    """Ledger totals with a gap of 3, printed lines and events: after many looks the verdicts are those of one whole reading."""
    feed = feed_for(run.folder, topology="decoupled")
    for at in range(1, 61):
        run.step()
        run.ledger(sampled=8 * at, taken=8 * at - min(at, 3), left=0)
        run.out.write(f"step {at} sampled_total={8 * at} taken_total={8 * at}\n")
        if at % 20 == 0:
            run.events.write("publish", version=at // 20)
            feed.poll()
    view = feed.poll()
    feed.close()
    whole = recorded("watch", run.folder, topology="decoupled")
    assert whole is not None
    assert said(view.verdicts) == said(whole.verdicts)
    assert view.not_judged == whole.not_judged
    assert {row.name: row.total for row in view.counters}["sampled"] == 480


def test_once_json_is_the_ledgers_object_for_a_recorded_run(run, capfd, monkeypatch):
    """`watch --once --json DIR` and `ledger --output-format json DIR` differ in the command's name only."""
    run.step(60)
    run.ledger(sampled=480, taken=470, left=10)
    objects = []
    for words in (["watch", "--once", "--json"], ["ledger", "--output-format", "json"]):
        monkeypatch.setattr("sys.argv", ["gyrecheck", *words, "--topology", "decoupled", str(run.folder)])
        with pytest.raises(SystemExit) as left:
            main()
        objects.append({**json.loads(capfd.readouterr().out), "command": "", "code": left.value.code})
    assert objects[0] == objects[1]


def test_output_that_came_before_the_first_shard_is_read_once(tmp_path):
    """A folder that becomes a hooked one later: its output counts once, and the hook's own files are no logs."""
    (tmp_path / "stdout.log").write_text("sampled_total=5 taken_total=5 buffer_left=0\n")
    feed = feed_for(tmp_path)
    assert feed.poll().lines == 1
    made = Run(tmp_path)
    made.step(2)
    made.events.write("publish", version=1)
    view = feed.poll()
    feed.close()
    made.out.close()
    assert view.lines == 1
    assert [path.rsplit("/", 1)[1] for path in view.files] == ["stdout.log"]


def test_what_was_printed_is_read_anew_only_now_and_then(run, monkeypatch):
    """Two judgements within two seconds read the program's own checks once."""
    calls = []
    monkeypatch.setattr("gyrecheck.commands.run_report.judge_printed", lambda *_args, **_named: calls.append(1) or ())
    run.step(5)
    feed = feed_for(run.folder)
    feed.poll()
    run.step(5)
    feed.poll()
    feed.close()
    assert len(calls) == 1
    now = [0.0]
    judge = HookedJudge(Look((str(run.folder),), load_codes()), clock=lambda: now[0])
    for at in (0.0, 1.0, 3.0):
        now[0] = at
        judge(feed._hook.run, lambda _topology: None)
    assert len(calls) == 3


def test_many_shards_are_summed_exactly(tmp_path):
    """64 shards with n calls each for n = 1..64 sum to 2,080, at every look."""
    shards = [Shard(str(tmp_path), "r") for _ in range(64)]
    for at, shard in enumerate(shards, 1):
        shard.place_for("E S marked rollout")[0] = at
    feed = feed_for(tmp_path)
    view = feed.poll()
    shards[0].place_for("E S marked rollout")[0] += 1
    later = feed.poll()
    feed.close()
    assert [{row.name: row.total for row in v.counters}["sample calls"] for v in (view, later)] == [2080, 2081]
    assert later.seconds is not None
    assert later.seconds < time.time()
