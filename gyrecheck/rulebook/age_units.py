"""In which unit an age stands: `rules/age_units.toml`, the last words of names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from gyrecheck.rulebook.locate_rules import rule_file
from gyrecheck.rulebook.toml_table import load_table

_WORD = re.compile(r"[A-Z]?[a-z]+|\d+|[A-Z]+(?![a-z])")


@dataclass(frozen=True, slots=True)
class AgeUnits:
    """The file as it stands."""

    second: tuple[str, ...]
    step: tuple[str, ...]

    def named(self, name: str) -> str:
        """`second`, `step`, or nothing where the name does not tell."""
        words = _WORD.findall(name)
        last = words[-1].lower() if words else ""
        return "second" if last in self.second else "step" if last in self.step else ""


@cache
def load_age_units() -> AgeUnits:
    """The words.

    Raises:
        RuleError: the file does not load.
    """
    return load_table(rule_file("age_units.toml"), AgeUnits)
