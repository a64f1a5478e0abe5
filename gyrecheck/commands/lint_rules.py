"""The rule files that lint needs, compiled and kept: the codes at once, the words of the analysis only when something is analysed."""

from __future__ import annotations

import marshal
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gyrecheck.rulebook.codes import Code, load_codes
from gyrecheck.rulebook.locate_rules import rule_file, rule_files
from gyrecheck.source.cache import Cache, digest

if TYPE_CHECKING:
    from gyrecheck.rulebook.lexicon import Lexicon
    from gyrecheck.rulebook.lint_words import LintWords
    from gyrecheck.rulebook.regions import RegionNames


class Tables(NamedTuple):
    """What the analysis looks symbols and names up in."""

    lexicon: Lexicon
    regions: RegionNames
    words: LintWords


@dataclass(frozen=True)
class Rules:
    """The rule files a run needs; `stamp` changes when one of them does."""

    codes: dict[str, Code]
    stamp: str
    extra: Path | None
    cache: Cache

    @cached_property
    def tables(self) -> Tables:
        """Lexicon, regions and words.

        Raises:
            RuleError: a rule file does not load.
        """
        return _kept_tables(self.cache, self.stamp) or _load_tables(self.cache, self.stamp, self.extra)

    @property
    def lexicon(self) -> Lexicon:
        """Symbols, types and names with their roles."""
        return self.tables.lexicon

    @property
    def regions(self) -> RegionNames:
        """What a function's name says."""
        return self.tables.regions

    @property
    def words(self) -> LintWords:
        """Lists of words."""
        return self.tables.words


def load_rules(cache: Cache, extra: Path | None = None) -> Rules:
    """The codes (without their samples) and, when asked for, the tables; from the cache when no rule file has changed.

    Raises:
        RuleError: a rule file does not load.
    """
    files = [
        rule_file("roles.toml"),
        rule_file("regions.toml"),
        rule_file("lint.toml"),
        *rule_files("vocabulary", extra),
        *rule_files("codes", extra),
    ]
    stamp = digest(*(part for path in files for part in (str(path).encode(), path.read_bytes())))
    kept = cache.load("codes", stamp)
    if kept is not None:
        try:
            return Rules(msgspec.msgpack.decode(kept, type=dict[str, Code]), stamp, extra, cache)
        except msgspec.DecodeError:
            pass
    codes = {number: _bare(code) for number, code in load_codes(extra).items()}
    rules = Rules(codes, stamp, extra, cache)
    _ = rules.tables  # a misfit in any rule file ends the first run, not a later one
    cache.save("codes", stamp, msgspec.msgpack.encode(codes))
    return rules


def _bare(code: Code) -> Code:
    from dataclasses import replace

    return replace(code, samples=())


def _kept_tables(cache: Cache, stamp: str) -> Tables | None:
    kept = cache.load("rules", stamp)
    if kept is None:
        return None
    from gyrecheck.rulebook.lexicon import from_plain
    from gyrecheck.rulebook.lint_words import LintWords, WordFile
    from gyrecheck.rulebook.regions import Region, RegionNames

    try:
        plain = marshal.loads(kept)  # noqa: S302 - our own folder; a torn entry raises and is a miss
        regions = RegionNames(msgspec.convert(plain["regions"], dict[str, Region]))
        return Tables(from_plain(plain["lexicon"]), regions, LintWords(msgspec.convert(plain["words"], WordFile)))
    except (ValueError, EOFError, TypeError, KeyError, msgspec.ValidationError):
        return None


def _load_tables(cache: Cache, stamp: str, extra: Path | None) -> Tables:
    from gyrecheck.rulebook.lexicon import load_lexicon, to_plain
    from gyrecheck.rulebook.lint_words import load_lint_words
    from gyrecheck.rulebook.regions import load_regions

    lexicon, regions, words = load_lexicon(extra), load_regions(), load_lint_words()
    plain = {
        "lexicon": to_plain(lexicon),
        "regions": msgspec.to_builtins(regions.table),
        "words": msgspec.to_builtins(words.file),
    }
    cache.save("rules", stamp, marshal.dumps(plain))
    return Tables(lexicon, regions, words)
