"""Promises of kept tables: made again without a check they are the values that the check gave, whatever the schema."""

from dataclasses import dataclass
from enum import Enum

import pytest

from gyrecheck.rulebook import table_cache
from gyrecheck.rulebook.codes import Code
from gyrecheck.rulebook.kept_table import made
from gyrecheck.rulebook.locate_rules import rule_files
from gyrecheck.rulebook.log_formats import LogFormat
from gyrecheck.rulebook.table_cache import TableCache
from gyrecheck.rulebook.toml_table import build, load_table, read_toml

FILES = [(path, Code) for path in rule_files("codes")] + [(path, LogFormat) for path in rule_files("logs") if path.stem != "generic"]


class Tone(Enum):
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class Inner:
    tones: tuple[Tone, ...] = ()


@dataclass(frozen=True, slots=True)
class Outer:
    inner: Inner | None = None
    for_: str = ""
    parts: tuple[Inner, ...] = ()
    by_name: dict[str, float] | None = None


@pytest.mark.parametrize(("path", "schema"), FILES, ids=lambda x: getattr(x, "stem", ""))
def test_every_rule_file_is_the_same_either_way(path, schema):
    """Codes and log formats: made from the raw table they equal what the strict loader builds."""
    table = read_toml(path)
    assert made(table, schema) == build(table, schema, where=str(path))


def test_nested_types_spellings_and_whole_numbers():
    """A trailing underscore, hyphens, an enum in a tuple, an optional table and a whole number for a float."""
    table = {"for": "x", "inner": {"tones": ["high"]}, "parts": [{}], "by-name": {"a": 1}}
    value = made(table, Outer)
    assert value == Outer(Inner((Tone.HIGH,)), "x", (Inner(),), {"a": 1.0})
    assert isinstance(value.by_name["a"], float)


def test_a_kept_table_of_another_schema_is_read_anew(tmp_path, monkeypatch):
    """When a type that the schema holds has changed, the file is read and checked as if nothing were kept."""
    monkeypatch.setattr(table_cache, "_OURS", str(tmp_path))
    rule = tmp_path / "rule.toml"
    rule.write_text('inner = { tones = ["high"] }\n')
    cache = TableCache(tmp_path / "cache")
    cache.put(rule, Outer, {"inner": {"tones": ["low"]}})
    monkeypatch.setattr("gyrecheck.rulebook.toml_table.CACHE", cache)
    assert load_table(rule, Outer) == Outer(Inner((Tone.HIGH,)))
