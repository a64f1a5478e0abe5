"""The scanner on hostile bytes: right numbers where they can be trusted, none where they cannot, no crash, no word about holding."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gyrecheck.commands.ledger_run import judge_text
from gyrecheck.model.errors import GyreError
from gyrecheck.model.events import Reading
from gyrecheck.model.finding import State
from gyrecheck.rulebook.codes import load_codes
from gyrecheck.stream.open_log import LogFile, blocks, find_logs
from gyrecheck.stream.reader import FormatReader
from gyrecheck.stream.scan import Scan
from gyrecheck.stream.strip import undress


def _read(data: bytes, *, size: int = 1 << 20, whole: bool = False) -> list[Reading]:
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return [r for batch in Scan("run.log", FormatReader(None, whole_last_line=whole)).read(pieces) for r in batch]


def _terms(data: bytes) -> list[tuple[int, str, float]]:
    return [(r.line, key.term, value) for r in _read(data) for key, value in r.values]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"sampled=1e3 taken=900", [("sampled", 1000.0), ("taken", 900.0)]),
        (b"sampled=1,024 taken=0x10", [("sampled", 1024.0), ("taken", 16.0)]),
        (b'"sampled": 5, "dropped_stale": -4', [("sampled", 5.0), ("dropped_stale", -4.0)]),
        (b"sampled: 3 | taken =3", [("sampled", 3.0), ("taken", 3.0)]),
        (b"{'loss': '0.0123', 'ratio': np.float64(1.25), 'sampled': np.int64(3)}", [("loss", 0.0123), ("ratio", 1.25), ("sampled", 3.0)]),
        (b"\x1b[1msampled\x1b[0m=\x1b[32m7\x1b[0m", [("sampled", 7.0)]),
        (b"^[[36m(W pid=3)^[[0m sampled=7", [("sampled", 7.0)]),
        (b"(Rollouter pid=52011, ip=10.0.0.7) sampled=7", [("sampled", 7.0)]),
        (b"| sampled | 61440 |", [("sampled", 61440.0)]),
        (b"128 rollouts in, 98 removed, 30 to trainer", [("sampled", 128.0), ("dropped_other", 98.0), ("taken", 30.0)]),
        (b"old_dropped_stale=99", []),
        (b"took 2.8s at 10:00:03, ids 3..17", []),
        (b"\xff\xfe sampled=7 \xc3\x28", [("sampled", 7.0)]),
        (b"lag: mean=1.5 max=3", [("age", 1.5), ("age_max", 3.0)]),
        (b"weights 398 published", [("published", 398.0)]),
    ],
)
def test_numbers_in_the_wild(line: bytes, expected: list[tuple[str, float]]) -> None:
    """Each spelling gives its number, and look-alikes give none."""
    assert [(term, value) for _, term, value in _terms(line + b"\n")] == expected


def test_nan_is_no_count() -> None:
    """`nan` for a counter counts nothing: the term is missing, and the balance is undecided."""
    verdicts = {v.code: v for v in judge_text("sampled=nan taken=5 dropped=0 left=0\n" * 3, load_codes()).verdicts}
    assert verdicts["GYR507"].state is State.UNDECIDED
    assert verdicts["GYR507"].quantity == "sampled"


def test_cut_last_line_is_not_counted() -> None:
    """A last line without a line end may be a cut `=1` of `=16`: it gives nothing."""
    assert _terms(b"sampled=16 taken=8\nsampled=32 taken=1") == [(1, "sampled", 16.0), (1, "taken", 8.0)]


def test_carriage_returns_part_a_line() -> None:
    """A progress bar glued to a counter by a carriage return hides neither; both keep the line's number."""
    assert _terms(b"x\n 50%|###  | 5/10 [00:01<00:01]\rsampled=64 taken=32\n") == [(2, "sampled", 64.0), (2, "taken", 32.0)]


