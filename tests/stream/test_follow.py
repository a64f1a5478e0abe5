"""Promises of the follower: every line once, in order, whatever happens to the file; what may be lost is said."""

import os
import random
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from gyrecheck.stream.follow import Follower
from gyrecheck.stream.follow_file import Change, FollowedFile, Lines


def text(items) -> bytes:
    return b"".join(item.data for item in items if isinstance(item, Lines))


def kinds(items) -> list[str]:
    return [item.kind for item in items if isinstance(item, Change)]


def test_only_whole_lines_come_out(tmp_path):
    """A half line is held until its newline arrives; numbers and offsets go on counting."""
    path = tmp_path / "a.log"
    path.write_bytes(b"one\ntw")
    file = FollowedFile(str(path))
    assert file.poll() == [Lines(str(path), b"one\n", 1, 0)]
    assert file.poll() == []
    with path.open("ab") as out:
        out.write(b"o\nthree\n")
    assert file.poll() == [Lines(str(path), b"two\nthree\n", 2, 4)]
    assert file.close() == b""


def test_a_file_that_never_ends_its_line_keeps_it_apart(tmp_path):
    """The last line without a newline is never handed out as a line; closing returns it."""
    path = tmp_path / "a.log"
    path.write_bytes(b"taken=1\ntaken=16")
    file = FollowedFile(str(path))
    assert text(file.poll()) == b"taken=1\n"
    assert file.close() == b"taken=16"


def test_twenty_rotations_by_rename_lose_no_line(tmp_path):
    """2,000 numbered lines through 20 rename rotations, polled at random moments: every line once and in order."""
    path = tmp_path / "run.log"
    chance = random.Random(7)
    file = FollowedFile(str(path))
    got, number = b"", 0
    for rotation in range(20):
        with path.open("ab") as out:
            for _ in range(100):
                out.write(b"n=%d\n" % number)
                number += 1
                if chance.random() < 0.03:
                    out.flush()
                    got += text(file.poll())
        for old in range(rotation, 0, -1):
            if (tmp_path / f"run.log.{old}").exists():
                (tmp_path / f"run.log.{old}").rename(tmp_path / f"run.log.{old + 1}")
        path.rename(tmp_path / "run.log.1")
        if chance.random() < 0.5:
            path.write_bytes(b"")
            got += text(file.poll())
    path.touch()
    got += text(file.poll())
    assert got == b"".join(b"n=%d\n" % n for n in range(2000))


def test_truncation_in_place_is_a_gap(tmp_path):
    """Copytruncate cannot be followed without loss, so the possible gap is reported, and reading goes on from the start."""
    path = tmp_path / "a.log"
    path.write_bytes(b"one\ntwo\n")
    file = FollowedFile(str(path))
    file.poll()
    with path.open("r+b") as out:
        out.truncate(0)
        out.write(b"new\n")
    items = file.poll()
    assert kinds(items) == ["truncated", "gap"]
    assert text(items) == b"new\n"


def test_truncated_and_regrown_beyond_the_offset_is_seen(tmp_path):
    """A file that was emptied and is longer than before at the next look is recognised by its first bytes."""
    path = tmp_path / "a.log"
    path.write_bytes(b"one\ntwo\n")
    file = FollowedFile(str(path))
    file.poll()
    with path.open("r+b") as out:
        out.truncate(0)
        out.write(b"three\nfour\nfive\nsix\n")
    items = file.poll()
    assert "gap" in kinds(items)
    assert text(items) == b"three\nfour\nfive\nsix\n"


def test_a_removed_file_is_said_once_and_may_come_back(tmp_path):
    """Deletion is one `gone`; a file of the same name later is read from its start."""
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    file = FollowedFile(str(path))
    file.poll()
    path.unlink()
    assert kinds(file.poll()) == ["gone"]
    assert file.poll() == []
    path.write_bytes(b"two\n")
    items = file.poll()
    assert text(items) == b"two\n"


def test_a_folder_is_watched_for_files_that_appear(tmp_path):
    """A log that is created after the start is read whole."""
    follower = Follower((str(tmp_path),))
    assert follower.poll() == []
    (tmp_path / "late.log").write_bytes(b"x=1\n")
    (tmp_path / "weights.safetensors").write_bytes(b"no log\n")
    assert text(follower.poll()) == b"x=1\n"
    assert follower.close() == {}


def test_following_never_writes(tmp_path):
    """The folder is the same after following: names, sizes and times of change."""
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    before = [(p.name, p.stat().st_size, p.stat().st_mtime_ns) for p in sorted(tmp_path.iterdir())]
    follower = Follower((str(tmp_path),))
    follower.poll()
    follower.close()
    assert before == [(p.name, p.stat().st_size, p.stat().st_mtime_ns) for p in sorted(tmp_path.iterdir())]


def test_an_unreadable_place_is_a_change_not_an_error(tmp_path):
    """A path below a file, or a folder given as a file, ends in one `Change`."""
    (tmp_path / "f").write_bytes(b"")
    file = FollowedFile(str(tmp_path / "f" / "below.log"))
    assert kinds(file.poll()) == ["unreadable"]
    assert file.poll() == []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=20))
def test_any_bytes_in_any_pieces_give_the_same_lines(tmp_path_factory, pieces):
    """However the bytes arrive, the lines handed out are the file's whole lines."""
    path = Path(tmp_path_factory.mktemp("f")) / "a.log"
    file = FollowedFile(str(path))
    got = b""
    with path.open("ab", buffering=0) as out:
        for piece in pieces:
            os.write(out.fileno(), piece)
            got += text(file.poll())
    whole = b"".join(pieces)
    assert got == whole[: whole.rfind(b"\n") + 1]
    assert file.close() == whole[whole.rfind(b"\n") + 1 :]


def test_a_path_that_becomes_a_folder_is_read_as_one(tmp_path):
    """Watching may begin before the run folder exists; its logs are read once they are there."""
    follower = Follower((str(tmp_path / "run"),))
    assert follower.poll() == []
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "a.log").write_bytes(b"x=1\n")
    assert text(follower.poll()) == b"x=1\n"
    assert text(follower.poll()) == b""
