"""Promises of the served screen: nothing without the token, and a real browser paints the picture."""

import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

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


@pytest.mark.soak
@pytest.mark.skipif(BROWSER is None, reason="no chromium is installed")
def test_a_real_browser_paints_the_screen(log, tmp_path):
    """Headless Chromium opens the URL; its picture is neither blank nor one colour, and differs from the page that is refused."""
    server, port, token = served(log)
    pictures = []
    try:
        for name, query in (("open", f"?token={token}"), ("shut", "")):
            picture = tmp_path / f"{name}.png"
            words = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,800", "--hide-scrollbars"]
            words += [f"--user-data-dir={tmp_path / name}", "--timeout=20000", f"--screenshot={picture}"]
            subprocess.run([*words, f"http://127.0.0.1:{port}/{query}"], check=True, capture_output=True, timeout=180)
            pictures.append(picture.read_bytes())
    finally:
        ended(server)
    assert pictures[0] != pictures[1]
