"""The words by which lint reads code where no type is known: `rules/lint.toml` as sets, each asked for by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from gyrecheck.rulebook.locate_rules import rule_file
from gyrecheck.rulebook.toml_table import load_table


@dataclass(frozen=True, slots=True)
class WordFile:
    """`rules/lint.toml` as it is written."""

    words: dict[str, tuple[str, ...]]
    fields: dict[str, tuple[str, ...]]


@dataclass(slots=True)
class LintWords:
    """Lists of words, and the fields of a trajectory by every name they go by."""

    file: WordFile
    _sets: dict[str, frozenset[str]] = field(default_factory=dict)
    _fields: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> frozenset[str]:
        """A list as a set; a list that the file lacks is a defect and raises KeyError."""
        if name not in self._sets:
            self._sets[name] = frozenset(self.file.words[name])
        return self._sets[name]

    def has(self, name: str, text: str) -> bool:
        """Whether one of the words of a list is part of `text`, case aside."""
        lower = text.lower()
        return any(word in lower for word in self.file.words[name])

    def field(self, name: str) -> str:
        """The field of a trajectory that a key or attribute means, or the empty string."""
        if not self._fields:
            self._fields = {alias: meaning for meaning, aliases in self.file.fields.items() for alias in aliases}
        return self._fields.get(name.lower(), "")


def load_lint_words(path: Path | None = None) -> LintWords:
    """The words of `path`, ours by default.

    Raises:
        RuleError: the file does not load.
    """
    return LintWords(load_table(path or rule_file("lint.toml"), WordFile))
