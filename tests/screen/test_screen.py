"""Promises of the screen: every key does what the help says, nothing is eaten, no size and no resize makes it lie."""

import asyncio
import dataclasses
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from looks import SIZES, Still, rows, settled, text_of
from pictures import BROKEN, HEALTHY, WAITING

from gyrecheck.screen.app import WatchApp
from gyrecheck.screen.following_app import lean
from gyrecheck.screen.glyphs import Pen
from gyrecheck.screen.history import Frames
from gyrecheck.screen.keys import KEYS, footer, help_lines
from gyrecheck.screen.view import View


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_no_line_is_wider_than_the_terminal_and_brackets_survive(size):
    """Every row fits, and a message with `[batch, time]` is shown with its brackets when its verdict is opened."""
    text = text_of(BROKEN, size, "down", "space")
    assert max(len(line) for line in text.splitlines()) <= size[0]
    assert "[/x] [batch, time]" in text


def test_below_80x24_three_honest_lines():
    """A small terminal is told which size is needed, and still sees counters, residual and the gravest verdict."""
    text = text_of(BROKEN, (60, 20))
    assert "needs 80x24, has 60x20" in text
    assert "sampled 18,432 consumed 0" in text
    assert "residual 0" in text
    assert "GYR406" in text or "GYR506" in text
    assert "╭" not in text


def test_ascii_screen_is_ascii():
    """With ASCII twins no other sign is left on the screen."""
    text = text_of(BROKEN, (100, 30), pen=Pen(ascii=True, color=False))
    assert text.isascii(), sorted({c for c in text if ord(c) > 127})


def test_every_key_of_the_help_works():
    """Each key of the table is pressed once, opens or changes what it says, and the app stands afterwards."""

    async def go(folder):
        app = WatchApp(Still(HEALTHY, BROKEN, BROKEN), interval=0.4, folder=folder)
        async with app.run_test(size=(140, 40)) as pilot:
            await settled(pilot)
            await pilot.pause(0.2)
            for key in KEYS:
                for spelled in key.keys.split(","):
                    if key.action == "leave":
                        continue
                    await pilot.press(spelled)
                    await pilot.pause()
                    if key.action in {"filter", "app.command_palette"}:
                        await pilot.press("escape")
            assert app.is_running
            await pilot.press("escape")
            await pilot.press("q")
        return app

    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        app = asyncio.run(go(Path(folder)))
        saved = sorted(p.suffix for p in Path(folder).iterdir())
    assert saved == [".csv", ".json", ".svg"]
    assert app._feed.closed


def test_pause_freezes_the_picture_and_says_how_much_passed():
    """While paused the newest picture is kept but not shown, and the status line counts the lines read since (100)."""

    async def go():
        later = dataclasses.replace(HEALTHY, lines=HEALTHY.lines + 100, counters=BROKEN.counters)
        feed = Still(HEALTHY)
        app = WatchApp(feed, interval=0.1, pen=Pen(color=False))
        async with app.run_test(size=(100, 30)) as pilot:
            await settled(pilot)
            await pilot.press("p")
            feed.views = [later]
            await pilot.pause(0.3)
            paused = "\n".join(rows(app))
            await pilot.press("p")
            await pilot.pause(0.3)
            return paused, "\n".join(rows(app))

    paused, resumed = asyncio.run(go())
    assert "paused: 100 lines read since" in paused
    assert "48,320" in paused
    assert "18,432" in resumed


def test_scrubbing_goes_back_and_returns_to_live():
    """Left shows an earlier picture and says so; end shows the newest again."""

    async def go():
        feed = Still(HEALTHY)
        app = WatchApp(feed, interval=0.1, pen=Pen(color=False))
        async with app.run_test(size=(100, 30)) as pilot:
            await settled(pilot)
            feed.views = [BROKEN]
            await pilot.pause(0.3)
            await pilot.press("home")
            await pilot.pause()
            early = "\n".join(rows(app))
            await pilot.press("d")
            await pilot.pause()
            breach = "\n".join(rows(app))
            await pilot.press("end")
            await pilot.pause()
            return early, breach, "\n".join(rows(app))

    early, breach, live = asyncio.run(go())
    assert "history" in early
    assert "48,320" in early
    assert "18,432" in breach
    assert "live" in live
    assert "history" not in live


def test_the_filter_leaves_only_what_fits():
    """Typing `406` leaves the one verdict of that code."""

    async def go():
        app = WatchApp(Still(BROKEN), interval=0.05, pen=Pen(color=False))
        async with app.run_test(size=(100, 30)) as pilot:
            await settled(pilot)
            await pilot.press("slash", "4", "0", "6", "enter")
            await pilot.pause(0.1)
            return "\n".join(rows(app))

    text = asyncio.run(go())
    assert "GYR406" in text
    assert "GYR506" not in text


