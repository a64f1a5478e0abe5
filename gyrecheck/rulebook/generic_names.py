"""The form of `rules/logs/generic.toml`: names and words by term, ways out of the ledger, families of words in any order."""

from __future__ import annotations

from dataclasses import dataclass, field

from gyrecheck.model.events import Unit
from gyrecheck.rulebook.log_formats import load_terms


@dataclass(frozen=True, slots=True)
class Qualifiers:
    """Words that set streams apart, and those of them whose streams are no part of the training balance."""

    words: tuple[str, ...]
    apart: tuple[str, ...]
    games: tuple[str, ...] = ()
    """Words beside which `lost` and `draws` are results of games."""
    elsewhere: tuple[str, ...] = ()
    """First words of lines that count other things: what a sync or a checkpoint did is no sample."""


@dataclass(frozen=True, slots=True)
class WeakNames:
    """Names that count only beside a noun."""

    words: tuple[str, ...]
    sampled: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    """Those that count without one where nothing, or another count, follows the number: `begun 50 finished 40`."""
    never: tuple[str, ...] = ()
    """Words of longer names that mean nothing alone: `max` is no `max async`."""
    states: tuple[str, ...] = ()
    """Words that count nothing behind or before a word that is not understood with them: `queue empty 5` is a state of the queue."""


@dataclass(frozen=True, slots=True)
class VersionNames:
    """Words of a side and words for the policy's state; any of the one beside any of the other is that side's version."""

    trainer: tuple[str, ...] = ()
    sampler: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    def names(self) -> list[tuple[tuple[str, ...], str]]:
        """All names, as words, with their term."""
        sides = [(side, "trainer_version") for side in self.trainer] + [(side, "loaded") for side in self.sampler]
        pairs = [(side.split(), word.split(), term) for side, term in sides for word in self.words]
        return [(tuple(name), term) for side, word, term in pairs for name in ([*side, *word], [*word, *side])]


@dataclass(frozen=True, slots=True)
class Drops:
    """Ways out of the ledger."""

    verbs: tuple[str, ...]
    stale_words: tuple[str, ...]
    alone: dict[str, str]
    reasons: dict[str, str]


@dataclass(frozen=True, slots=True)
class Family:
    """Names made of known words in any order: one word of each `need`, and none outside `need`, `may`, nouns and fillers.

    `noun`: a noun must stand beside it. `config`: only on a line that states settings.
    """

    term: str
    need: tuple[tuple[str, ...], ...]
    may: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    noun: bool = False
    config: bool = False


@dataclass(frozen=True, slots=True)
class GenericRules:
    """The file as it stands."""

    name: str
    summary: str
    total_words: tuple[str, ...]
    step_words: tuple[str, ...]
    not_counted: tuple[str, ...]
    filler_words: tuple[str, ...]
    nouns: dict[str, Unit]
    others: tuple[str, ...]
    """What a run has many of and no ledger counts: `pool ready: 8 workers` tells no level."""
    map_names: dict[str, str]
    qualifiers: Qualifiers
    names: dict[str, tuple[str, ...]]
    weak: WeakNames
    drops: Drops
    versions: VersionNames = VersionNames()
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Word lists that families name as `@list`."""
    families: tuple[Family, ...] = ()

    def problems(self) -> tuple[str, ...]:
        """Terms and word lists that do not exist."""
        known = load_terms().terms
        lists = {word for one in self.families for part in (*one.need, one.may, one.never) for word in part if word[:1] == "@"}
        return (
            *(f"`names.{term}` is no term" for term in self.names if term not in known),
            *(f"`families`: `{one.term}` is no term" for one in self.families if one.term not in known),
            *(f"`families`: no list `words.{word[1:]}`" for word in sorted(lists) if word[1:] not in self.words),
        )
