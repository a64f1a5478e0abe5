"""Promises for several runs and for a pipe: each run is judged on its own, all are drawn on one pair of axes, lines are read as they come."""

import asyncio
import dataclasses
import json
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from pictures import BROKEN, HEALTHY, WAITING

from gyrecheck.screen.glyphs import Pen
from gyrecheck.screen.keys import RUN_KEYS
from gyrecheck.screen.panels import plot_runs, runs
from gyrecheck.screen.runs_app import RunsApp
from gyrecheck.screen.view import SeriesView

PLAIN = Pen(color=False)


def start(*words, **kwargs):
    return subprocess.Popen(
        [sys.executable, "-m", "gyrecheck", "watch", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs
    )


def two_runs(tmp_path):
    for name, used in (("good", 10), ("bad", 9)):
        (tmp_path / name).mkdir()
        rows = (f"sampled_total={10 * i} taken_total={used * i} buffer_left=0\n" for i in range(1, 6))
        (tmp_path / name / "train.log").write_text("".join(rows))
    return str(tmp_path / "good"), str(tmp_path / "bad")


def test_the_table_has_one_row_a_run_with_its_gravest_verdict():
    """48,320 and 18,432 sampled, residual 0, ages 2 and 1, and the first broken code of the broken run."""
    text = runs.body((HEALTHY, BROKEN, WAITING), PLAIN, 120, 10).plain.splitlines()
    assert len(text) == 4
    assert text[1].split()[:3] == ["A", "r-0412", "live"]
    assert "48,320" in text[1]
    assert text[1].endswith("ok")
    assert text[2].endswith("error GYR506 filter-rejects-all")
    assert "?" in text[3]


def test_a_narrow_table_drops_columns_in_the_stated_order():
    """At 78 columns the span is gone first; counters, residual and verdict stay."""
    text = runs.body((HEALTHY, BROKEN), PLAIN, 76, 10).plain
    assert "span" not in text
    assert "residual" in text
    assert max(len(line) for line in text.splitlines()) <= 76
    assert "GYR506" in text


def test_two_runs_share_one_pair_of_axes():
    """A rises to 10 at the end of 10 s, B to 5 at the end of 5 s: B ends half way across and half way up."""
    one = dataclasses.replace(
        HEALTHY, run="a", series=(SeriesView("sampled", "", tuple(map(float, range(11))), tuple(map(float, range(11)))),)
    )
    two = dataclasses.replace(
        HEALTHY, run="b", series=(SeriesView("sampled", "", tuple(map(float, range(6))), (0.0, 0.0, 0.0, 0.0, 0.0, 5.0)),)
    )
    lines = plot_runs.body((one, two), "sampled", PLAIN, 12 + 1 + 41, 14, log=False).plain.splitlines()
    body = [line[12:] for line in lines[:11]]
    assert body[0].rstrip().endswith("A")
    assert body[0].index("A") == 40
    assert "B" not in "".join(body[:5])
    assert body[5][20] == "*"  # there A is at 5 after 5 s, too
    assert "10" in lines[0]
    assert "A a" in lines[-1]
    assert "B b" in lines[-1]


def test_every_key_of_the_runs_screen_works(tmp_path):
    """Each key is pressed once; verdicts and help open; CSV and SVG are saved; q leaves."""

    async def go():
        app = RunsApp(lambda: (HEALTHY, BROKEN), interval=0.3, pen=PLAIN, folder=tmp_path)
        async with app.run_test(size=(100, 30)) as pilot:
            while not app.views:
                await pilot.pause(0.02)
            await pilot.pause()
            first = shown(app)
            await pilot.press("down", "space")
            await pilot.pause()
            opened = shown(app)
            await pilot.press("space")
            for key in RUN_KEYS:
                for spelled in key.keys.split(","):
                    if key.action != "leave":
                        await pilot.press(spelled)
                    if key.action == "app.command_palette":
                        await pilot.press("escape")
            await pilot.pause()
            help_ = shown(app)
            await pilot.press("q")
        return first, opened, help_

    def shown(app):
        return "\n".join("".join(part.text for part in strip).rstrip() for strip in app.screen._compositor.render_strips())

    first, opened, help_ = asyncio.run(go())
    assert "r-0412" in first
    assert "r-0415" in first
    assert "A r-0412" in first
    assert "max_age 0, youngest 1" in opened
    assert "next series in the plot" in help_
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".csv", ".svg"]


