"""Counts that no verb explains (`samples 640`, `sessions_total 192`, `stored 640`): what they count follows from what they add up to.

Each answer needs the same lines throughout: a count that taken, left and drops make up is what was sampled; so is a running total of
things of which another counter names a failed part, where the rest is nearly all. A level that never falls beside the true level, and
is always what was taken with what is left, is what came in.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace

from gyrecheck.model.snapshot import Series

DROPS = frozenset(("dropped", "dropped_stale", "dropped_other"))
BY_NAME = "by name"
"""The reason of what was sampled where only its name says so: what is missing from it is a warning."""
LEAST_LINES = 4
NEARLY = 0.1
"""Largest share of a total that its parts may leave open, on any line, if they are its parts by name."""


def counted_is_sampled(series: tuple[Series, ...]) -> tuple[Series, ...]:
    """The same series, such counts and the drops beside them with the term and unit that they must have."""
    taken = next((s for s in series if s.key.term == "taken" and s.count >= LEAST_LINES), None)
    if taken is None:
        return series
    lefts = [s for s in series if s.key.term == "left" and _beside(s, taken)]
    if not lefts:
        return series
    sinks = [s for s in series if s.key.term in DROPS and _beside(s, taken)]
    has_sampled = any(s.key.term == "sampled" for s in series)
    for left in lefts if len(lefts) > 1 else ():
        rest = [s for s in lefts if s is not left]
        if not left.key.sure and not left.falls and left.rises >= LEAST_LINES and all(_made_up(left, (taken, *rest, *sinks))):
            meant = replace(left, key=replace(left.key, term="written" if has_sampled else "sampled", unit=taken.key.unit))
            series = tuple(meant if s is left else s for s in series)
            return counted_is_sampled(series) if len(rest) > 1 else series
    if has_sampled:
        return series
    parts = (taken, lefts[0], *sinks)
    whole = next((s for s in series if _bare(s, taken) and (_closes(s, parts) or _is_whole_of(s, parts))), None)
    if whole is None:
        return series
    unit = taken.key.unit
    same = {id(s): replace(s, key=replace(s.key, unit=unit)) for s in sinks if s.key.unit is whole.key.unit}
    reason = "" if _closes(whole, parts) else BY_NAME
    same[id(whole)] = replace(whole, key=replace(whole.key, term="sampled", unit=unit, reason=reason))
    return tuple(same.get(id(s), s) for s in series)


def _beside(one: Series, other: Series) -> bool:
    return list(one.orders) == list(other.orders)


def _bare(one: Series, taken: Series) -> bool:
    return one.key.term == "counted" and not one.falls and _beside(one, taken)


def _rest(parts: Sequence[Series]) -> array[float]:
    return array("d", (sum(row) for row in zip(*(s.values for s in parts), strict=True)))


def _made_up(one: Series, parts: Sequence[Series]) -> list[bool]:
    """Line by line, whether the parts make it up."""
    return [abs(a - b) < 1e-6 * max(a, 1.0) for a, b in zip(one.values, _rest(parts), strict=True)]


def _closes(one: Series, parts: Sequence[Series]) -> bool:
    close = _made_up(one, parts)
    return sum(close) >= 3 and (all(close[:3]) or 2 * sum(close) >= len(close))


def _is_whole_of(one: Series, parts: Sequence[Series]) -> bool:
    """Whether `sessions_total` has `sessions_failed_total` beside it, and what is taken, left and dropped is nearly all of it on every line."""
    stem = _words(one)
    named = any(stem < _words(s) for s in parts[2:])
    if not named or one.key.cumulative != "yes" or one.rises < one.count - 1:
        return False
    return all(0 <= a - b <= NEARLY * a for a, b in zip(one.values, _rest(parts), strict=True))


def _words(one: Series) -> frozenset[str]:
    return frozenset(one.name.lower().replace("/", "_").replace("-", "_").replace(".", "_").split("_"))
