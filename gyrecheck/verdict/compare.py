"""Two runs on one axis: where the second diverges, loses entropy, clips more, or trains without the reward following.

Every sentence is about these two runs over the range that both cover; nothing is said about others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Place, Series
from gyrecheck.rulebook.thresholds import Thresholds, load_thresholds
from gyrecheck.verdict.compare_cadence import Cadence, cadence, sampled_in
from gyrecheck.verdict.compare_levels import SHARES, apart, shares
from gyrecheck.verdict.flows import Flow
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
    cadence: Cadence


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


def _axis(flow: Flow | None) -> tuple[str, Callable[[int], float]] | None:
    return None if flow is None else (flow.name, lambda order: flow.at(order) or 0.0)


def pair(a: View, b: View, names: tuple[str, str]) -> Pair | None:
    """The shared curves; None when the runs share no axis."""
    pace = cadence(a, b)
    axes = axis_of(a), axis_of(b)
    if pace.apart(load_thresholds()):  # updates are what differs
        axes = _axis(sampled_in(a)) or axes[0], _axis(sampled_in(b)) or axes[1]
    if axes[0] is None or axes[1] is None:
        return None
    at_a, at_b = axes[0][1], axes[1][1]
    found: list[tuple[Series, Series, list[tuple[float, float]], list[tuple[float, float]]]] = []
    for term in CURVES:
        for one in a.series(term, least=3):
            same = next((s for s in b.series(term, least=3) if s.name == one.name), None)
            other = same or next(iter(b.series(term, least=3)), None)
            if other is None or (same is None and found and found[-1][0].key.term == term):
                continue
            found.append((one, other, _on(one, at_a), _on(other, at_b)))
            if term != "loss":
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
    return Pair(axes[0][0], low, high, tuple(curves), names, pace) if curves else None


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
    flip, difference = _suspect(found, t)
    suspect, control = (found.names[0], found.names[1]) if flip else (found.names[1], found.names[0])
    curves = {c.term: c for c in reversed(found.curves)}  # the first of several losses
    sides = {c.term: _sided(c, flip) for c in curves.values()}
    names = {c.term: c.name for c in curves.values()}
    axes = {c.term: c.axis for c in curves.values()}
    scope = f"between {found.axis} {count(found.low)} and {count(found.high)}, for these two runs only"
    due = f"; the runs differ in lag or reuse ({difference})" if difference else "; no lag or reuse is logged that sets the runs apart"
    mild = Severity.NOTE if _learns_as_well(sides) else Severity.WARNING  # lower entropy and more clipping may come of learning faster
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
            at_most=mild,
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
                at_most=mild,
            )
            entered += 1
    losses = [(c.name, *_sided(c, flip)) for c in found.curves if c.term == "loss"]
    if losses and "reward" in sides:
        _loss_without_reward(losses, sides["reward"], names["reward"], (suspect, control), scope, docket)
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


def _sided(curve: Curve, flip: bool) -> tuple[tuple[float, ...], tuple[float, ...], Series]:
    """The control's values, the suspect's, and the suspect's series."""
    return (curve.b, curve.a, curve.series_a) if flip else (curve.a, curve.b, curve.series_b)


def _suspect(found: Pair, t: Thresholds) -> tuple[bool, str]:
    """Whether the first run is the one with more lag or reuse, and by how much they differ."""
    for term in ("age", "age_max", "reuse"):
        curve = next((c for c in found.curves if c.term == term), None)
        if curve is None:
            continue
        a, b = sum(curve.a) / len(curve.a), sum(curve.b) / len(curve.b)
        if abs(a - b) > 0.1 * max(abs(a), abs(b), 0.1):
            return a > b, f"`{curve.name}` {a:.2f} and {b:.2f}"
    if (declared := found.cadence.suspect(t)) is not None:
        return declared
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


def _learns_as_well(sides: Sides) -> bool:
    """Whether the suspect's reward rises and ends no lower than the control's."""
    if "reward" not in sides:
        return False
    calm, wild, _ = sides["reward"]
    start, end = _ends(wild)
    return end > start and end >= _ends(calm)[1]


def _loss_without_reward(
    losses: list[tuple[str, tuple[float, ...], tuple[float, ...], Series]],
    reward: tuple[tuple[float, ...], tuple[float, ...], Series],
    name: str,
    who: tuple[str, str],
    scope: str,
    docket: Docket,
) -> None:
    """One of the losses is the better one in the suspect, and its reward stays, or turns and goes back, while the control's rises."""
    calm, wild, _ = reward
    start, end = _ends(wild)
    span, top = max(max(calm) - min(calm), 1e-12), max(wild)
    gain, control_gain = end - start, _ends(calm)[1] - _ends(calm)[0]
    stays = gain <= docket.rules.thresholds.compare_reward * span
    turns = top - end >= 0.5 * (top - start) > 0.1 * span and gain <= 0.5 * control_gain
    if not (stays or turns) or control_gain <= 0.2 * span:
        return
    for loss, calm_loss, wild_loss, series in losses:
        before, after = _ends(wild_loss)
        if after >= before - 0.2 * max(abs(before), 1e-9) or after >= _ends(calm_loss)[1]:
            continue
        how = f"turns at {top:.3g} and goes back" if turns else "does not follow"
        docket.add(
            "GYR418",
            State.BROKEN,
            f"`{loss}` falls in {who[0]} ({before:.3g} to {after:.3g}) and `{name}` {how} ({start:.3g} to {end:.3g}; {who[1]} gains "
            f"{control_gain:.3g}); {scope}",
            quantity=name,
            value=round(end, 4),
            first=series.first_place,
            because=[series.last_place],
            hint="go back to one use per trajectory, and compare again",
            at_most=Severity.WARNING,
        )
        return


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