def test_several_runs_are_scrubbed_like_one():
    """Two pictures: home shows the first and says history, d jumps to the one in which the second run breaks, end is live again."""

    async def go():
        pictures = [(HEALTHY, dataclasses.replace(HEALTHY, run="b")), (HEALTHY, dataclasses.replace(BROKEN, run="b"))]
        app = RunsApp(lambda: pictures[0] if len(pictures) == 2 and not app.views else pictures[-1], interval=0.1, pen=PLAIN)
        seen = []
        async with app.run_test(size=(140, 30)) as pilot:
            while len(app._frames.views) < 3:
                await pilot.pause(0.02)
            for key in ("home", "d", "end"):
                await pilot.press(key)
                await pilot.pause()
                seen.append("\n".join("".join(part.text for part in strip).rstrip() for strip in app.screen._compositor.render_strips()))
        return seen

    first, breach, live = asyncio.run(go())
    assert "history" in first.splitlines()[0]
    assert "error" not in first
    assert "history" in breach.splitlines()[0]
    assert "error GYR" in breach
    assert "history" not in live.splitlines()[0]
    assert "error GYR" in live


def test_two_folders_once_are_a_table_and_a_worst_exit_code(tmp_path):
    """One run holds, one loses every tenth: exit 1, both rows, and the lost ones named with their run."""
    done = start("--once", *two_runs(tmp_path))
    out, _ = done.communicate(timeout=120)
    assert done.returncode == 1
    assert "good" in out.splitlines()[1]
    assert "bad" in out.splitlines()[2]
    assert "bad: error[GYR507]" in out


def test_two_folders_as_json_and_lines(tmp_path):
    """JSON has the table and each verdict with its run; plain lines begin with the run's name."""
    folders = two_runs(tmp_path)
    ones = [start("--once", "--json", *folders), start("--plain", "--interval", "0.2", "--timeout", "0.3", *folders)]
    outs = [one.communicate(timeout=120)[0] for one in ones]
    table = json.loads(outs[0])
    assert [row[0] for row in table["tables"]["runs"]["rows"]] == ["good", "bad"]
    assert {v["message"].split(":")[0] for v in table["verdicts"]} == {"good", "bad"}
    assert [line.split()[0] for line in outs[1].splitlines()[:2]] == ["good", "bad"]
    assert ones[1].returncode == 1


def test_a_pipe_is_read_as_it_comes(tmp_path):
    """Lines written into standard input appear before it is closed; at the end stands the ledger's report with its exit code."""
    watch = start("-", "--interval", "0.1", stdin=subprocess.PIPE)
    for at in range(1, 4):
        watch.stdin.write(f"sampled_total={10 * at} taken_total={9 * at} buffer_left=0\n")
    watch.stdin.flush()
    deadline = time.monotonic() + 60
    seen = ""
    while "sampled 30" not in seen and time.monotonic() < deadline:
        seen = watch.stdout.readline()
    assert "sampled 30" in seen
    watch.stdin.write("sampled_total=40 taken_total=36 buffer_left=0")
    watch.stdin.close()
    rest = watch.stdout.read()
    watch.stderr.close()
    watch.stdout.close()
    assert watch.wait(60) == 1
    assert "GYR507" in rest


def test_a_pipe_and_the_ledger_agree(tmp_path):
    """The same log through `watch -` and through `ledger` gives the same verdicts, whichever format it has."""
    from gyrecheck.commands.ledger_run import Request, judge_paths
    from gyrecheck.rulebook.codes import load_codes
    from gyrecheck.screen.feed import RunFeed
    from gyrecheck.stream.follow_pipe import FollowedPipe

    cases = sorted((Path(__file__).parents[2] / "fixtures" / "logs" / "cases").glob("*/input*.log"))[:8]
    for log in cases:
        with log.open("rb") as file:
            feed = RunFeed(("-",), load_codes())
            feed._lines.pipe = FollowedPipe(file.fileno())
            while feed.poll().state != "ended":
                pass
            feed.close()
        whole, _, _ = judge_paths(Request((str(log),)), load_codes())
        assert [(v.code, v.state, v.quantity, v.value) for v in feed.judged.verdicts] == [
            (v.code, v.state, v.quantity, v.value) for v in whole.verdicts
        ]
