"""Two runs on one axis: where the second diverges, loses entropy, clips more, or trains without the reward following.

Every sentence is about these two runs over the range that both cover; nothing is said about others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Place, Series
from gyrecheck.verdict.compare_levels import SHARES, apart, shares
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.view import View

CURVES = ("loss", "entropy", "kl", "mismatch_kl", "clip_fraction", "ratio", "logp_gap", "reward", "age", "age_max", "reuse", "left")


@dataclass(frozen=True, slots=True)
class Curve:
    """One quantity of both runs over the shared axis."""

    term: str
    name: str
    axis: tuple[float, ...]
    a: tuple[float, ...]
    b: tuple[float, ...]
    series_a: Series
    series_b: Series


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs, ready to compare: what the axis counts, its shared range, and the curves that both log."""

    axis: str
    low: float
    high: float
    curves: tuple[Curve, ...]
    names: tuple[str, str]


def axis_of(run: View) -> tuple[str, Callable[[int], float]] | None:
    """What counts progress in a run, as a function of a reading's order: updates, the log's own step, else time."""
    updates = run.updates
    if updates is not None and len(updates.orders) >= 3 and updates.last > updates.values[0]:
        return updates.name, lambda order: updates.at(order) or 0.0
    step = next((s for s in run.series("step", least=3) if s.rises >= 2 and s.falls == 0), None)
    if step is not None:
        return step.name, lambda order: step.values[max(step.index(order), 0)]
    flow = run.taken or run.sampled
    if flow is not None and len(flow.orders) >= 3:
        return flow.name, lambda order: flow.at(order) or 0.0
    told = max(run.series(*CURVES, least=3), key=lambda s: s.count, default=None)
    if told is not None and told.thinned == 1:  # no position is understood: the n-th reading of the one beside the n-th of the other
        return "reading", lambda order: float(told.index(order) + 1)
    return None


def pair(a: View, b: View, names: tuple[str, str]) -> Pair | None:
    """The shared curves; None when the runs share no axis."""
    axes = axis_of(a), axis_of(b)
    if axes[0] is None or axes[1] is None:
        return None
    at_a, at_b = axes[0][1], axes[1][1]
    found: list[tuple[Series, Series, list[tuple[float, float]], list[tuple[float, float]]]] = []
    for term in CURVES:
        for one in a.series(term, least=3):
            other = next((s for s in b.series(term, least=3) if s.name == one.name), None) or next(iter(b.series(term, least=3)), None)
            if other is None:
                continue
            found.append((one, other, _on(one, at_a), _on(other, at_b)))
            break
    shares_a, shares_b = shares(a, at_a), shares(b, at_b)
    parts = [(term, *shares_a[term], *shares_b[term]) for term in SHARES if term in shares_a and term in shares_b]
    if not found and not parts:
        return None
    told = [(one.key.term, one.name, one, other, pa, pb) for one, other, pa, pb in found]
    told += [(term, term.replace("_share", " of sampled"), one, other, pa, pb) for term, one, pa, other, pb in parts]
    low = max(max(pa[0][0], pb[0][0]) for *_, pa, pb in told)
    high = min(min(pa[-1][0], pb[-1][0]) for *_, pa, pb in told)
    if high <= low:
        return None
    curves = []
    for term, name, one, other, pa, pb in told:
        axis = sorted({x for x, _ in (*pa, *pb) if low <= x <= high})
        if len(axis) >= 3:
            curves.append(Curve(term, name, tuple(axis), tuple(_at(pa, x) for x in axis), tuple(_at(pb, x) for x in axis), one, other))
    return Pair(axes[0][0], low, high, tuple(curves), names) if curves else None


def _on(series: Series, axis: Callable[[int], float]) -> list[tuple[float, float]]:
    points: dict[float, float] = {}
    for order, value in zip(series.orders, series.values, strict=True):
        points[axis(order)] = value
    return sorted(points.items())


def _at(points: list[tuple[float, float]], x: float) -> float:
    index = bisect_right(points, x, key=lambda p: p[0]) - 1
    return points[max(index, 0)][1]


