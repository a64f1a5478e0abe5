"""What there is to draw of a run: the balance, staleness, rates, ratio and metrics, over one axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gyrecheck.model.snapshot import Series
from gyrecheck.report.figure import Line, Plot
from gyrecheck.verdict.balance import Balance
from gyrecheck.verdict.compare import Pair
from gyrecheck.verdict.flows import Flow
from gyrecheck.verdict.judge import Judgement

POINTS = 600
_PANELS = (
    ("staleness", "age", ("age", "age_max")),
    ("ratio and gap", "ratio, gap", ("ratio", "logp_gap", "mismatch_kl", "kl")),
    ("loss", "loss", ("loss",)),
    ("entropy and clipping", "entropy, share", ("entropy", "clip_fraction")),
    ("reward", "reward", ("reward",)),
)


def plots(judged: Judgement) -> tuple[Plot, ...]:
    """The panels of one run; the axis is time where all readings have one, else the line number."""
    snapshot = judged.run.snapshot
    timed = snapshot.seconds is not None and snapshot.seconds > 0 and all(not math.isnan(s.times[0]) for s in snapshot.series)
    label = "seconds since the log's start" if timed else "line"
    start = snapshot.first_time or 0.0

    def x_of(line: int, time: float) -> float:
        return time - start if timed and not math.isnan(time) else float(line)

    out = [p for p in (_balance(judged, label, timed=timed, start=start), _rates(judged, label, timed=timed, start=start)) if p is not None]
    marks = _marks(judged, timed=timed, start=start)
    for title, y_label, terms in _PANELS:
        lines = tuple(_metric(s, x_of) for s in judged.run.series(*terms, least=3)[:4])
        if lines:
            out.append(
                Plot(
                    title,
                    y_label,
                    label,
                    lines,
                    tuple((x, t) for x, t, k in marks if k in terms),
                )
            )
    return tuple(out)


def pair_plots(found: Pair) -> tuple[Plot, ...]:
    """One panel a quantity, both runs in it."""
    return tuple(
        Plot(c.name, c.name, found.axis, (Line(f"A {found.names[0]}", c.axis, c.a), Line(f"B {found.names[1]}", c.axis, c.b)))
        for c in found.curves
    )


def _balance(judged: Judgement, label: str, *, timed: bool, start: float) -> Plot | None:
    if not judged.balances or len(judged.balances[0].rows) < 3 or judged.balances[0].account.sampled is None:
        return None
    found: Balance = judged.balances[0]
    account = found.account
    orders = [order for order, _ in found.rows]
    every = max(1, len(orders) // POINTS)
    orders = [*orders[::every], *([orders[-1]] if (len(orders) - 1) % every else [])]
    sampled = account.sampled
    assert sampled is not None  # noqa: S101 - checked above
    x = tuple(_x(sampled, order, timed=timed, start=start) for order in orders)
    parts: list[tuple[str, Flow]] = [("taken", account.taken)] if account.taken is not None and account.mode != "replay" else []
    parts += [(f.reason or "dropped", f) for f in account.drops]
    parts += [("left", account.left)] if account.left is not None else []
    lines = [Line(name, x, tuple(flow.at(o) or 0.0 for o in orders), stacked=True) for name, flow in parts]
    lines.append(Line("sampled", x, tuple(sampled.at(o) or 0.0 for o in orders)))
    first = next((v.first for v in judged.verdicts if v.code in {"GYR507", "GYR510"} and v.first is not None), None)
    marks: tuple[tuple[float, str], ...] = ()
    if first is not None:
        order = next((o for o, _ in found.rows if sampled.place_at(o).line >= first.line), None)
        marks = ((_x(sampled, order, timed=timed, start=start), f"line {first.line}"),) if order is not None else ()
    return Plot("balance: sampled against what became of it", "count", label, tuple(lines), marks)


def _rates(judged: Judgement, label: str, *, timed: bool, start: float) -> Plot | None:
    if not timed:
        return None
    lines = []
    for name, flow in (("sampled", judged.run.sampled), ("consumed", judged.run.taken), ("train steps", judged.run.updates)):
        if flow is None or len(flow.orders) < 6:
            continue
        every = max(1, len(flow.orders) // 60)
        times = [_x(flow, o, timed=timed, start=start) for o in flow.orders[::every]]
        values = list(flow.values[::every])
        rates = [(t1, (b - a) / (t1 - t0)) for t0, t1, a, b in zip(times, times[1:], values, values[1:], strict=False) if t1 > t0]
        if rates:
            lines.append(Line(name, tuple(t for t, _ in rates), tuple(max(r, 0.0) for _, r in rates)))
    return Plot("rates", "per second", label, tuple(lines)) if lines else None


def _x(flow: Flow, order: int, *, timed: bool, start: float) -> float:
    place = flow.place_at(order)
    return place.time - start if timed and place.time is not None else float(place.line)


def _metric(series: Series, x_of: object) -> Line:
    assert callable(x_of)  # noqa: S101 - a closure of this module
    every = max(1, len(series) // POINTS)
    picked: Sequence[int] = range(0, len(series), every)
    return Line(series.name, tuple(x_of(series.lines[i], series.times[i]) for i in picked), tuple(series.values[i] for i in picked))


def _marks(judged: Judgement, *, timed: bool, start: float) -> list[tuple[float, str, str]]:
    """Where a metric's verdict first saw it, by term."""
    by_name = {s.name: s for s in judged.run.snapshot.series}
    out = []
    for verdict in judged.verdicts:
        series = by_name.get(verdict.quantity)
        if series is None or verdict.first is None:
            continue
        at = next((i for i, line in enumerate(series.lines) if line >= verdict.first.line), None)
        if at is not None:
            x = series.times[at] - start if timed and not math.isnan(series.times[at]) else float(series.lines[at])
            out.append((x, f"{verdict.code} line {verdict.first.line}", series.key.term))
    return out
