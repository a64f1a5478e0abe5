"""Promises in a real terminal: slow, resized, without its folder or killed, watch shows no traceback, says nothing false, leaves nothing."""

import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

LOSES = "".join(f"pid={os.getpid()} sampled_total={10 * i} taken_total={9 * i} buffer_left=0\n" for i in range(1, 6))


class Terminal:
    """`gyrecheck watch` in a pseudo-terminal; `seen` is every byte it wrote."""

    def __init__(self, *words, size=(100, 30), term="xterm-256color"):
        self.pid, self.side = pty.fork()
        if self.pid == 0:
            # LINES and COLUMNS, which readline sets in a parallel test's parent, would outrank the terminal's own size.
            told = {k: v for k, v in os.environ.items() if k not in {"LINES", "COLUMNS"}} | {"TERM": term}
            os.execve(sys.executable, [sys.executable, "-m", "gyrecheck", "watch", *words], told)  # noqa: S606 - our own command
        self.resize(*size)
        self.seen = b""

    def resize(self, width, height):
        fcntl.ioctl(self.side, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def read(self, room=1 << 16, wait=0.1):
        """What is there, at most `room` bytes; empty at the end."""
        if not select.select([self.side], [], [], wait)[0]:
            return b""
        try:
            block = os.read(self.side, room)
        except OSError:  # the other side is gone
            return b""
        self.seen += block
        return block

    def until(self, word, seconds=90):
        """Read until the word was written since the last call."""
        start, deadline = len(self.seen), time.monotonic() + seconds
        while word not in self.seen[start:] and time.monotonic() < deadline:
            self.read()
        assert word in self.seen[start:], (word, self.seen[-2000:])

    def press(self, key):
        os.write(self.side, key)

    def leave(self, seconds=90):
        """Press q and give the exit code."""
        self.press(b"q")
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.read()
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                while self.read():
                    pass
                os.close(self.side)
                return os.waitstatus_to_exitcode(status)
        raise AssertionError(self.seen[-2000:])

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.side)


@pytest.fixture
def log(tmp_path):
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / "train.log"
    path.write_text(LOSES)
    return path


def test_a_terminal_of_four_kilobytes_a_second_gets_the_truth(log):
    """Four seconds at 4 KB a second while the log grows: q still leaves, the report is the whole log's, and no traceback was written."""
    terminal = Terminal(str(log))
    for at in range(80):
        terminal.read(room=200, wait=0)
        with log.open("a") as out:
            out.write(f"pid={os.getpid()} sampled_total={60 + 10 * at} taken_total={54 + 9 * at} buffer_left=0\n")
        time.sleep(0.05)
    assert len(terminal.seen) <= 16_000
    terminal.until(b"GYR507")
    assert terminal.leave() == 1
    report = terminal.seen[terminal.seen.rfind(b"\x1b[?1049l") :].decode()
    assert "850" in report  # sampled in the last line: 60 + 10 * 79
    assert b"Traceback" not in terminal.seen


def test_fifty_resizes_and_a_deleted_folder(log):
    """Resized fifty times, then without its folder: the screen says disconnected and keeps the figures; q leaves without a traceback."""
    terminal = Terminal(str(log.parent))
    terminal.until(b"GYR507")
    for at in range(50):
        terminal.resize(60 + 2 * at, 20 + at // 2)
        os.kill(terminal.pid, signal.SIGWINCH)
        terminal.read(wait=0.02)
    terminal.resize(100, 30)
    shutil.rmtree(log.parent)
    terminal.until(b"disconnected")
    terminal.resize(120, 36)  # everything is drawn anew
    terminal.until(b"sampled")
    terminal.leave()
    assert b"Traceback" not in terminal.seen


def test_a_killed_watcher_leaves_nothing_behind(log):
    """After kill -9 of the watcher the folder is as it was, byte and time, and the next look says what the ledger says."""
    before = {p.name: (p.stat().st_size, p.stat().st_mtime_ns) for p in log.parent.iterdir()}
    terminal = Terminal(str(log.parent))
    terminal.until(b"GYR507")
    terminal.kill()
    assert before == {p.name: (p.stat().st_size, p.stat().st_mtime_ns) for p in log.parent.iterdir()}
    outs = [
        subprocess.run([sys.executable, "-m", "gyrecheck", *words, str(log.parent)], capture_output=True, text=True, check=False).stdout
        for words in (["watch", "--once", "--json"], ["ledger", "--output-format", "json"])
    ]
    assert outs[0].replace('"command": "watch"', '"command": "ledger"') == outs[1]


def test_a_killed_writer_is_known_dead_on_the_screen(log):
    """The process whose pid stands in the log is killed: the screen says `known dead` or that the run has ended, nothing is judged anew."""
    log.unlink()
    script = (
        "import os, sys, time\nout = open(sys.argv[1], 'a', buffering=1)\nat = 0\n"
        "while True:\n    at += 10\n    out.write(f'pid={os.getpid()} sampled_total={at} taken_total={at} buffer_left=0\\n')\n    time.sleep(0.05)\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", script, str(log)])
    terminal = Terminal(str(log.parent), size=(140, 40))
    try:
        terminal.until(b"alive")
        terminal.until(b"sampled")
    finally:
        writer.kill()
        writer.wait()
    terminal.until(b"ended")
    terminal.resize(141, 40)
    terminal.until(b"sampled")
    assert terminal.leave() in {0, 3}
    assert b"Traceback" not in terminal.seen
    assert b"GYR507 conservation-gap" not in terminal.seen.split(b"\x1b[?1049l")[-1]


def test_no_color_writes_no_color(log, monkeypatch):
    """With NO_COLOR set nothing but grey is asked of the terminal, on the screen and in the report behind it."""
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal(str(log))
    terminal.until(b"GYR507")
    assert terminal.leave() == 1
    told = [code.split(b"m")[0].split(b";") for code in terminal.seen.split(b"\x1b[")[1:] if b"m" in code[:30]]
    colors = [
        parts[at + 2 : at + 5] for parts in told for at, part in enumerate(parts[:-4]) if part in {b"38", b"48"} and parts[at + 1] == b"2"
    ]
    assert all(red == green == blue for red, green, blue in colors)
    assert not [
        parts for parts in told if set(parts) & {b"31", b"32", b"33", b"34", b"35", b"36"} and b"38" not in parts and b"48" not in parts
    ]


def test_a_dumb_terminal_gets_lines(tmp_path):
    """Where TERM says that nothing can be drawn, lines are written, without one escape code."""
    log = tmp_path / "train.log"
    log.write_text(LOSES)
    terminal = Terminal(str(log), "--timeout", "1", term="dumb")
    terminal.until(b"GYR507")
    os.kill(terminal.pid, signal.SIGKILL)
    os.waitpid(terminal.pid, 0)
    assert b"\x1b" not in terminal.seen