def _ends(values: tuple[float, ...]) -> tuple[float, float]:
    """Mean of the first and of the last tenth, three readings at least."""
    size = max(3, len(values) // 10) if len(values) >= 6 else 1
    return sum(values[:size]) / size, sum(values[-size:]) / size


def judge_pair(found: Pair, docket: Docket) -> None:
    """Enter what sets the two runs apart; the run with more lag or reuse is the suspect."""
    t = docket.rules.thresholds
    flip, difference = _suspect(found)
    suspect, control = (found.names[0], found.names[1]) if flip else (found.names[1], found.names[0])
    sides = {c.term: ((c.b, c.a, c.series_a) if flip else (c.a, c.b, c.series_b)) for c in found.curves}
    names = {c.term: c.name for c in found.curves}
    axes = {c.term: c.axis for c in found.curves}
    scope = f"between {found.axis} {count(found.low)} and {count(found.high)}, for these two runs only"
    due = f"; the runs differ in lag or reuse ({difference})" if difference else "; no lag or reuse is logged that sets the runs apart"
    entered = 0
    for term in ("mismatch_kl", "kl", "logp_gap"):
        if term not in sides:
            continue
        calm, wild, series = sides[term]
        (_, calm_end), (wild_start, wild_end) = _ends(calm), _ends(wild)
        if calm_end > 0 and wild_end >= t.compare_kl * calm_end and wild_end >= t.compare_kl * max(wild_start, 1e-12):
            x, at = _departs(axes[term], calm, wild, 2.0)
            low_entropy = _entropy(sides, t.compare_entropy)
            more = f", and entropy falls to {low_entropy[0]:.3g} ({low_entropy[1]:.3g} in {control})" if low_entropy else ""
            docket.add(
                "GYR418",
                State.BROKEN,
                (
                    f"`{names[term]}` grows {wild[-1] / max(min(wild[: max(len(wild) // 3, 1)]), 1e-12):.3g} times in "
                    f"{suspect} (to {wild[-1]:.3g}) and stays at {calm[-1]:.3g} in {control}, from {found.axis} "
                    f"{count(x)} on{more}{due}; {scope}"
                ),
                quantity=names[term],
                value=wild[-1],
                first=_place(series, wild, at),
                because=[Because(series.last_place, "last")],
                hint="bound the lag apart from the queue's depth, clip the importance weight, or lower the reuse",
            )
            entered += 1
            break
    low = _entropy(sides, t.compare_entropy)
    if low and not entered:
        calm, wild, series = sides["entropy"]
        x, at = _departs(axes["entropy"], calm, wild, 1.25, below=True)
        docket.add(
            "GYR418",
            State.BROKEN,
            (
                f"`{names['entropy']}` falls faster in {suspect}: {low[0]:.3g} at the end against {low[1]:.3g} in "
                f"{control}, from {found.axis} {count(x)} on{due}; {scope}"
            ),
            quantity=names["entropy"],
            value=wild[-1],
            first=_place(series, wild, at),
            because=[series.last_place],
            hint="lower the lag or the reuse, or raise the entropy bonus",
        )
        entered += 1
    if "clip_fraction" in sides:
        calm, wild, series = sides["clip_fraction"]
        mean_calm, mean_wild = sum(calm) / len(calm), sum(wild) / len(wild)
        if mean_wild >= t.compare_clip * mean_calm and mean_wild - mean_calm >= 0.05:
            docket.add(
                "GYR418",
                State.BROKEN,
                (
                    f"`{names['clip_fraction']}` stays high in {suspect}: {mean_wild:.3g} on average against "
                    f"{mean_calm:.3g} in {control}{due}; {scope}"
                ),
                quantity=names["clip_fraction"],
                value=round(mean_wild, 4),
                first=series.first_place,
                because=[series.last_place],
                hint="the data has left the policy: fewer uses per trajectory",
                at_most=Severity.WARNING,
            )
            entered += 1
    if "loss" in sides and "reward" in sides:
        _loss_without_reward(sides, names, suspect, control, scope, docket)
    broken = {v.quantity for v in docket.verdicts}
    limits = docket.rules.thresholds
    told = (apart(c.name, c.axis, c.a, c.b, share=c.term in SHARES, limits=limits) for c in found.curves if c.name not in broken)
    levels = [text for text in told if text]
    if levels:
        said = f"the two runs differ in level, {found.names[0]} against {found.names[1]}: {', '.join(levels)}; that alone is no fault"
    else:
        said = f"the two runs do not part in what both log ({', '.join(sorted(set(names.values())))})"
    if levels or not broken:
        docket.add("GYR418", State.HOLDS, f"{said}; {scope}", quantity="difference", value=len(levels))


def _suspect(found: Pair) -> tuple[bool, str]:
    """Whether the first run is the one with more lag or reuse, and by how much they differ."""
    for term in ("age", "age_max", "reuse"):
        curve = next((c for c in found.curves if c.term == term), None)
        if curve is None:
            continue
        a, b = sum(curve.a) / len(curve.a), sum(curve.b) / len(curve.b)
        if abs(a - b) > 0.1 * max(abs(a), abs(b), 0.1):
            return a > b, f"`{curve.name}` {a:.2f} and {b:.2f}"
    kl = next((c for c in found.curves if c.term in {"kl", "mismatch_kl", "logp_gap"}), None)
    return (kl is not None and _ends(kl.a)[1] > _ends(kl.b)[1]), ""


Sides = dict[str, tuple[tuple[float, ...], tuple[float, ...], Series]]


def _entropy(sides: Sides, part: float) -> tuple[float, float] | None:
    if "entropy" not in sides:
        return None
    calm, wild, _ = sides["entropy"]
    (calm_start, calm_end), (wild_start, wild_end) = _ends(calm), _ends(wild)
    fell = wild_end <= part * calm_end and calm_end > 0 and wild_end < wild_start and wild_start > 0.5 * calm_start
    return (wild_end, calm_end) if fell else None


def _loss_without_reward(sides: Sides, names: dict[str, str], suspect: str, control: str, scope: str, docket: Docket) -> None:
    calm_loss, wild_loss, series = sides["loss"]
    calm_reward, wild_reward, _ = sides["reward"]
    (loss_start, loss_end), (reward_start, reward_end) = _ends(wild_loss), _ends(wild_reward)
    span = max(max(calm_reward) - min(calm_reward), 1e-12)
    gain, control_gain = reward_end - reward_start, _ends(calm_reward)[1] - _ends(calm_reward)[0]
    falls = loss_end < loss_start - 0.2 * max(abs(loss_start), 1e-9) and loss_end < _ends(calm_loss)[1]
    if falls and gain <= docket.rules.thresholds.compare_reward * span and control_gain > 0.2 * span:
        docket.add(
            "GYR418",
            State.BROKEN,
            (
                f"`{names['loss']}` falls in {suspect} ({loss_start:.3g} to {loss_end:.3g}) and `{names['reward']}` does "
                f"not follow ({reward_start:.3g} to {reward_end:.3g}; {control} gains {control_gain:.3g}); {scope}"
            ),
            quantity=names["reward"],
            value=round(reward_end, 4),
            first=series.first_place,
            because=[series.last_place],
            hint="go back to one use per trajectory, and compare again",
            at_most=Severity.WARNING,
        )


def _departs(
    axis: tuple[float, ...], calm: tuple[float, ...], wild: tuple[float, ...], factor: float, *, below: bool = False
) -> tuple[float, int]:
    """The axis value from which the second run stays a factor apart."""
    apart = [(c > factor * w if below else w > factor * c) for c, w in zip(calm, wild, strict=True)]
    at = len(apart)
    while at and apart[at - 1]:
        at -= 1
    at = min(at, len(axis) - 1)
    return axis[at], at


def _place(series: Series, values: tuple[float, ...], at: int) -> Place:
    index = next((i for i, v in enumerate(series.values) if v == values[at]), len(series) - 1)
    return series.place(index)
