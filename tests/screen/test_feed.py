"""Promises of the feed: live and afterwards say the same, to the digit; what may be missing is never called balanced; nothing is written."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gyrecheck.commands.ledger_run import Request, judge_paths
from gyrecheck.model.finding import State
from gyrecheck.rulebook.codes import load_codes
from gyrecheck.screen.feed import RunFeed
from gyrecheck.screen.replay import ReplayFeed

sys.path.insert(0, str(Path(__file__).parent))

CASES = sorted((Path(__file__).parents[2] / "fixtures" / "logs" / "cases").glob("*/*.log"))


def said(judged):
    """What a judgement says, without the path that the log was copied to."""
    return [(v.code, v.state.value, v.quantity, v.value, v.first.line if v.first else None) for v in judged.verdicts]


@pytest.mark.parametrize("log", CASES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_a_log_that_grows_is_judged_like_the_whole_log(log, tmp_path):
    """Fed in seven pieces that cut through lines, the last picture has the ledger's verdicts, values and lines."""
    data = log.read_bytes()
    target = tmp_path / log.name
    feed = RunFeed((str(target),), load_codes())
    step = max(1, len(data) // 7)
    for at in range(0, len(data), step):
        with target.open("ab") as out:
            out.write(data[at : at + step])
        feed.poll()
    view = feed.poll()
    feed.close()
    whole, snapshot, _ = judge_paths(Request((str(target),)), load_codes())
    assert said(feed.judged) == said(whole)
    assert view.lines == sum(f.lines for f in snapshot.files)


def test_the_picture_holds_the_engines_numbers(tmp_path):
    """Sampled 96 = taken 64 + stale 16 + left 16: every term and the residual 0 are in the view."""
    log = tmp_path / "a.log"
    log.write_text(
        "".join(f"sampled_total={32 * i} taken_total={22 * i} dropped_stale_total={5 * i} buffer_left={5 * i}\n" for i in (1, 2, 3))
    )
    feed = RunFeed((str(log),), load_codes())
    view = feed.poll()
    feed.close()
    rows = {row.name: row.value for row in view.balance}
    assert rows["sampled"] == 96
    assert rows["taken"] == 66
    assert rows["left in buffer"] == 15
    assert rows["residual"] == 96 - 66 - 15 - 15
    assert view.counters[0].total == 96


def test_a_gap_leaves_no_balance_standing(tmp_path):
    """After a truncation in place the conservation verdict is undecided and says why, whatever the numbers are."""
    log = tmp_path / "a.log"
    lines = [f"sampled_total={10 * i} taken_total={10 * i} buffer_left=0\n" for i in range(1, 8)]
    log.write_text("".join(lines[:4]))
    feed = RunFeed((str(log),), load_codes())
    assert any(v.code == "GYR507" and v.state is State.HOLDS for v in feed.poll().verdicts)
    with log.open("r+") as out:
        out.truncate(0)
        out.write("".join(lines[5:]))
    view = feed.poll()
    feed.close()
    assert view.gaps
    states = {v.state for v in view.verdicts if v.code == "GYR507"}
    assert states == {State.UNDECIDED}


def test_rotation_by_rename_keeps_every_count(tmp_path):
    """Three renames between the polls lose nothing: 400 lines of one take each are 400 takes."""
    log = tmp_path / "a.log"
    feed = RunFeed((str(log),), load_codes())
    number = 0
    for rotation in range(4):
        with log.open("a") as out:
            for _ in range(100):
                number += 1
                out.write(f"sampled_total={number} taken_total={number} buffer_left=0\n")
        feed.poll()
        if rotation < 3:
            log.rename(tmp_path / f"a.log.{3 - rotation}")
    view = feed.poll()
    feed.close()
    assert view.lines == 400
    assert view.counters[0].total == 400
    assert not view.gaps


def test_watching_changes_nothing_in_the_folder(tmp_path):
    """Names, sizes and times of the run folder are the same after ten polls."""
    log = tmp_path / "a.log"
    log.write_text("sampled_total=1 taken_total=1 buffer_left=0\n")
    before = {p.name: (p.stat().st_size, p.stat().st_mtime_ns) for p in tmp_path.iterdir()}
    feed = RunFeed((str(tmp_path),), load_codes())
    for _ in range(10):
        feed.poll()
    feed.close()
    assert before == {p.name: (p.stat().st_size, p.stat().st_mtime_ns) for p in tmp_path.iterdir()}


def test_a_replay_ends_with_the_ledgers_verdicts(tmp_path):
    """Played at any speed, the last picture of an ended run is the ledger's, and the state says replay until then."""
    source = next(p for p in CASES if p.parent.name.startswith("035") and p.stem == "input")
    now = [0.0]
    feed = ReplayFeed(RunFeed((str(source),), load_codes()), 1.0, clock=lambda: now[0])
    first = feed.poll()
    assert first.state == "replay"
    now[0] = 1e9
    last = feed.poll()
    assert last.state == "ended"
    whole, _, _ = judge_paths(Request((str(source),)), load_codes())
    assert said(feed.inner.judged) == said(whole)


def test_a_vanished_folder_keeps_the_last_figures(tmp_path):
    """When everything watched is deleted the state is disconnected and the numbers stay."""
    log = tmp_path / "a.log"
    log.write_text("sampled_total=7 taken_total=7 buffer_left=0\n")
    feed = RunFeed((str(log),), load_codes())
    feed.poll()
    log.unlink()
    view = feed.poll()
    feed.close()
    assert view.state == "disconnected"
    assert view.counters[0].total == 7


def watch(*words, **kwargs):
    return subprocess.run(
        [sys.executable, "-m", "gyrecheck", "watch", *words], capture_output=True, text=True, check=False, timeout=120, **kwargs
    )


def test_without_a_terminal_there_are_lines_and_then_the_report(tmp_path):
    """Piped, watch writes a status line an interval and closes with the ledger's report and its exit code; no Textual, no escape codes."""
    log = tmp_path / "a.log"
    log.write_text("".join(f"sampled_total={10 * i} taken_total={9 * i} buffer_left=0\n" for i in range(1, 6)))
    done = watch(str(log), "--interval", "0.1", "--timeout", "0.3")
    assert done.returncode == 1
    assert "sampled 50" in done.stdout.splitlines()[0]
    assert "GYR507" in done.stdout
    assert "\x1b" not in done.stdout


def test_once_json_is_the_ledgers_object(tmp_path):
    """`watch --once --json` gives the same verdicts as `ledger --output-format json`."""
    log = tmp_path / "a.log"
    log.write_text("".join(f"sampled_total={10 * i} taken_total={9 * i} buffer_left=0\n" for i in range(1, 6)))
    done = watch("--once", "--json", str(log))
    ledger = subprocess.run(
        [sys.executable, "-m", "gyrecheck", "ledger", "--output-format", "json", str(log)], capture_output=True, text=True, check=False
    )
    ours, theirs = json.loads(done.stdout), json.loads(ledger.stdout)
    assert ours["verdicts"] == theirs["verdicts"]
    assert (ours["exit"], done.returncode) == (theirs["exit"], ledger.returncode)


def test_jsonl_streams_snapshots(tmp_path):
    """With jsonl each interval is one object with the counters so far."""
    log = tmp_path / "a.log"
    log.write_text("sampled_total=10 taken_total=10 buffer_left=0\n")
    done = watch(str(log), "--output-format", "jsonl", "--interval", "0.1", "--timeout", "0.3")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows[0]["kind"] == "snapshot"
    assert rows[-1]["counters"]["sampled"] == 10


def test_a_breach_calls_the_command_once(tmp_path):
    """`--on-breach` gets the verdict as JSON on standard input, and the hold-off keeps it from being called again."""
    log = tmp_path / "a.log"
    log.write_text("".join(f"sampled_total={10 * i} taken_total={9 * i} buffer_left=0\n" for i in range(1, 6)))
    script = tmp_path / "note.py"
    script.write_text(f"import sys\nopen({str(tmp_path / 'calls')!r}, 'a').write(sys.stdin.read() + '\\n')\n")
    watch(str(log), "--interval", "0.1", "--timeout", "0.6", "--on-breach", f"{sys.executable} {script}")
    deadline = time.monotonic() + 20
    while not (tmp_path / "calls").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    calls = [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]
    assert [call["code"] for call in calls] == list(dict.fromkeys(call["code"] for call in calls))
    assert "GYR507" in {call["code"] for call in calls}


def test_no_path_takes_the_newest_run_and_says_so(tmp_path):
    """Without a path the newest run folder below the working directory is watched, and it is named on stderr."""
    for name, when in (("old", 1_000_000), ("new", 2_000_000)):
        (tmp_path / name).mkdir()
        log = tmp_path / name / "train.log"
        log.write_text("sampled_total=3 taken_total=3 buffer_left=0\n")
        os.utime(log, (when, when))
    done = watch("--once", cwd=tmp_path)
    assert "watching new" in done.stderr
    assert done.returncode == 0


def test_nothing_to_watch_is_one_sentence(tmp_path):
    """An empty directory is exit 2 with a hint."""
    done = watch(cwd=tmp_path)
    assert done.returncode == 2
    assert "no run folder" in done.stderr
    assert done.stdout == ""


def test_prometheus_text_has_the_counters():
    """The exposition names counters with `_total` and carries the view's numbers."""
    from pictures import HEALTHY
    from prometheus_client import CollectorRegistry, generate_latest

    from gyrecheck.screen.prometheus import ViewCollector

    registry = CollectorRegistry()
    registry.register(ViewCollector(lambda: HEALTHY))
    text = generate_latest(registry).decode()
    assert 'gyrecheck_count_total{counter="sampled",run="r-0412",unit="traj"} 48320.0' in text
    assert 'gyrecheck_balance{run="r-0412",term="residual",unit="trajectory"} 0.0' in text


async def test_the_served_screen_asks_for_its_token():
    """Without the token every path answers 403; with it, once, a cookie stands for it."""
    from aiohttp import web
    from aiohttp.test_utils import TestClient, TestServer

    from gyrecheck.screen.serve import guard

    async def page(_request):
        return web.Response(text="screen")

    app = web.Application(middlewares=[guard("secret")])
    app.router.add_get("/", page)
    async with TestClient(TestServer(app)) as client:
        assert (await client.get("/")).status == 403
        assert (await client.get("/?token=wrong")).status == 403
        assert (await client.get("/?token=secret")).status == 200
        assert (await client.get("/")).status == 200
