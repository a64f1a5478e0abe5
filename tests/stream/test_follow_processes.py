"""Promises of the follower beside real writers: renames lose nothing, copies with truncation are always said, deaths end no reader."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from gyrecheck.stream.follow import Follower
from gyrecheck.stream.follow_file import Change, FollowedFile, Lines

WRITER = """
import os, sys, time
path, rotations, rate, how, each = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
number, begin = 0, time.monotonic()
out = open(path, "ab", buffering=0)
for rotation in range(rotations + 1):
    for _ in range(each // 50):
        out.write(b"".join(b"n=%d\\n" % (number + at) for at in range(50)))
        number += 50
        time.sleep(max(0.0, begin + number / rate - time.monotonic()))
    if rotation == rotations:
        break
    if how == "rename":
        out.close()
        for at in range(rotation, 0, -1):
            os.rename(f"{path}.{at}", f"{path}.{at + 1}")
        os.rename(path, f"{path}.1")
        out = open(path, "ab", buffering=0)
    else:
        os.truncate(path, 0)
print(number)
"""


def write(path, rotations, how, each=500, rate=5000):
    words = [sys.executable, "-c", WRITER, str(path), str(rotations), str(rate), how, str(each)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def followed(path, writer, interval=0.05):
    """All that a reader sees until the writer has ended."""
    file, items = FollowedFile(str(path)), []
    while writer.poll() is None:
        items += file.poll()
        time.sleep(interval)
    items += file.poll()
    file.close()
    return items, int(writer.communicate()[0] or 0)


def text(items):
    return b"".join(item.data for item in items if isinstance(item, Lines))


def test_twenty_renames_at_5000_lines_a_second_lose_nothing(tmp_path):
    """A writer of 10,500 numbered lines renames twenty times; every line comes once and in order."""
    items, number = followed(tmp_path / "run.log", write(tmp_path / "run.log", 20, "rename"))
    assert number == 10_500
    assert text(items) == b"".join(b"n=%d\n" % at for at in range(number))
    assert not [item for item in items if isinstance(item, Change) and item.kind == "gap"]


def test_lines_missing_after_a_truncation_always_have_a_gap_between_them(tmp_path):
    """Twenty truncations in place: wherever the numbers jump, a gap was reported before the line that comes next."""
    items, number = followed(tmp_path / "run.log", write(tmp_path / "run.log", 20, "truncate"))
    assert number == 10_500
    expected, said = 0, False
    for item in items:
        if isinstance(item, Change):
            said |= item.kind == "gap"
            continue
        for line in item.data.split():
            at = int(line[2:])
            assert at == expected or said, f"line {expected} is missing and nothing was said"
            said, expected = False, at + 1
    assert sum(isinstance(item, Change) and item.kind == "gap" for item in items) >= 1


def test_a_killed_writer_leaves_its_whole_lines(tmp_path):
    """After `kill -9` in the middle, what is in the file is what was read: whole lines, no line twice."""
    path = tmp_path / "run.log"
    writer = write(path, 0, "rename", each=100_000)
    file, got = FollowedFile(str(path)), b""
    deadline = time.monotonic() + 30
    while got.count(b"\n") < 500 and time.monotonic() < deadline:
        got += text(file.poll())
        time.sleep(0.02)
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    got += text(file.poll())
    assert file.poll() == []
    whole = path.read_bytes()
    assert got == whole[: whole.rfind(b"\n") + 1]
    file.close()


def test_a_deleted_folder_is_said_and_a_new_one_is_read(tmp_path):
    """The run folder disappears under a writer: one change a file, no error; a folder of that name later is read from its start."""
    folder = tmp_path / "run"
    folder.mkdir()
    writer = write(folder / "run.log", 0, "rename", each=100_000)
    follower = Follower((str(folder),))
    deadline = time.monotonic() + 30
    while not text(follower.poll()) and time.monotonic() < deadline:
        time.sleep(0.02)
    writer.kill()
    writer.wait()
    writer.stdout.close()
    shutil.rmtree(folder)
    assert [item.kind for item in follower.poll() if isinstance(item, Change)] == ["gone"]
    assert follower.poll() == []
    folder.mkdir()
    (folder / "run.log").write_bytes(b"n=0\n")
    assert text(follower.poll()) == b"n=0\n"
    follower.close()


@pytest.mark.soak
@pytest.mark.parametrize("interval", [0.01, 0.25, 0.5])
def test_a_minute_of_renames_loses_nothing(tmp_path, interval):
    """At every polling interval in use, 100,500 lines at 5,000 a second through twenty renames come once and in order."""
    items, number = followed(tmp_path / "run.log", write(tmp_path / "run.log", 20, "rename", each=5000), interval)
    assert text(items) == b"".join(b"n=%d\n" % at for at in range(number))