def test_the_command_palette_has_every_action():
    """Typing part of a key's description and entering it does what the key does: the theme changes, the picture is paused."""

    async def go():
        app = WatchApp(Still(HEALTHY), interval=0.05)
        async with app.run_test(size=(100, 30)) as pilot:
            await settled(pilot)
            offered = {command.title for command in app.get_system_commands(app.screen)}
            before = app.theme
            for words in ("next theme", "pause the picture"):
                await pilot.press("ctrl+p")
                await pilot.pause(0.1)
                await pilot.press(*("space" if c == " " else c for c in words))
                for _ in range(100):
                    await pilot.pause(0.05)
                    if app.screen.query("CommandList") and app.screen.query_one("CommandList").option_count:
                        break
                await pilot.press("enter", "enter")
                await pilot.pause(0.2)
            return offered, before, app.theme, "\n".join(rows(app))

    offered, before, after, text = asyncio.run(go())
    assert {key.what for key in KEYS} <= offered
    assert before != after
    assert "paused" in text.splitlines()[0]


def test_old_pictures_give_up_their_histories():
    """A thousand pictures: at most 720 are kept, the first among them, only the newest with its series; the plot is the whole run's."""
    frames = Frames(View(), lambda v: frozenset(x.code for x in v.broken), lambda v: v.versions, lean)
    for at in range(1000):
        frames.add(dataclasses.replace(HEALTHY, lines=at))
    assert len(frames.views) <= 720
    assert frames.views[0].lines == 0
    assert frames.newest.lines == 999
    assert [bool(view.series) for view in frames.views] == [False] * (len(frames.views) - 1) + [True]


def test_fifty_resizes_leave_the_picture_truthful():
    """After fifty changes of size the screen shows the same numbers as before."""

    async def go():
        app = WatchApp(Still(BROKEN), interval=0.05, pen=Pen(color=False))
        async with app.run_test(size=(80, 24)) as pilot:
            await settled(pilot)
            for at in range(50):
                await pilot.resize_terminal(60 + at, 18 + at // 3)
            await pilot.resize_terminal(80, 24)
            await pilot.pause(0.2)
            return "\n".join(rows(app)) + "\n"

    assert asyncio.run(go()) == text_of(BROKEN, (80, 24), pen=Pen(color=False))


def test_the_help_and_footer_come_from_one_table():
    """Every key is in the help, and the footer fits any width from 80 up with the help key at its right."""
    assert len(help_lines()) == len(KEYS)
    for width in (80, 100, 140):
        line = footer(width, ascii_only=False)
        assert len(line) <= width
        assert line.rstrip().endswith("? keys")


def test_the_help_shows_every_key_at_the_smallest_size():
    """At 80x24 the help has pages; leafing through them shows each of its lines, and the last press closes it."""
    seen = text_of(HEALTHY, (80, 24), "question_mark", pen=Pen(color=False)) + text_of(
        HEALTHY, (80, 24), "question_mark", "question_mark", pen=Pen(color=False)
    )
    assert all(line.split(maxsplit=1)[1].strip()[:40] in seen for line in help_lines() if "  " in line)
    assert "counters" in text_of(HEALTHY, (80, 24), *["question_mark"] * 3, pen=Pen(color=False))


def test_waiting_shows_what_is_expected():
    """Before the first event the screen says what is watched and what to do otherwise."""
    view = dataclasses.replace(WAITING, waiting_for=("No events yet.", "Watching   runs/r-0413/*.log", "gyrecheck run -- python train.py"))
    text = text_of(view, (80, 24))
    assert "No events yet." in text
    assert "gyrecheck run -- python train.py" in text


def test_a_saved_view_is_readable(tmp_path):
    """The saved JSON holds the counters and verdicts of the view."""
    from gyrecheck.screen.export import as_json, save

    path = save(as_json(BROKEN), BROKEN, "json", tmp_path)
    again = save(as_json(BROKEN), BROKEN, "json", tmp_path)
    assert path != again
    table = json.loads(path.read_text())
    assert table["counters"][0]["total"] == 18432
    assert table["verdicts"][0]["code"] == "GYR506"


def test_what_cannot_be_read_is_said_once():
    """A feed that fails the same way at each of many looks leaves one notice on the screen; another failure is said too."""
    looks = []

    class Failing(Still):
        def poll(self):
            looks.append(1)
            raise OSError("gone" if len(looks) < 6 else "gone again")

    async def go():
        app = WatchApp(Failing(WAITING), interval=0.02)
        async with app.run_test(size=(140, 40)) as pilot:
            while len(looks) < 12:
                await pilot.pause(0.05)
            said = [note.message for note in app._notifications]
            await pilot.press("q")
        return said

    assert asyncio.run(go()) == ["could not read: OSError: gone", "could not read: OSError: gone again"]
