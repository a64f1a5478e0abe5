"""How a finding can be mended: replacements in one file, safe or not. Positions are 1-based characters, so that editors and SARIF agree."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Replacement:
    """The text from `line:column` up to, not including, `end_line:end_column` becomes `text`; equal places insert."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """One mend. `safe` means that no value the program computes changes; anything else waits for `--unsafe-fixes`."""

    title: str
    safe: bool
    replacements: tuple[Replacement, ...]
