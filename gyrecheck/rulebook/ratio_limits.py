"""The limits within which an importance ratio on replay counts as 1, loaded from `rules/replay_ratio.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from gyrecheck.rulebook.locate_rules import rule_file
from gyrecheck.rulebook.toml_table import load_table


@dataclass(frozen=True, slots=True)
class RatioLimits:
    """All limits are on ratio = exp(replayed - recorded), dimensionless, unless said."""

    mean: float = 0.02
    """Largest |mean ratio - 1| at the same version."""
    p99: float = 0.2
    """Largest 99th percentile of |ratio - 1| at the same version."""
    exact: float = 1e-6
    """|replayed - recorded| in nats up to which two log-probs are the same number."""
    rounding: float = 1e-3
    """|difference| in nats that storing four decimals or another numeric kernel explains; used by exact pattern tests."""
    clip: float = 0.2
    """PPO's clip range for the shown clip fraction."""
    few: int = 8
    """Elements below which no pattern over all elements is named."""
    subset: int = 3
    """Elements below which no part (bound, first step, one version) is judged on its own."""
    linear: float = 0.5
    """Share of the variance of (replayed - recorded) that a line over the recorded log-prob must explain before a temperature is named;
    simulated categorical policies give 0.59 to 0.99 for a temperature and below 0.25 for other weights."""
    numerics: float = 0.05
    """Median |ratio - 1| below which a zero-centred difference may be other numerics."""
    same_weights: tuple[str, ...] = ("replay",)
    """Parts of a key's name that say the recorded version's weights computed it again."""

    def problems(self) -> tuple[str, ...]:
        """Limits that cannot be meant."""
        wrong = [f"`{name}` must be positive" for name in ("mean", "p99", "exact", "rounding", "clip") if getattr(self, name) <= 0]
        if not 0 < self.linear < 1:
            wrong.append("`linear` must lie between 0 and 1")
        return tuple(wrong)


@cache
def load_ratio_limits() -> RatioLimits:
    """The limits of `rules/replay_ratio.toml`.

    Raises:
        RuleError: the file does not load or a limit cannot be meant.
    """
    return load_table(rule_file("replay_ratio.toml"), RatioLimits)
