"""The hand-over through the run folder: each trajectory once, whatever dies in between and wherever the disk is full."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from reference_loop.balance import balance
from reference_loop.consumer import Consumer, Fates
from reference_loop.producer import Producer
from reference_loop.segment import SegmentName
from reference_loop.store import FolderInUseError, Lines, Presence, alive, segments, with_room, write_whole

CONTENT = b"header\nrecord\nfooter\n"


def name(seq: int, count: int = 2) -> SegmentName:
    """Segment `seq` of producer s0."""
    return SegmentName("s0", seq, 0, count, "jsonl")


def publish(producer: Producer, seq: int) -> None:
    """Publish a segment of two trajectories."""
    producer.publish(name(seq), CONTENT, {"seq": seq, "trajectories": 2, "rows": 9, "sample_step": 9 * (seq + 1)})


def open_producer(folder: Path) -> Producer:
    """A producer without fsync."""
    return Producer(folder, "s0", fsync=False)


def open_consumer(folder: Path, keep: int = 4) -> Consumer:
    """A consumer without fsync."""
    return Consumer(folder, "t0", keep=keep, fsync=False)


def settle_all(consumer: Consumer, segment: SegmentName) -> None:
    """Book both trajectories of a claimed segment as taken, and move it on."""
    fates = Fates(segment, taken=[f"s0-{segment.seq:06d}-{index:04d}" for index in range(2)])
    consumer.settle([fates.line(0, 1)])
    consumer.retire(segment)


def test_a_segment_goes_through_once_in_order(tmp_path: Path) -> None:
    """Segments are claimed oldest first, each once, and after settlement nothing is left."""
    producer = open_producer(tmp_path)
    consumer = open_consumer(tmp_path)
    publish(producer, 0)
    publish(producer, 1)
    assert (producer.unread(), consumer.unread(), producer.sampled_total) == (2, 4, 4)
    for seq in (0, 1):
        claimed = consumer.claim()
        assert claimed == (name(seq), CONTENT)
        settle_all(consumer, claimed[0])
    assert consumer.claim() is None
    assert consumer.totals.taken == 4
    found = balance(tmp_path)
    assert found.holds
    assert (len(found.sampled), len(found.taken), len(found.left)) == (4, 4, 0)


def test_two_consumers_share_without_overlap(tmp_path: Path) -> None:
    """A claim is a rename, so of two consumers only one gets a segment."""
    producer = open_producer(tmp_path)
    publish(producer, 0)
    publish(producer, 1)
    first, second = open_consumer(tmp_path), Consumer(tmp_path, "t1", keep=4, fsync=False)
    assert first.claim() == (name(0), CONTENT)
    assert second.claim() == (name(1), CONTENT)
    assert first.claim() is None


def test_death_before_the_journal_line(tmp_path: Path) -> None:
    """A temporary file that the journal does not name was never sampled: it counts nowhere and is removed."""
    open_producer(tmp_path)
    (tmp_path / "ready" / f".{name(0)}.tmp").write_bytes(CONTENT)
    assert str(balance(tmp_path)).startswith("sampled=0 taken=0 dropped_stale=0 dropped_other=0 left=0 in_flight=0")
    again = open_producer(tmp_path)
    assert (again.recovered, again.sampled_total) == (0, 0)
    assert list((tmp_path / "ready").iterdir()) == []


def test_death_between_journal_and_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the journal line on a segment is sampled: in flight while its producer is dead, published at the next start."""

    def dies(self: Path, target: Path) -> Path:
        raise KeyboardInterrupt

    producer = open_producer(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", dies)
        with pytest.raises(KeyboardInterrupt):
            publish(producer, 0)
    found = balance(tmp_path)
    assert found.in_flight == ("s0-000000-0000", "s0-000000-0001")
    assert found.holds
    again = open_producer(tmp_path)
    assert (again.recovered, again.sampled_total, again.unread()) == (2, 2, 1)
    assert again.last["seq"] == 0


def test_death_between_claim_and_settlement(tmp_path: Path) -> None:
    """A claimed segment without a ledger line is put back, and its trajectories are taken exactly once."""
    publish(open_producer(tmp_path), 0)
    open_consumer(tmp_path).claim()
    assert len(balance(tmp_path).left) == 2
    again = open_consumer(tmp_path)
    assert again.recover([]) == 2
    settle_all(again, again.claim()[0])
    assert balance(tmp_path).holds


def test_death_between_settlement_and_move(tmp_path: Path) -> None:
    """A claimed segment that the ledger names is only moved on, never read again."""
    publish(open_producer(tmp_path), 0)
    consumer = open_consumer(tmp_path)
    segment, _ = consumer.claim()
    consumer.settle([Fates(segment, taken=["s0-000000-0000", "s0-000000-0001"]).line(0, 1)])
    again = open_consumer(tmp_path)
    assert again.recover([]) == 0
    assert again.claim() is None
    assert again.totals.taken == 2
    assert balance(tmp_path).holds


def test_death_between_checkpoint_and_ledger(tmp_path: Path) -> None:
    """Ledger lines that the checkpoint owes are written at the next start, once, however often it is started."""
    publish(open_producer(tmp_path), 0)
    segment, _ = open_consumer(tmp_path).claim()
    owed = [Fates(segment, taken=["s0-000000-0000", "s0-000000-0001"]).line(0, 1)]
    for _ in range(2):
        again = open_consumer(tmp_path)
        assert again.recover(owed) == 0
        assert again.totals.taken == 2
    assert len((tmp_path / "ledger" / "t0.jsonl").read_text().splitlines()) == 1


def test_a_torn_ledger_line_is_cut_off(tmp_path: Path) -> None:
    """Half a line at the end of a file of lines is removed at opening, whole lines before it stay."""
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b'{"a":1}\n{"a":2}\n{"a"')
    lines = Lines(path, fsync=True)
    assert lines.found == [{"a": 1}, {"a": 2}]
    lines.append({"a": 3})
    assert [json.loads(line) for line in path.read_text().splitlines()] == [{"a": 1}, {"a": 2}, {"a": 3}]


