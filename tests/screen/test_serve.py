"""Promises of the served screen: nothing without the token, and a real browser paints the picture."""

import asyncio
import base64
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import aiohttp
import pytest

from gyrecheck.commands.watch_serve import passed_on

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def status(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - loopback
            return answer.status, answer.read().decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, ""


def served(log):
    """A watch that serves `log`, its port and its token."""
    port = free_port()
    words = [sys.executable, "-m", "gyrecheck", "watch", str(log), "--serve", str(port)]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    found = re.search(r"token=(\S+)", server.stderr.readline())
    assert found
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            status(f"http://127.0.0.1:{port}/")
        except OSError:  # noqa: PERF203 - it is starting
            time.sleep(0.1)
        else:
            break
    return server, port, found[1]


def ended(server):
    server.terminate()
    server.wait(30)
    server.stderr.close()


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "train.log"
    path.write_text("".join(f"sampled_total={10 * i} taken_total={9 * i} buffer_left=0\n" for i in range(1, 6)))
    return path


def test_without_the_token_every_path_is_403(log):
    """Page, script and socket of a really running server are refused without the token and with a wrong one; with it the page comes."""
    server, port, token = served(log)
    try:
        for path in ("", "?token=wrong", "static/js/textual.js", "ws"):
            assert status(f"http://127.0.0.1:{port}/{path}")[0] == 403
        code, page = status(f"http://127.0.0.1:{port}/?token={token}")
    finally:
        ended(server)
    assert code == 200
    assert "gyrecheck watch" in page


def test_every_other_option_is_passed_on():
    """What was asked of the screen is asked of each browser's: all words but the server's own; the run that was chosen is named."""
    given = ["--serve", "8123", "a.log", "--max-age", "3", "--host=127.0.0.1", "--map", "taken=used", "--ascii", "--select", "GYR5"]
    assert passed_on(given, ("a.log",)) == ["a.log", "--max-age", "3", "--map", "taken=used", "--ascii", "--select", "GYR5"]
    assert passed_on(["--serve=8123", "--interval", "2"], ("runs/new",)) == ["--interval", "2", "runs/new"]


def test_one_port_of_figures_is_not_for_many_screens(log):
    """`--serve` with `--prometheus`, or over a pipe, is refused in one sentence."""
    for words in (["--prometheus", "9123", str(log)], ["-"]):
        done = subprocess.run(
            [sys.executable, "-m", "gyrecheck", "watch", "--serve", "8123", *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 2
        assert "--serve" in done.stderr.splitlines()[0]


@pytest.mark.soak
@pytest.mark.skipif(BROWSER is None, reason="no chromium is installed")
async def test_a_real_browser_paints_the_screen(log, tmp_path):
    """Headless Chromium opens the URL; once the terminal is drawn its picture is far richer than the page's first one."""
    server, port, token = served(log)
    debug = free_port()
    words = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,800", f"--remote-debugging-port={debug}"]
    browser = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs meanwhile
        [*words, f"--user-data-dir={tmp_path / 'profile'}", f"http://127.0.0.1:{port}/?token={token}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        sizes = [len(picture) async for picture in pictures(debug, tmp_path / "screen.png")]
    finally:
        browser.terminate()
        browser.wait(30)
        ended(server)
    assert max(sizes) > 1.5 * sizes[0]


async def pictures(debug, place, seconds=20):
    """Screenshots of the browser's one page, one a second, over its debugging port."""
    async with aiohttp.ClientSession() as session:
        target, deadline = None, time.monotonic() + 30
        while target is None and time.monotonic() < deadline:
            try:
                async with session.get(f"http://127.0.0.1:{debug}/json/list") as answer:
                    target = next(
                        (page["webSocketDebuggerUrl"] for page in await answer.json(content_type=None) if page["type"] == "page"), None
                    )
            except aiohttp.ClientError:  # noqa: PERF203 - it is starting
                await asyncio.sleep(0.2)
        async with session.ws_connect(target, max_msg_size=0) as socket_:
            for at in range(1, seconds + 1):
                await socket_.send_json({"id": at, "method": "Page.captureScreenshot"})
                while (said := await socket_.receive_json()).get("id") != at:
                    pass
                picture = base64.b64decode(said["result"]["data"])
                place.write_bytes(picture)
                yield picture
                await asyncio.sleep(1)
