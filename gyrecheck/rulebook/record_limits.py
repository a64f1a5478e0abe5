"""The limits within which regularities of trajectory records are no fault, loaded from `rules/record_limits.toml`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache

from gyrecheck.rulebook.locate_rules import rule_file
from gyrecheck.rulebook.toml_table import load_table


@dataclass(frozen=True, slots=True)
class RecordLimits:
    """Each limit's meaning and unit stands beside its value in the rule file."""

    shuffled: float = 0.3
    short_episode: int = 8
    aliased: float = 0.9
    fill_logprob: float = -1000.0
    certain: float = 5e-3
    equal_tokens: int = 4
    ordered_records: int = 8
    rare_falls: float = 0.05
    large_fall: float = 3.0
    clock_slack: float = 1.0
    group_rounding: float = 2e-3
    mixed_groups: float = 0.4
    frozen_steps: int = 5
    raw_scale: float = 8.0
    scaled_rows: int = 3
    bomb_ratio: float = 100.0
    bomb_bytes: int = 268435456

    def problems(self) -> tuple[str, ...]:
        """Limits that cannot be meant."""
        wrong = [f"`{f.name}` must be positive" for f in fields(self) if f.name != "fill_logprob" and getattr(self, f.name) <= 0]
        shares = ("shuffled", "aliased", "rare_falls", "mixed_groups", "group_rounding")
        wrong += [f"`{name}` is a share and must be at most 1" for name in shares if getattr(self, name) > 1]
        return (*wrong, *(("`fill_logprob` must be negative",) if self.fill_logprob >= 0 else ()))


@cache
def load_record_limits() -> RecordLimits:
    """The limits of `rules/record_limits.toml`.

    Raises:
        RuleError: the file does not load or a limit cannot be meant.
    """
    return load_table(rule_file("record_limits.toml"), RecordLimits)
