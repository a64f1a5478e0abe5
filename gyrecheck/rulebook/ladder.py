"""Diagnosis ladders: `rules/ladders/<name>.toml`, the order in which a person should look."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from gyrecheck.rulebook.locate_rules import rule_files
from gyrecheck.rulebook.toml_table import load_folder


@dataclass(frozen=True, slots=True)
class Rung:
    """One question. `flow` rungs come first; the first failing one opens the `cause` rungs."""

    kind: Literal["flow", "cause"]
    name: str
    check: Literal["sampled", "consumed", "train_steps", "carrier", "data_form", "filter", "batch"]


@dataclass(frozen=True, slots=True)
class Ladder:
    """Rungs in their order, and the code whose verdict carries them."""

    name: str
    code: str
    rungs: tuple[Rung, ...]

    def problems(self) -> tuple[str, ...]:
        """A flow rung below a cause rung would never be reached."""
        kinds = [rung.kind for rung in self.rungs]
        return () if kinds == sorted(kinds, key=lambda k: k != "flow") else ("`rungs`: flow rungs come before cause rungs",)


@cache
def load_ladders(extra: Path | None = None) -> dict[str, Ladder]:
    """All ladders by name.

    Raises:
        RuleError: a file does not load.
    """
    return load_folder(rule_files("ladders", extra), Ladder)