def full(*_arguments: object, **_keywords: object) -> int:
    """What a write on a full disk does."""
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_undoes_a_publication(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the journal line does not fit the segment is not born: no file, no count; repeated later it is whole."""
    producer = open_producer(tmp_path)
    publish(producer, 0)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space"):
            publish(producer, 1)
    assert [path.name for path in (tmp_path / "ready").iterdir()] == [str(name(0))]
    assert producer.sampled_total == 2
    publish(producer, 1)
    assert len(balance(tmp_path).sampled) == 4


def test_a_half_written_line_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that takes half a line and no more leaves no half line behind."""
    lines = Lines(tmp_path / "lines.jsonl", fsync=False)
    lines.append({"a": 1})
    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, content: real(descriptor, content[: len(content) // 2]))
        with pytest.raises(OSError, match="No space"):
            lines.append({"a": 2})
    assert (tmp_path / "lines.jsonl").read_bytes() == b'{"a":1}\n'


def test_waiting_for_room_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """An action is repeated while the disk is full and noted once; other errors, and the end of patience, come through."""
    left = [1, 1]
    noted: list[OSError] = []

    def action() -> None:
        if left:
            left.pop()
            full()

    monkeypatch.setattr("reference_loop.store.time.sleep", lambda _seconds: None)
    with_room(action, patience=10, note=noted.append)
    assert len(noted) == 1
    with pytest.raises(OSError, match="No space"):
        with_room(full, patience=0, note=noted.append)
    with pytest.raises(PermissionError):
        with_room(lambda: os.listdir(_forbidden()), patience=10, note=noted.append)


def _forbidden() -> str:
    raise PermissionError(errno.EACCES, "no")


def test_only_the_newest_settled_segments_are_kept(tmp_path: Path) -> None:
    """With room for two, the oldest of three settled segments is removed; the balance does not need it."""
    producer, consumer = open_producer(tmp_path), open_consumer(tmp_path, keep=2)
    for seq in range(3):
        publish(producer, seq)
        settle_all(consumer, consumer.claim()[0])
    assert [part.seq for part in segments(tmp_path / "settled" / "t0")] == [1, 2]
    assert balance(tmp_path).holds


def test_producers_ended(tmp_path: Path) -> None:
    """Nothing more will come when each journal's last line is an end; a producer started again takes that back."""
    consumer = open_consumer(tmp_path)
    assert not consumer.producers_ended()
    producer = open_producer(tmp_path)
    publish(producer, 0)
    assert not consumer.producers_ended()
    producer.close("total_steps")
    assert consumer.producers_ended()
    publish(open_producer(tmp_path), 1)
    assert not consumer.producers_ended()


def test_presence_is_exclusive_and_seen(tmp_path: Path) -> None:
    """A second holder of a place is refused with the first one's pid, and others see that the place is taken."""
    assert not alive(tmp_path, "sampler")
    held = Presence(tmp_path, "sampler-s0")
    with pytest.raises(FolderInUseError, match=rf"live sampler-s0 \(pid {os.getpid()}\)"):
        Presence(tmp_path, "sampler-s0")
    assert alive(tmp_path, "sampler")
    assert not alive(tmp_path, "trainer")
    held.close()
    assert not alive(tmp_path, "sampler")


def test_a_failed_whole_file_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that could not be forced to the disk is removed rather than left half."""
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "file", b"content", fsync=True)
    assert list(tmp_path.iterdir()) == []
