"""The learning rate of a hooked run: at 0 while rounds are sampled, at 0 in the end, and thrown back after it was restored."""

from __future__ import annotations

from math import exp, log

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.live import HookedRun, HookEvent
from gyrecheck.rulebook.hook_table import HookLimits
from gyrecheck.verdict.live_places import place_at
from gyrecheck.verdict.ruling import Docket, count

Totals = dict[tuple[int, float], HookEvent]
"""The last event of each optimizer, by process and number."""


def judge_rates(run: HookedRun, totals: Totals, limits: HookLimits, docket: Docket) -> None:
    """Enter what the rates at the optimizers' steps show."""
    _at_the_end(run, totals, limits, docket)
    _at_the_start(run, limits, docket)
    _after_a_load(run, totals, limits, docket)


def _at_the_end(run: HookedRun, totals: Totals, limits: HookLimits, docket: Docket) -> None:
    for (pid, _), final in totals.items():
        tail, steps = final.number("zero_rate"), final.number("steps")
        if tail < 2 or tail < limits.rate_share * steps:
            continue
        scheduled = any(e.pid == pid for e in run.of("schedule"))
        docket.add(
            "GYR209" if scheduled else "GYR222",
            State.BROKEN,
            f"the learning rate was 0 in the last {count(tail)} of {count(steps)} optimizer steps: "
            + (f"the schedule ended after {count(steps - tail)}" if scheduled and tail < steps else "they changed nothing"),
            quantity="optimizer_steps_at_learning_rate_0",
            value=tail,
            unit="step",
            hint="count the schedule's length in optimizer steps: rounds x epochs x minibatches",
        )


def _at_the_start(run: HookedRun, limits: HookLimits, docket: Docket) -> None:
    """Whole rounds of sampling whose every optimizer step had the rate 0."""
    for event in run.of("late_start"):
        idle, rounds = int(event.number("n")), int(event.number("rounds"))
        steps = sum(p.cells.get("optimizer_steps", 0) for p in run.processes if p.pid == event.pid)
        if idle < limits.rate_idle * steps:
            continue
        which = "first round" if rounds == 1 else f"first {rounds} rounds"
        docket.add(
            "GYR222",
            State.BROKEN,
            f"the first {count(idle)} of {count(steps)} optimizer steps were made with learning rate 0, and sampling went on before any other: "
            f"{count(event.number('samples'))} sample calls of the {which} changed no weight",
            quantity="optimizer_steps_at_zero_rate",
            value=idle,
            unit="step",
            first=place_at(event.text("site")),
            hint="begin the warm-up above 0: (n + 1) / warm, or advance the schedule before the first step",
            at_most=None if idle > 1 else Severity.NOTE,  # one step at 0 is how common warm-ups begin
        )


def _after_a_load(run: HookedRun, totals: Totals, limits: HookLimits, docket: Docket) -> None:
    """A rate that moves by small steps everywhere, and leaves what was restored for where it stood before."""
    for event in run.of("rate_after_load"):
        restored, rate, before = (event.number(name) for name in ("restored", "rate", "before"))
        seen = [e for (pid, _), e in totals.items() if pid == event.pid]
        usual = max([event.number("most"), *(e.number("rate_most") for e in seen)])
        changes = max([event.number("changes"), sum(e.number("rate_changes") for e in seen)])
        own = totals.get((event.pid, event.number("i")))
        if own is None or not own.number("rate_changes") or event.number("loads") > 1:
            continue  # a rate that is set anew and stays is somebody's choice
        if changes < limits.rate_changes or not restored or not rate or not before:
            continue
        jump, from_before = abs(log(rate / restored)), abs(log(rate / before))
        if jump < max(log(limits.rate_jump), 2 * usual) or from_before > usual * 1.001:
            continue
        same = from_before < 1e-6
        place = place_at(event.text("site"))
        docket.add(
            "GYR521",
            State.BROKEN,
            f"the learning rate was restored to {restored:.3g}, and step {int(event.number('step'))} after that is made with {rate:.3g}, "
            + ("the value it was made with" if same else f"near the {before:.3g} it was made with")
            + f": {exp(jump):.1f} times off, where no other step changes it by more than {exp(usual):.2f}",
            quantity="lr",
            value=float(f"{rate:.6g}"),
            first=place,
            hint="restore what sets the rate too: the schedule's state, or the copy of the rate that is written over the optimizer's",
        )
