"""Promises for logs that were packed away: nothing is lost, nothing is read twice, and what may be missing is said."""

import gzip
from pathlib import Path

from gyrecheck.commands.ledger_run import Request, judge_paths
from gyrecheck.rulebook.codes import load_codes
from gyrecheck.screen.feed import RunFeed
from gyrecheck.stream.follow import Follower
from gyrecheck.stream.follow_file import Change, Lines


def line(at):
    return f"sampled_total={at} taken_total={at} buffer_left=0\n"


def write(path, first, last, *, packed=False):
    text = "".join(line(at) for at in range(first, last)).encode()
    path.write_bytes(gzip.compress(text) if packed else text)


def pack(path, target):
    target.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()


def lines(items):
    return [text for item in items if isinstance(item, Lines) for text in item.data.decode().splitlines(keepends=True)]


def gaps(items):
    return [item for item in items if isinstance(item, Change) and item.kind == "gap"]


def test_packed_and_plain_siblings_of_a_folder_are_the_logs_beginning(tmp_path):
    """Lines 1 to 30 in `.2.gz`, `.1` and the log: each once, in order; the verdicts are the ledger's on the folder."""
    write(tmp_path / "train.log.2.gz", 1, 11, packed=True)
    write(tmp_path / "train.log.1", 11, 21)
    write(tmp_path / "train.log", 21, 31)
    assert lines(Follower((str(tmp_path),)).poll()) == [line(at) for at in range(1, 31)]
    feed = RunFeed((str(tmp_path),), load_codes())
    feed.poll()
    feed.close()
    whole, _, _ = judge_paths(Request((str(tmp_path),)), load_codes())
    assert [(v.code, v.state, v.value) for v in feed.judged.verdicts] == [(v.code, v.state, v.value) for v in whole.verdicts]


def test_two_rotations_between_two_looks_with_packing_lose_nothing(tmp_path):
    """The followed file is packed to `.2.gz` and one that came and went to `.1.gz`: the first is known, the second is read, no gap."""
    log = tmp_path / "train.log"
    write(log, 1, 11)
    follower = Follower((str(log),))
    seen = lines(follower.poll())
    with log.open("a") as out:
        out.write(line(11))
    pack(log, tmp_path / "train.log.2.gz")
    write(tmp_path / "train.log.1.gz", 12, 15, packed=True)
    write(log, 15, 18)
    found = follower.poll()
    assert seen + lines(found) == [line(at) for at in range(1, 18)]
    assert not gaps(found)


def test_older_packed_siblings_of_a_named_log_stay_unread(tmp_path):
    """A log that was named alone begins with itself, as for the ledger; what was packed before is not taken for new at a rotation."""
    log = tmp_path / "train.log"
    write(tmp_path / "train.log.1.gz", 1, 11, packed=True)
    write(log, 11, 13)
    follower = Follower((str(log),))
    seen = lines(follower.poll())
    (tmp_path / "train.log.1.gz").rename(tmp_path / "train.log.2.gz")
    pack(log, tmp_path / "train.log.1.gz")
    write(log, 13, 15)
    found = follower.poll()
    assert seen + lines(found) == [line(at) for at in range(11, 15)]
    assert not gaps(found)


def test_a_packed_file_that_ends_early_or_holds_more_is_a_gap(tmp_path):
    """A sibling cut in its middle, and a copy of the followed file with a line that was never seen: each is one gap, no error."""
    log = tmp_path / "train.log"
    write(log, 1, 11)
    follower = Follower((str(log),))
    follower.poll()
    write(tmp_path / "train.log.2.gz", 1, 12, packed=True)
    whole = gzip.compress("".join(line(at) for at in range(20, 400)).encode())
    (tmp_path / "train.log.1.gz").write_bytes(whole[: len(whole) // 2])
    log.unlink()
    write(log, 12, 14)
    found = follower.poll()
    assert len(gaps(found)) == 2
    assert lines(found) == [line(12), line(13)]


def test_a_packed_log_by_name_or_in_a_folder_is_the_ledgers(tmp_path):
    """`old.log.gz` is read once, unpacked; packed only later, a log that was followed is not read again."""
    write(tmp_path / "old.log.gz", 1, 6, packed=True)
    for target in (tmp_path / "old.log.gz", tmp_path):
        follower = Follower((str(target),))
        assert lines(follower.poll()) == [line(at) for at in range(1, 6)]
        assert lines(follower.poll()) == []
    log = tmp_path / "new.log"
    write(log, 1, 4)
    assert lines(follower.poll()) == [line(at) for at in range(1, 4)]
    pack(log, Path(f"{log}.gz"))
    assert lines(follower.poll()) == []
