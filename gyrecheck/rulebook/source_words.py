"""The words by which a trainer's source is read for the keys it takes, loaded from `rules/handoff_source.toml`."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache

from gyrecheck.rulebook.locate_rules import rule_file
from gyrecheck.rulebook.toml_table import load_table


@dataclass(frozen=True, slots=True)
class SourceWords:
    """Shell patterns over the last component of a name; each entry is described in the rule file."""

    loaders: tuple[str, ...]
    collators: tuple[str, ...]
    loader_classes: tuple[str, ...]
    writers: tuple[str, ...]
    train_steps: tuple[str, ...]
    batches: tuple[str, ...]
    not_batches: tuple[str, ...]
    loader_variables: tuple[str, ...]
    stores: tuple[str, ...]
    not_records: tuple[str, ...]
    openers: tuple[str, ...]
    containers: tuple[str, ...]
    same: tuple[str, ...]
    pickers: tuple[str, ...]
    plain: tuple[str, ...]
    record_types: tuple[str, ...]
    record_makers: tuple[str, ...]
    padders: tuple[str, ...]
    swappers: tuple[str, ...]
    dtypes: dict[str, str] = field(default_factory=dict)
    axes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """`batch` and `time`: names of these axes."""

    def is_batch(self, name: str) -> bool:
        """Whether a variable or parameter of this name holds a record or a batch."""
        return matches(name, self.batches) and not matches(name, self.not_batches)

    def order_of(self, axes: tuple[str, ...]) -> str:
        """`BT` or `TB` where the first two axes are named as batch and time, else empty."""
        kinds = ["B" if name in self.axes.get("batch", ()) else "T" if name in self.axes.get("time", ()) else "" for name in axes[:2]]
        return "".join(kinds) if kinds in (["B", "T"], ["T", "B"]) else ""


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether any pattern fits, case told apart."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


@cache
def load_source_words() -> SourceWords:
    """The words that come with gyrecheck.

    Raises:
        RuleError: the file does not load.
    """
    return load_table(rule_file("handoff_source.toml"), SourceWords)
