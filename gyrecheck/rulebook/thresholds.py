"""`rules/thresholds.toml`: every number at which a verdict about a run turns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from gyrecheck.rulebook.locate_rules import rule_file
from gyrecheck.rulebook.toml_table import load_table


@dataclass(frozen=True, slots=True)
class Thresholds:
    """One field a line of the file, where each is explained."""

    coupling_calls: int
    coupling_ratio: float
    coupling_alternation: float
    filter_all: float
    drops_high: float
    drops_least: int
    repeat_readings: int
    repeat_share: float
    reward_saturated: float
    good_rows: int
    lag_readings: int
    lag_growth: float
    behind_readings: int
    at_limit: float
    gap_readings: int
    gap_climb: float
    gap_drop: float
    ratio_off: float
    ratio_exact: float
    ratio_readings: int
    gap_large: float
    gap_noise: float
    kl_noise: float
    gap_jump: float
    clip_all: float
    collapse_entropy: float
    collapse_away: float
    flat_share: float
    flat_readings: int
    inert_readings: int
    first_kl: float
    first_clip: float
    first_share: float
    cut_rounds: int
    lr_tail: float
    lr_anew: float
    lr_back: float
    frozen_updates: int
    frozen_sure: int
    late_load: int
    stuck_readings: int
    stuck_seconds: float
    outrun_share: float
    outrun_untimed: float
    outrun_rate: float
    overstate: float
    turnover_off: float
    compare_kl: float
    compare_entropy: float
    compare_clip: float
    compare_level: float
    compare_share: float
    compare_rate: float
    compare_reward: float


@cache
def load_thresholds() -> Thresholds:
    """The thresholds.

    Raises:
        RuleError: the file does not load.
    """
    return load_table(rule_file("thresholds.toml"), Thresholds)
