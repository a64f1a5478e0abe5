"""What a result that is written may do to what stands there."""

from __future__ import annotations

import os
import pty
import stat
import threading
from pathlib import Path

import pytest

from gyrecheck.commands.streams import write_file
from gyrecheck.model.whole_file import write_whole


def test_a_device_stays_a_device() -> None:
    """A terminal takes a result, without --force, and is still a terminal (nothing could take its place, whatever the code did)."""
    reader, device = pty.openpty()
    place = os.ttyname(device)
    write_file(Path(place), "report", force=False)
    assert os.read(reader, 100) == b"report"
    assert stat.S_ISCHR(os.stat(place).st_mode)
    os.close(device)
    os.close(reader)


def test_a_pipe_gets_the_text(tmp_path: Path) -> None:
    """Who reads a named pipe gets all of the result; the pipe stays."""
    pipe, seen = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: seen.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, b"report\n")
    reader.join(10)
    assert seen == [b"report\n"]
    assert pipe.is_fifo()


def test_a_link_stays_and_its_target_keeps_its_mode(tmp_path: Path) -> None:
    """Writing through a link replaces what it names, mode 0640 kept, and leaves no partial file."""
    target, link = tmp_path / "real.txt", tmp_path / "link.txt"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert (target.read_text(), stat.S_IMODE(target.stat().st_mode)) == ("new", 0o640)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.txt", "real.txt"]


def test_a_failed_write_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the last move fails the old content stands and the partial file is gone."""
    target = tmp_path / "kept.txt"
    target.write_text("old")

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(OSError, match="No space"):
        write_whole(target, b"new")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("kept.txt", "old")]