def test_nul_run_is_passed_over() -> None:
    """A run of NUL bytes before a line takes nothing from it."""
    assert _terms(b"\0" * 4096 + b"sampled=64 taken=32\n") == [(1, "sampled", 64.0), (1, "taken", 32.0)]


def test_line_of_many_megabytes_is_passed_over() -> None:
    """A line above 8 MiB is noted and skipped; the one after it has number 2."""
    scan = Scan("run.log", FormatReader(None))
    data = [b"x" * (1 << 20)] * 9 + [b"\nsampled=64 taken=32\n"]
    assert [r.line for batch in scan.read(data) for r in batch] == [2]
    assert scan.seen.too_long == [1]


@pytest.mark.parametrize(
    ("segment", "seconds"),
    [
        (b"2026-01-10T10:00:05Z x", 1768039205.0),
        (b"2026-01-10 10:00:05,500 x", 1768039205.5),
        (b"20260110-10:00:05.250 x", 1768039205.25),
        (b"2026-01-10T12:00:05+02:00 x", 1768039205.0),
        (b"[10:00:05] x", 36005.0),
        (b"1768039205.5 x", 1768039205.5),
        (b"no time 12 here", None),
    ],
)
def test_times(segment: bytes, seconds: float | None) -> None:
    """Times in front of a line are read in their zone; 2026-01-10 10:00:05 UTC is 1,768,039,205 s after the epoch."""
    assert undress(segment).time == seconds


def test_clock_runs_over_midnight() -> None:
    """Times of day that fall by more than half a day belong to the next one."""
    first, second = _read(b"23:59:00 sampled=1 taken=1\n00:01:00 sampled=2 taken=2\n")
    assert second.time is not None
    assert first.time is not None
    assert second.time - first.time == 120.0


def test_rotated_and_packed_sets_are_put_in_order(tmp_path: Path) -> None:
    """`train.log.2.gz`, `train.log.1.xz` and `train.log` are one log, oldest first."""
    (tmp_path / "train.log").write_bytes(b"sampled=3 taken=3\n")
    with lzma.open(tmp_path / "train.log.1.xz", "wb") as file:
        file.write(b"sampled=2 taken=2\n")
    with gzip.open(tmp_path / "train.log.2.gz", "wb") as file:
        file.write(b"sampled=1 taken=1\n")
    logs = find_logs((str(tmp_path),))
    assert [b"".join(blocks(log))[8:9] for log in logs] == [b"1", b"2", b"3"]


def test_missing_file_names_the_nearest(tmp_path: Path) -> None:
    """A path that does not exist ends in one sentence with the nearest name."""
    (tmp_path / "train.log").write_bytes(b"")
    with pytest.raises(GyreError) as error:
        find_logs((str(tmp_path / "trian.log"),))
    assert "train.log" in error.value.hint


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_never_crash_nor_hold(data: bytes) -> None:
    """Random bytes give readings or none, never an exception, and no balance that holds."""
    text = data.decode("utf-8", "surrogateescape")
    verdicts = judge_text(text, load_codes()).verdicts
    assert [v for v in verdicts if v.code == "GYR507" and v.state is State.HOLDS] == []


LINE = st.sampled_from(
    [b"sampled=64 taken=32 dropped=0 left=32", b"noise \xff line", b"12:00:01 loss=0.5\r lr 0.001", b"(W pid=4) lag 2", b""]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(LINE, max_size=12), st.integers(1, 40))
def test_block_size_does_not_matter(lines: list[bytes], size: int) -> None:
    """Blocks of any size give the same readings, line by line."""
    data = b"\n".join(lines) + b"\n"
    assert _read(data, size=size) == _read(data)


def test_stored_content_is_read_like_a_file(tmp_path: Path) -> None:
    """A log given as content and the same log as a file give the same bytes."""
    path = tmp_path / "a.log"
    path.write_bytes(b"sampled=1\n")
    assert b"".join(blocks(LogFile(str(path)))) == b"".join(blocks(LogFile("x", text=b"sampled=1\n")))
