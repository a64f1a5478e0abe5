"""The lint cache stays small: by age, by size, once a day, with any number of processes at once."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from gyrecheck.source import prune as module
from gyrecheck.source.cache import Cache, digest
from gyrecheck.source.prune import prune

NOW, DAY = 2_000_000_000.0, 86_400.0
STAMP, OLDER = "0123abcd", "89abcdef"


def _entry(folder: Path, name: str, days: float, size: int = 1) -> Path:
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(b"x" * size)
    os.utime(place, (NOW - days * DAY, NOW - days * DAY))
    return place


def _left(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()} - {"pruned"}


def test_what_nobody_used_for_two_weeks_goes(tmp_path: Path) -> None:
    """Entries used 13 days ago stay, entries of 15 days go; another version's folder goes when all in it is old, facts and all."""
    for name, days in (("aa/1", 13), ("aa/2", 15), ("bb/.3.77", 15)):
        _entry(tmp_path, f"results-{STAMP}/{name}", days)
    _entry(tmp_path, f"facts-{STAMP}/facts.sqlite", 99)
    _entry(tmp_path, f"facts-{OLDER}/facts.sqlite", 15)
    _entry(tmp_path, f"alike-{OLDER}/aa/1", 15)
    _entry(tmp_path, f"codes-{OLDER}/aa/1", 13)
    assert prune(tmp_path, STAMP, now=NOW)
    assert _left(tmp_path) == {f"results-{STAMP}/aa/1", f"facts-{STAMP}/facts.sqlite", f"codes-{OLDER}/aa/1"}


def test_the_oldest_go_until_the_rest_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 40 + 40 + 40 bytes with room for 100 the two used last stay; facts above the bound begin anew, facts below it stay."""
    monkeypatch.setattr(module, "MOST_BYTES", 100)
    for name, days in (("results-0123abcd/aa/new", 1), ("alike-0123abcd/aa/mid", 2), ("results-0123abcd/aa/old", 3)):
        _entry(tmp_path, name, days, 40)
    _entry(tmp_path, f"facts-{STAMP}/facts.sqlite", 1, 101)
    _entry(tmp_path, f"facts-{OLDER}/facts.sqlite", 1, 99)
    assert prune(tmp_path, STAMP, now=NOW)
    assert _left(tmp_path) == {"results-0123abcd/aa/new", "alike-0123abcd/aa/mid", f"facts-{OLDER}/facts.sqlite"}


def test_once_a_day_and_only_what_is_ours(tmp_path: Path) -> None:
    """A second prune within a day does nothing, one a day later does; files and folders of other tools are never touched."""
    foreign = [_entry(tmp_path, name, 99) for name in ("rules-311", "notes/aa/1", "results-mine/aa/1", f"results-{STAMP}x/1")]
    assert prune(tmp_path, STAMP, now=NOW)
    late = _entry(tmp_path, f"results-{STAMP}/aa/1", 99)
    assert not prune(tmp_path, STAMP, now=NOW + 0.9 * DAY)
    assert late.exists()
    assert prune(tmp_path, STAMP, now=NOW + 1.1 * DAY)
    assert not late.exists()
    assert all(path.exists() for path in foreign)


def test_a_missing_or_closed_folder_is_no_error(tmp_path: Path) -> None:
    """Nothing is raised where there is nothing to prune, or where a file stands in the folder's place."""
    assert not prune(tmp_path / "absent", STAMP, now=NOW)
    (tmp_path / "file").write_text("")
    assert not prune(tmp_path / "file", STAMP, now=NOW)


def test_use_is_remembered(tmp_path: Path) -> None:
    """Loading an entry marks it as used now, so that what is in use is never old."""
    cache = Cache(tmp_path)
    cache.save("results", digest(b"a"), b"data")
    (place,) = (p for p in tmp_path.rglob("*") if p.is_file())
    os.utime(place, (1.0, 1.0))
    assert cache.load("results", digest(b"a")) == b"data"
    assert place.stat().st_mtime > 1.0


def _work(folder: str, number: int) -> int:
    """Saves, loads and prunes over and over; how often a loaded entry was not what was saved."""
    cache, wrong = Cache(Path(folder)), 0
    for i in range(60):
        name = digest(f"{number}-{i}".encode())
        cache.save("results", name, name.encode())
        kept = cache.load("results", name)
        wrong += kept is not None and kept != name.encode()
        prune(Path(folder), STAMP, now=NOW + (number * 60 + i) * 2 * DAY)  # years later: everything is old
        Path(folder, "pruned").unlink(missing_ok=True)
    return wrong


def test_processes_prune_and_use_one_folder(tmp_path: Path) -> None:
    """Four processes that keep, read and prune at once: none fails, and no entry is ever read as another."""
    with ProcessPoolExecutor(4) as pool:
        assert list(pool.map(_work, [str(tmp_path)] * 4, range(4))) == [0, 0, 0, 0]
