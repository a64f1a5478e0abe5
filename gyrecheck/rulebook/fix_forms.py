"""Which finding is mended in which form, and with which names: `rules/fixes.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from gyrecheck.rulebook.locate_rules import rule_file
from gyrecheck.rulebook.toml_table import load_table


@dataclass(frozen=True, slots=True)
class FixForm:
    """One form of mending with the codes it serves; names that a form does not use stay empty."""

    form: Literal["decorate", "drop-import", "insert-call"]
    codes: tuple[str, ...]
    module: str = ""
    name: str = ""
    refused_when: tuple[str, ...] = ()
    """Called names that show that a function needs gradients, so that it is not decorated."""
    after: str = ""
    method: str = ""

    def problems(self) -> tuple[str, ...]:
        """What the form needs and does not have."""
        needed = {"decorate": ("module", "name"), "insert-call": ("after", "method")}.get(self.form, ())
        return tuple(f"form {self.form} needs `{key}`" for key in needed if not getattr(self, key))


@dataclass(frozen=True, slots=True)
class _Table:
    fixes: tuple[FixForm, ...]


@cache
def load_fix_forms() -> dict[str, FixForm]:
    """The form for each code that has one.

    Raises:
        RuleError: the file does not load.
    """
    table = load_table(rule_file("fixes.toml"), _Table)
    return {code: form for form in table.fixes for code in form.codes}
