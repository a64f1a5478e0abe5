"""Is the importance ratio on replay what it must be? At the same version 1 (mean +-0.02, p99 +-0.2); off with age only is drift.

Both log-probs of the same action are compared, ratio = exp(replayed - recorded). What the data cannot tell apart is worded
`consistent with`. Imports numpy: import this module inside the function that calls it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from gyrecheck.model.finding import State
from gyrecheck.rulebook.ratio_limits import RatioLimits
from gyrecheck.verdict.replay_parts import Pattern, off, part_that_carries
from gyrecheck.verdict.replay_patterns import pattern_of
from gyrecheck.verdict.replay_rows import Bools, Ints, RatioStats, ReplayRows, ratio_of, ratio_stats

UNEXPLAINED = (
    "no relation to the action, the position or the recorded value was found: consistent with a wrong version tag, with other weights, "
    "or with dropout left on (train mode) on one side"
)


@dataclass(frozen=True, slots=True)
class RatioGroup:
    """The figures of one group of elements."""

    label: str
    """`all`, `version 7`, `age 2`."""
    stats: RatioStats
    off: bool


@dataclass(frozen=True, slots=True)
class RatioFault:
    """One thing wrong with the ratio."""

    code: Literal["GYR402", "GYR407"]
    pattern: str
    message: str
    records: tuple[int, ...]
    share: float
    hint: str
    side: str
    grave: bool


@dataclass(frozen=True, slots=True)
class RatioJudgement:
    """What the columns say; `faults` is empty when the ratio holds or cannot be judged."""

    state: State
    message: str
    overall: RatioStats
    groups: tuple[RatioGroup, ...]
    faults: tuple[RatioFault, ...]
    notes: tuple[str, ...]
    unit: str


def judge_ratio(rows: ReplayRows, limits: RatioLimits) -> RatioJudgement:
    """Judge the counted elements: those of age 0 against 1, those of positive age against drift, the masked ones apart."""
    usable = rows.usable
    counted = usable if rows.mask is None else usable & rows.mask
    notes = []
    if not usable.all():
        notes.append(f"{int((~usable).sum())} of {rows.size} {rows.unit}s have a NaN or infinite log-prob and were left out")
    if rows.mask is not None:
        notes += _masked(rows, usable & ~rows.mask, limits)
    rows = _with_ends(rows.only(counted))
    if rows.size == 0:
        nothing = ratio_stats(np.zeros(0), limits.clip)
        return RatioJudgement(State.UNDECIDED, "no element carries both log-probs", nothing, (), (), tuple(notes), rows.unit)
    overall = ratio_stats(ratio_of(rows.recorded, rows.replayed), limits.clip)
    groups = (RatioGroup("all", overall, off(rows, _all(rows), limits)), *_groups(rows, limits))
    age = rows.age
    faults: list[RatioFault] = []
    if age is None:
        state, message, found = _of_unknown_age(rows, limits, overall)
        return RatioJudgement(state, message, overall, groups, found, tuple(notes), rows.unit)
    same, older = age == 0, age > 0
    if (age < 0).any():
        notes.append(f"{int((age < 0).sum())} {rows.unit}s carry a version ahead of the trainer's; their ratio was not judged")
    if same.any():
        faults += _at_same_version(rows, same, limits)
    if older.any():
        more, remark = _at_positive_age(rows, older, age, limits)
        faults += more
        notes += remark
    if not same.any() and not faults:
        why = "every element is older than the weights that replayed, so no ratio has to be 1"
        return RatioJudgement(State.UNDECIDED, why, overall, groups, (), tuple(notes), rows.unit)
    if faults:
        return RatioJudgement(State.BROKEN, faults[0].message, overall, groups, tuple(faults), tuple(notes), rows.unit)
    stats = ratio_stats(ratio_of(rows.recorded[same], rows.replayed[same]), limits.clip)
    message = f"ratio is 1 at the same version: {figures(stats, rows.unit)}"
    return RatioJudgement(State.HOLDS, message, overall, groups, (), tuple(notes), rows.unit)


def _at_same_version(rows: ReplayRows, same: Bools, limits: RatioLimits) -> list[RatioFault]:
    part = rows.only(same)
    everything = _all(part)
    pattern = part_that_carries(part, limits)
    if pattern is None and not off(part, everything, limits):
        return []
    if pattern is None:
        pattern = pattern_of(part, limits) or _unexplained(part, limits)
    return [_fault("GYR402", "ratio off at the same version", part, pattern, limits)]


def _at_positive_age(rows: ReplayRows, older: Bools, age: Ints, limits: RatioLimits) -> tuple[list[RatioFault], list[str]]:
    part, ages = rows.only(older), age[older]
    d = part.replayed - part.recorded
    varied = float(part.recorded.std()) > limits.rounding
    if part.size >= limits.few and varied and bool((np.abs(d) <= limits.exact).all()):
        sentence = (
            f"exactly 1 in all {part.size} {part.unit}s although they are {_ages(ages)} old: "
            "consistent with a denominator recomputed from the current policy, or with versions counted up without an update"
        )
        pattern = Pattern("exactly-one", sentence, _all(part), certain=False, side="training")
        pattern = replace(pattern, hint="keep the sampler's own log-prob as the denominator; recomputed ones hide staleness", grave=False)
        return [_fault("GYR407", "ratio", part, pattern, limits)], []
    pattern_found = pattern_of(part, limits, drift=True) if off(part, _all(part), limits) else None
    if pattern_found is not None:
        return [_fault("GYR402", "ratio off, and not by drift", part, pattern_found, limits)], []
    steps = ", ".join(f"{float(np.abs(d[ages == a]).mean()):.3g} at age {a}" for a in np.unique(ages)[:6])
    return [], [f"drift with age, mean |log ratio|: {steps}"]


def _of_unknown_age(rows: ReplayRows, limits: RatioLimits, overall: RatioStats) -> tuple[State, str, tuple[RatioFault, ...]]:
    if not off(rows, _all(rows), limits):
        return State.HOLDS, f"ratio is 1: {figures(overall, rows.unit)}", ()
    pattern = pattern_of(rows, limits, drift=True)
    if pattern is not None and pattern.certain:
        fault = _fault("GYR402", "ratio off, and not by drift", rows, pattern, limits)
        return State.BROKEN, fault.message, (fault,)
    why = f"ratio is off ({figures(overall, rows.unit)}), but no version says whether the same weights made both: drift or mismatch"
    return State.UNDECIDED, why, ()


def _unexplained(rows: ReplayRows, limits: RatioLimits) -> Pattern:
    away = np.abs(ratio_of(rows.recorded, rows.replayed) - 1.0)
    level = limits.p99 if float(np.quantile(away, 0.99)) > limits.p99 else limits.mean
    hint = "replay one record with the weights of the versions around the tag, and with the policy in eval mode"
    few = f"too few {rows.unit}s to name a pattern" if rows.size < limits.few else UNEXPLAINED
    return Pattern("unexplained", few, np.asarray(away > level, dtype=np.bool_), certain=False, hint=hint)


def _fault(code: Literal["GYR402", "GYR407"], opening: str, rows: ReplayRows, pattern: Pattern, limits: RatioLimits) -> RatioFault:
    stats = ratio_stats(ratio_of(rows.recorded, rows.replayed), limits.clip)
    touched = pattern.touched if pattern.touched.shape[0] == rows.size else np.ones(rows.size, dtype=np.bool_)
    records = np.unique(rows.record[touched])
    return RatioFault(
        code=code,
        pattern=pattern.name,
        message=f"{opening}: {pattern.sentence} ({figures(stats, rows.unit)})",
        records=tuple(int(r) for r in records),
        share=records.size / max(1, np.unique(rows.record).size),
        hint=pattern.hint,
        side=pattern.side,
        grave=pattern.grave,
    )


def _masked(rows: ReplayRows, masked: Bools, limits: RatioLimits) -> list[str]:
    if int(masked.sum()) < limits.subset or not off(rows, masked, limits):
        return []
    return [f"masked {rows.unit}s alone ({int(masked.sum())}) also differ: harmless as long as the mask is applied"]


def _with_ends(rows: ReplayRows) -> ReplayRows:
    """First and last element of each record, where the file does not tell and records hold several elements."""
    if rows.first is not None or rows.last is not None or rows.size < 2:
        return rows
    change = np.concatenate(([True], rows.record[1:] != rows.record[:-1]))
    if change.all():
        return rows
    return replace(rows, first=change, last=np.concatenate((change[1:], [True])))


def _groups(rows: ReplayRows, limits: RatioLimits) -> tuple[RatioGroup, ...]:
    found: list[RatioGroup] = []
    for word, column in (("version", rows.version), ("age", rows.age if rows.weights != "recorded" else None)):
        if column is not None:
            for value in np.unique(column)[:64]:
                keep = np.asarray(column == value)
                stats = ratio_stats(ratio_of(rows.recorded[keep], rows.replayed[keep]), limits.clip)
                found.append(RatioGroup(f"{word} {value}", stats, off(rows, keep, limits)))
    return tuple(found)


def _ages(ages: Ints) -> str:
    low, high = int(ages.min()), int(ages.max())
    return f"{low} version{'s' if low > 1 else ''}" if low == high else f"{low} to {high} versions"


def _all(rows: ReplayRows) -> Bools:
    return np.ones(rows.size, dtype=np.bool_)


def figures(stats: RatioStats, unit: str) -> str:
    """Mean, p99, range, effective sample size and clip fraction in words."""
    return (
        f"mean {stats.mean:.4g}, p99 |ratio - 1| {stats.p99:.3g}, range {stats.low:.3g} to {stats.high:.3g} over {stats.n} {unit}s; "
        f"effective sample size {stats.ess:.0%}, clipped {stats.clipped:.0%}"
    )


def record_numbers(rows: ReplayRows, versions: tuple[int, ...] = ()) -> tuple[int, ...]:
    """The element numbers of all records, or of those of some versions."""
    keep = _all(rows) if not versions or rows.version is None else np.isin(rows.version, versions)
    return tuple(int(number) for number in np.unique(rows.record[keep]))
