"""Where two runs lie apart without a threshold of alarm: levels of a quantity, and the shares of what was sampled.

Two curves lie apart when their mean difference over the shared axis, or over its last third, is more than `compare_level` of the larger
level (`compare_share` for shares) and larger than the difference's own spread, so that noise around one level is no difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from gyrecheck.model.snapshot import Series
from gyrecheck.rulebook.thresholds import Thresholds
from gyrecheck.verdict.flows import Flow
from gyrecheck.verdict.view import View

SHARES = ("taken_share", "dropped_share", "left_share")

Points = list[tuple[float, float]]


def shares(run: View, at: Callable[[int], float]) -> dict[str, tuple[Series, Points]]:
    """Of what was sampled so far, the part taken, dropped and left at each reading; empty where sampling is not counted."""
    account = run.main
    if account is None or account.sampled is None or account.mode == "replay":
        return {}
    sampled = account.sampled
    parts: dict[str, tuple[Flow, ...]] = {
        "taken_share": (account.taken,) if account.taken is not None else (),
        "dropped_share": account.drops,
        "left_share": (account.left,) if account.left is not None else (),
    }
    found: dict[str, tuple[Series, Points]] = {}
    for term, flows in parts.items():
        points: dict[float, float] = {}
        for order, whole in zip(sampled.orders, sampled.values, strict=True):
            part = sum(flow.at(order) or 0.0 for flow in flows)
            if whole > 0 and math.isfinite(part / whole):
                points[at(order)] = part / whole
        if flows and points:
            found[term] = flows[0].series[0], sorted(points.items())
    return found


def apart(name: str, axis: Sequence[float], a: Sequence[float], b: Sequence[float], *, share: bool, limits: Thresholds) -> str:
    """How far two curves lie apart, in words: `name` 1 against 9; empty where they do not."""
    third = max(3, len(axis) // 3)
    for start, where in ((0, ""), (len(axis) - third, f" from {axis[-third]:,g} on")):
        one, other = a[start:], b[start:]
        gaps = [y - x for x, y in zip(one, other, strict=True)]
        if not all(map(math.isfinite, gaps)):
            continue
        low, high, gap = _mean(one), _mean(other), _mean(gaps)
        spread = math.sqrt(_mean([min(abs(g - gap), 1e150) ** 2 for g in gaps]))
        least = limits.compare_share if share else limits.compare_level * max(abs(low), abs(high))
        if abs(gap) > max(least, spread):
            shown = f"{100 * low:.3g}% against {100 * high:.3g}%" if share else f"{low:.4g} against {high:.4g}"
            return f"`{name}` {shown}{where}"
    return ""


def _mean(values: Sequence[float]) -> float:
    return sum(value / len(values) for value in values)
