"""Which part of the rows carries the difference: the action's bound, padding, the first or last step, one action, one version.

A part is named only when it is off by itself and everything outside it is within the limits, so a difference that runs through all rows
is never blamed on a corner. Imports numpy: import this module inside the function that calls it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gyrecheck.rulebook.ratio_limits import RatioLimits
from gyrecheck.verdict.replay_rows import Bools, ReplayRows, ratio_of, ratio_stats


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """What the difference looks like, and how surely."""

    name: str
    sentence: str
    """Continues `ratio off at the same version: `."""
    touched: Bools
    """[N] the elements that show it."""
    certain: bool = True
    """False: the data are consistent with it and with something else; the sentence says so."""
    hint: str = ""
    side: str = "handoff"
    grave: bool = True
    """False: legitimate engines show it too, so it is never more than a warning."""


def off(rows: ReplayRows, keep: Bools, limits: RatioLimits) -> bool:
    """Whether the ratio over the kept elements leaves the limits on its mean or its 99th percentile."""
    stats = ratio_stats(ratio_of(rows.recorded[keep], rows.replayed[keep]), limits.clip)
    return stats.n > 0 and (abs(stats.mean - 1.0) > limits.mean or stats.p99 > limits.p99)


def part_that_carries(rows: ReplayRows, limits: RatioLimits) -> Pattern | None:
    """The first part that is off while the rest holds, or None."""
    away = np.abs(ratio_of(rows.recorded, rows.replayed) - 1.0)
    for name, part, sentence, hint, side in _parts(rows, limits):
        inside, outside = int(part.sum()), int((~part).sum())
        if inside < limits.subset or outside < limits.subset:
            continue
        if not off(rows, part, limits) or off(rows, ~part, limits):
            continue
        if np.median(away[part]) < 5.0 * max(float(np.median(away[~part])), limits.exact):
            continue
        share = f"{inside} of {rows.size} {rows.unit}s"
        message = f"only {sentence} ({share}); all others replay within the limits"
        return Pattern(name, message, part & (away > limits.mean), hint=hint, side=side, grave=name != "padding")
    return None


def _parts(rows: ReplayRows, limits: RatioLimits) -> Iterator[tuple[str, Bools, str, str, str]]:
    bound = at_bound(rows, limits)
    if bound is not None:
        yield (
            "action-bound",
            bound,
            "where an action lies at its bound",
            "store the unclipped action with its log-prob, or clip on both sides before the log-prob",
            "sampling",
        )
    if rows.mask is None and rows.unit == "token":
        one_sided = (rows.recorded == 0.0) ^ (rows.replayed == 0.0)
        hint = "write the response mask beside the log-probs and leave masked tokens out of the ratio"
        words = "where one side holds exactly 0: consistent with padding or prompt tokens counted without a mask"
        yield "padding", one_sided, words, hint, "sampling"
    for name, column, words in (("first-step", rows.first, "at the first"), ("last-step", rows.last, "at the last")):
        if column is not None:
            place = "of an episode" if rows.unit == "step" else "of a record"
            hint = "look at what differs there: reset state, observation normalisation, stop or start token"
            yield name, column, f"{words} {rows.unit} {place}", hint, "sampling"
    if rows.discrete and rows.action is not None:
        values = np.unique(rows.action[:, 0])
        if 1 < values.size <= 64:
            for value in values:
                hint = "look at the action mask and the index order on both sides"
                yield "one-action", rows.action[:, 0] == value, f"where the action is {value:g}", hint, "handoff"
    versions = off_versions(rows, limits)
    if versions and rows.version is not None:
        words = f"version{'s' if len(versions) > 1 else ''} {', '.join(str(v) for v in versions)}"
        hint = "the tag names other weights than those that sampled: set it from the weights loaded, not from the trainer's counter"
        yield "one-version", np.isin(rows.version, versions), f"rows of {words}", hint, "sampling"
    records = off_records(rows, limits)
    if records is not None:
        words = "in some records, consistent with another version's weights or another context there"
        yield "some-records", records, words, "replay one of these records with the weights of the versions around its tag", "sampling"


def at_bound(rows: ReplayRows, limits: RatioLimits) -> Bools | None:
    """[N] rows with a coordinate at its extreme value, where several rows share that very value; None when no bound shows."""
    if rows.action is None or rows.discrete:
        return None
    hit = np.zeros(rows.size, dtype=np.bool_)
    for column in rows.action.T:
        if np.unique(column).size <= max(3, column.size // 10):
            continue
        ends = [column == extreme for extreme in (column.max(), column.min())]
        again = [end for end in ends if end.sum() >= 2]  # a continuous action meets its extreme twice only where it is clipped
        at_end = np.logical_or.reduce(again) if again else np.zeros(rows.size, dtype=np.bool_)
        if again:
            at_end |= np.isclose(np.abs(column), np.abs(column).max())
        if at_end.sum() >= limits.subset:
            hit |= at_end
    return hit if hit.any() else None


def off_versions(rows: ReplayRows, limits: RatioLimits) -> tuple[int, ...]:
    """The versions off by themselves, when there is at least one that is not."""
    if rows.version is None:
        return ()
    versions, counts = np.unique(rows.version, return_counts=True)
    judged = [int(v) for v, n in zip(versions, counts, strict=True) if n >= limits.subset]
    wrong = tuple(v for v in judged if off(rows, np.asarray(rows.version == v), limits))
    return wrong if 0 < len(wrong) < len(judged) else ()


def off_records(rows: ReplayRows, limits: RatioLimits) -> Bools | None:
    """[N] elements of records off by themselves, where records hold several elements and at least half of the records are not off."""
    numbers, index, counts = np.unique(rows.record, return_inverse=True, return_counts=True)
    if numbers.size < 2 * limits.subset or counts.min() < limits.subset:
        return None
    wrong = (
        np.array([off(rows, np.asarray(index == at), limits) for at in range(numbers.size)])
        if numbers.size <= 4096
        else np.zeros(numbers.size, bool)
    )
    return np.asarray(wrong[index], dtype=np.bool_) if 0 < int(wrong.sum()) <= numbers.size // 2 else None
