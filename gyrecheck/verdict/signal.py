"""Does an update change anything: groups without spread, gradients of exactly 0, a learning rate that reached 0 before the end."""

from __future__ import annotations

from itertools import pairwise

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Series
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.view import View


def judge_signal(run: View, docket: Docket) -> None:
    """Enter the verdicts on learning signal and learning rate."""
    before = len(docket.verdicts)
    _no_signal(run, docket)
    moving = [s for s in run.series("grad_norm", least=docket.rules.thresholds.inert_readings) if s.high > 0]
    if moving and len(docket.verdicts) == before:
        text = f"updates carry a signal: `{moving[0].name}` {count(moving[0].low)} to {count(moving[0].high)}"
        docket.add("GYR516", State.HOLDS, text, quantity=moving[0].name, value=moving[0].last)
    _rate_zero(run, docket)
    _zero_grad(run, docket)


def _trailing(series: Series, low: float, high: float) -> int:
    """How many readings at the end lie within the bounds."""
    kept = 0
    for value in reversed(series.values):
        if not low <= value <= high:
            break
        kept += 1
    return kept


def _no_signal(run: View, docket: Docket) -> None:
    t = docket.rules.thresholds
    inert = [
        (s, k)
        for s in run.series("grad_norm", least=t.inert_readings)
        if (k := _trailing(s, 0.0, 0.0)) >= t.inert_readings and k * 3 >= s.count
    ]
    flat = [
        (s, k)
        for s in run.series("flat_groups", least=t.flat_readings)
        if s.high <= 1.0 and (k := _trailing(s, t.flat_share, 1.0)) >= t.flat_readings and k * 3 >= s.count
    ]
    spread = [
        (s, k)
        for s in run.series("reward_spread", least=t.flat_readings)
        if (k := _trailing(s, 0.0, 0.0)) >= t.flat_readings and k * 3 >= s.count
    ]
    found = flat or spread or inert
    if not found or (inert and not (flat or spread) and _rate_was_zero(run)):
        return
    series, last = found[0]
    start = len(series) - last
    others = [f"{s.name} is 0" for s, _ in inert if s is not series] + [f"{s.name} is 0" for s, _ in spread if s is not series]
    moving = [s for s in run.series("grad_norm", least=3) if s.high > 0]
    where = "in all" if last == series.count else "in the last"
    worth = f"{count(series.last)}" if series.low == series.high else f"{series.values[start]:.3g} or more"
    what = f"`{series.name}` is {worth} {where} {last} readings" + (", " + ", ".join(others) if others else "")
    what += ": no group has spread, so every advantage is 0 and updates are no-ops" if flat or spread else ": updates are no-ops"
    parts = [s for s in run.series("reward", least=2) if s.low != s.high]
    if parts and (flat or spread):
        what += "; spread between prompts is no signal"
    cap = Severity.WARNING if moving and not inert else None
    docket.add(
        "GYR516",
        State.BROKEN,
        what,
        quantity=series.name,
        value=series.last,
        first=series.place(start),
        because=[Because(series.place(start), "from here on")],
        hint="harder or easier tasks, a finer reward, or more samples per group",
        at_most=cap,
    )


def _rate_was_zero(run: View) -> bool:
    return any(s.last == 0 for s in run.series("lr"))


def _rate_zero(run: View, docket: Docket) -> None:
    t = docket.rules.thresholds
    for series in run.series("lr", least=4):
        zeros = _trailing(series, 0.0, max(series.high * 1e-6, 0.0))
        if zeros < max(2, t.lr_tail * len(series)) or (zeros == len(series) and series.high > 0):
            continue
        start = len(series) - zeros
        because = [Because(series.place(start), "first 0")]
        if start:
            because.insert(0, Because(series.place(start - 1), "last above 0"))
        plan = next((s for s in (run.setting("total_steps"), run.setting("warmup_steps")) if s is not None), None)
        because += [Because(plan.first_place, plan.name)] if plan else []
        what = (
            (f"`{series.name}` is 0 from line {series.lines[start]} on: the last {zeros} of {len(series)} readings change no weight")
            if start
            else f"`{series.name}` is 0 in all {len(series)} readings: no weight changes"
        )
        docket.add(
            "GYR517",
            State.BROKEN,
            what,
            quantity=series.name,
            value=0,
            first=series.place(start),
            because=because,
            hint=(
                "the schedule's length is counted in another unit than its steps (samples, minibatches, ranks): set it "
                "to the number of optimizer steps of the whole run"
            ),
        )
        return


def _zero_grad(run: View, docket: Docket) -> None:
    """Two optimizer steps with no zero_grad between, where both are logged line by line."""
    steps, zeros = run.flow("update"), run.flow("zero_grad")
    if steps is None or zeros is None or steps.last <= 0:
        return
    orders = sorted([(o, "step") for o in steps.orders] + [(o, "zero") for o in zeros.orders])
    if len(steps.orders) < 2 or steps.last > 1.5 * len(steps.orders):
        if steps.last > zeros.last * 1.02 + 1:
            docket.add(
                "GYR206",
                State.BROKEN,
                f"{count(steps.last)} optimizer steps and {count(zeros.last)} zero_grad calls: gradients add up over steps",
                quantity=zeros.name,
                value=zeros.last,
                first=zeros.last_place,
                because=[steps.last_place, zeros.last_place],
                hint="clear gradients once a step",
            )
        return
    for (_, a), (order, b) in pairwise(orders):
        if a == b == "step":
            docket.add(
                "GYR206",
                State.BROKEN,
                f"second optimizer step with no zero_grad between, at line {steps.place_at(order).line}",
                quantity=steps.name,
                value=steps.last,
                first=steps.place_at(order),
                because=[steps.place_at(order)],
                hint="clear gradients once a step",
            )
            return
