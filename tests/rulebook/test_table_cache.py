"""Promises of the table cache: it gives what was kept for an unchanged file, forgets what changed, and survives any file in its place."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from gyrecheck.rulebook import table_cache
from gyrecheck.rulebook.table_cache import TableCache


@dataclass(frozen=True, slots=True)
class Shape:
    name: str


@pytest.fixture
def rule(tmp_path, monkeypatch):
    monkeypatch.setattr(table_cache, "_OURS", str(tmp_path))
    path = tmp_path / "rule.toml"
    path.write_text('name = "a"\n')
    return path


def kept(tmp_path, rule) -> TableCache:
    cache = TableCache(tmp_path / "cache")
    cache.put(rule, Shape, {"name": "a"})
    cache.save()
    return TableCache(tmp_path / "cache")


def test_an_unchanged_file_comes_back(tmp_path, rule):
    """Another process finds the table that one has kept."""
    assert kept(tmp_path, rule).get(rule, Shape) == {"name": "a"}


def test_a_changed_file_is_a_miss(tmp_path, rule):
    """Another time of change, or another size, and the file is read again."""
    cache = kept(tmp_path, rule)
    os.utime(rule, ns=(1, 1))
    assert cache.get(rule, Shape) is None


@pytest.mark.parametrize("damage", [b"", b"\xff" * 40, b"i\x01\x00\x00\x00"])
def test_a_torn_cache_is_a_miss(tmp_path, rule, damage):
    """Whatever stands in the cache's place, nothing is raised."""
    cache = kept(tmp_path, rule)
    place = next(Path(tmp_path / "cache").glob("rules-*"))
    place.write_bytes(damage)
    assert cache.get(rule, Shape) is None


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path, rule):
    """Keeping into a path below a file does nothing."""
    cache = TableCache(rule / "below")
    cache.put(rule, Shape, {"name": "a"})
    cache.save()
    assert TableCache(rule / "below").get(rule, Shape) is None


def test_without_a_folder_nothing_is_kept(rule):
    """Libraries keep nothing."""
    cache = TableCache(None)
    cache.put(rule, Shape, {"name": "a"})
    assert cache.get(rule, Shape) is None
