"""The training side of a hooked run: steps that no sample reached, gradients lost or used twice, schedules in the wrong unit."""

from __future__ import annotations

from collections import defaultdict

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.live import HookedRun, HookEvent
from gyrecheck.rulebook.hook_table import HookLimits
from gyrecheck.verdict.live_places import numbers, place_at
from gyrecheck.verdict.live_rates import Totals, judge_rates
from gyrecheck.verdict.ruling import Docket, count


def judge_updates(run: HookedRun, limits: HookLimits, docket: Docket) -> None:
    """Enter what the optimizers' own calls show."""
    totals = {(e.pid, e.number("i")): e for e in run.of("totals")}
    for judge in (_empty_steps, _lost_numbers, _reused, _shared, _cleared, _late_clips):
        judge(run, totals, limits, docket)
    judge_rates(run, totals, limits, docket)
    _schedules(run, limits, docket)
    _left_out(run, limits, docket)
    _nothing_trained(run, limits, docket)


STOPPED = 100
"""Times the least amount of sample calls that a program which did not end by itself needs before it is said to train nothing."""


def _by_optimizer(run: HookedRun, kind: str) -> dict[tuple[int, float], list[HookEvent]]:
    found: dict[tuple[int, float], list[HookEvent]] = defaultdict(list)
    for event in run.of(kind):
        found[event.pid, event.number("i")].append(event)
    return found


def _steps(run: HookedRun, totals: Totals, key: tuple[int, float], events: list[HookEvent]) -> int:
    """Steps of one optimizer: its total where the process ended by itself, else all steps of the process when it had but one."""
    if key in totals:
        return int(totals[key].number("steps"))
    whole = sum(p.cells.get("optimizer_steps", 0) for p in run.processes if p.pid == key[0])
    alone = len({e.number("i") for e in run.of("optimizer") if e.pid == key[0]}) <= 1
    return whole if alone else int(max(e.number("step") for e in events))


def _named(run: HookedRun, totals: Totals, key: tuple[int, float], events: list[HookEvent]) -> str:
    """How many steps there were, and how many of them were looked at where that is fewer."""
    steps = _steps(run, totals, key, events)
    looked = int(totals[key].number("looked")) if key in totals else steps
    return f"{count(steps)} optimizer steps" if not 0 < looked < steps else f"{count(steps)} optimizer steps ({count(looked)} looked at)"


def _empty_steps(run: HookedRun, totals: Totals, limits: HookLimits, docket: Docket) -> None:
    del limits
    for key, events in _by_optimizer(run, "empty_step").items():
        told = [e for e in events if e.number("seen") > 0]  # a step before any backward pass readies the optimizer's state
        if not told:
            continue
        steps = _steps(run, totals, key, told)
        counted = totals[key].number("n_empty_step") if key in totals else 0
        amount = int(max(counted, *(e.number("n") for e in told))) - (len(events) - len(told))
        which = numbers([int(e.number("step")) for e in told])
        absent = all(e.text("why") == "none" for e in told)
        kind = "no parameter had a gradient" if absent else "every gradient was exactly 0"
        hint = "count the batch as dropped and return before optimizer.step and before the version"
        if absent and amount >= steps:
            kind = "no backward pass ever reached a parameter it holds"
            hint = "build the optimizer from the network that is trained, after the network is final"
        docket.add(
            "GYR208",
            State.BROKEN,
            f"{count(amount)} of {_named(run, totals, key, told)} had no sample contributing ({kind}): steps {which}",
            quantity="optimizer_steps_with_zero_consumed_samples",
            value=amount,
            unit="step",
            first=place_at(told[0].text("site")),
            hint=hint,
        )


def _lost_numbers(run: HookedRun, totals: Totals, limits: HookLimits, docket: Docket) -> None:
    del limits
    for key, events in _by_optimizer(run, "nan_step").items():
        docket.add(
            "GYR220",
            State.BROKEN,
            f"{count(events[-1].number('n'))} of {_named(run, totals, key, events)} used gradients that are not finite, "
            f"the first at step {int(events[0].number('step'))}: the weights are lost from there on",
            quantity="optimizer_steps_with_non_finite_gradients",
            value=events[-1].number("n"),
            unit="step",
            first=place_at(events[0].text("site")),
            hint="stop, or skip the step, when the gradient norm is not finite",
        )


def _reused(run: HookedRun, totals: Totals, limits: HookLimits, docket: Docket) -> None:
    del limits
    for kind, saying in (
        ("same_gradients", "were made on gradients that the step before had used already, with no backward pass between"),
        ("uncleared", "added to gradients that an earlier step had used already: nothing cleared them between"),
    ):
        for key, events in _by_optimizer(run, kind).items():
            amount = int(events[-1].number("n"))
            if amount < 2:
                continue
            docket.add(
                "GYR206",
                State.BROKEN,
                f"{count(amount)} of {_named(run, totals, key, events)} {saying}",
                quantity="optimizer_steps_on_used_gradients",
                value=amount,
                unit="step",
                first=place_at(events[0].text("site")),
                hint="call zero_grad() once between two steps",
            )


def _shared(run: HookedRun, totals: Totals, limits: HookLimits, docket: Docket) -> None:
    """Parameters that two optimizers hold and move with one gradient."""
    del limits
    for key, events in _by_optimizer(run, "stepped_again").items():
        last, amount = events[-1], int(events[-1].number("n"))
        if key in totals:
            amount = int(totals[key].number("n_stepped_again"))
        if amount < 2:
            continue
        docket.add(
            "GYR223",
            State.BROKEN,
            f"{count(last.number('params'))} parameters are in two optimizers, and {count(amount)} of {_named(run, totals, key, events)} moved them "
            f"a second time by gradients that the step of the other ({last.text('other')}) had used already",
            quantity="parameters_in_two_optimizers",
            value=last.number("params"),
            unit="parameter",
            first=place_at(events[0].text("site")),
            hint="give each parameter to one optimizer, or clear and compute the gradient anew before the second one steps",
        )


def _cleared(run: HookedRun, totals: Totals, limits: HookLimits, docket: Docket) -> None:
    for key, events in _by_optimizer(run, "cleared_unused").items():
        final = totals.get(key)
        amount = int(final.number("n_cleared_unused")) if final else int(events[-1].number("n"))
        passes = final.number("backwards") if final else events[-1].number("total")
        if amount < limits.cleared_least or amount < limits.cleared_share * passes:
            continue
        docket.add(
            "GYR207",
            State.BROKEN,
            f"the gradients of {count(amount)} of {count(passes)} backward passes were cleared before any optimizer step used them",
            quantity="backward_passes_cleared_unused",
            value=amount,
            unit="call",
            first=place_at(events[0].text("site")),
            hint="clear on the branch that steps, right after the step",
        )


def _late_clips(run: HookedRun, totals: Totals, limits: HookLimits, docket: Docket) -> None:
    for key, events in _by_optimizer(run, "late_clip").items():
        amount, steps = events[-1].number("n"), _steps(run, totals, key, events)
        if amount < 2 or amount < limits.clip_share * steps:
            continue
        docket.add(
            "GYR221",
            State.BROKEN,
            f"gradients were clipped {count(amount)} times after the step that used them ({count(steps)} steps): no step was limited",
            quantity="clips_after_step",
            value=amount,
            unit="call",
            first=place_at(events[0].text("site")),
            hint="clip between backward() and optimizer.step()",
        )


def _left_out(run: HookedRun, limits: HookLimits, docket: Docket) -> None:
    """Parameters of the acting network that get gradients and are in no optimizer."""
    found = [e for e in run.of("phase") if e.number("left_out")]
    partly = [e for e in found if e.fields.get("same")]
    copies = [e for e in found if "opt" in e.fields and not e.fields.get("same")]
    strange = [e for e in found if "opt" not in e.fields]
    for one in (copies, strange):
        if len({(e.text("fp"), e.text("trained_fp")) for e in one}) > 1:  # somebody moves them, though no optimizer that we see
            one.clear()
    found = [e for e in found if e in partly or e in copies or e in strange]
    if len(found) < limits.phases:
        return
    last = found[-1]
    other = (
        f": the {count(last.number('of'))} of the same shapes that the optimizer holds get none"
        if last in copies
        else ": they never change"
    )
    docket.add(
        "GYR224",
        State.BROKEN,
        f"{count(last.number('left_out'))} of {count(last.number('params'))} parameters of {last.text('module')} get gradients "
        f"and are in no optimizer ({', '.join(last.words('left'))}){other}",
        quantity="parameters_without_optimizer",
        value=last.number("left_out"),
        unit="parameter",
        first=place_at(last.text("site")),
        hint="build the optimizer after the network is complete, over all of its parameters",
    )


def _schedules(run: HookedRun, limits: HookLimits, docket: Docket) -> None:
    last: dict[tuple[int, str], HookEvent] = {}
    for event in run.of("schedule"):
        last[event.pid, event.text("cls")] = event
    for event in run.of("horizon"):
        name, horizon = event.text("cls"), event.number("horizon")
        final = last.get((event.pid, name), event)
        made = max(final.number("n"), event.number("n"))
        if made >= limits.horizon_over * horizon:
            docket.add(
                "GYR209",
                State.BROKEN,
                f"{name} was made for {count(horizon)} steps and was advanced {count(made)} times over {count(final.number('steps'))} "
                f"optimizer steps: it ended {made / horizon:.1f} times too early",
                quantity="schedule_steps",
                value=made,
                unit="step",
                first=place_at(event.text("site")),
                hint="count the schedule's length in what it is advanced by",
            )
    for event in last.values():
        _advanced_too_little(event, limits, docket)
    for event in last.values():
        advanced, samples, steps = event.number("n"), event.number("samples"), event.number("steps")
        gaps, repeats = event.number("gaps"), event.number("repeats")
        other = advanced >= limits.horizon_over * steps or (
            event.number("sizes") >= limits.phases and abs(advanced - steps) > limits.schedule_fit * steps
        )
        outrun = gaps >= limits.schedule_gaps and repeats >= limits.schedule_repeats * gaps and other
        paced = samples >= 2 * steps and abs(advanced - samples) <= limits.same_pace * samples
        if advanced < limits.pace_least or not (paced or outrun):
            continue
        site = next((e.text("site") for e in run.of("schedule") if e.text("site")), "")
        docket.add(
            "GYR205",
            State.BROKEN,
            f"{event.text('cls')} was advanced {count(advanced)} times: "
            + (f"with the {count(samples)} sample calls, " if paced else f"more than once at {count(repeats)} of {count(gaps)} turns, ")
            + f"not with the {count(steps)} optimizer steps",
            quantity="schedule_steps",
            value=advanced,
            unit="step",
            first=place_at(site),
            hint="advance the schedule once per optimizer step",
        )


def _advanced_too_little(event: HookEvent, limits: HookLimits, docket: Docket) -> None:
    """A schedule that was made and forgotten, or whose length counts optimizer steps while it is advanced once a round."""
    made, steps, horizon = event.number("n"), event.number("steps"), event.number("horizon")
    if not event.fields.get("last"):
        return
    name = event.text("cls")
    if made <= 0 and steps >= limits.pace_least:
        docket.add(
            "GYR225",
            State.BROKEN,
            f"{name} was made and never advanced over {count(steps)} optimizer steps: the learning rate stayed where it began",
            quantity="schedule_steps",
            value=0,
            unit="step",
            hint="advance the schedule once per what its length counts",
        )
    elif made > 0 and horizon >= limits.horizon_over * made and abs(steps - horizon) <= limits.schedule_fit * horizon:
        docket.add(
            "GYR209",
            State.BROKEN,
            f"{name} was made for {count(horizon)} steps, as many as the {count(steps)} optimizer steps, "
            f"and was advanced {count(made)} times: {made / horizon:.0%} of its course",
            quantity="schedule_steps",
            value=made,
            unit="step",
            hint="advance the schedule once per optimizer step, or count its length in rounds",
        )


def _nothing_trained(run: HookedRun, limits: HookLimits, docket: Docket) -> None:
    samples, made = max(run.calls("S"), run.env_steps), run.of("optimizer")
    if not made or run.total("optimizer_steps") or run.calls("T", marked=True) or samples < limits.samples:
        return
    if not run.of("end") and samples < STOPPED * limits.samples:
        return  # stopped from outside while it may still have been filling its buffer
    passes = run.total("backward_calls")
    docket.add(
        "GYR503",
        State.BROKEN,
        f"{count(samples)} sample calls, {count(passes)} backward passes and 0 optimizer steps: "
        f"the optimizer ({made[0].text('cls')}) was made and never stepped",
        quantity="optimizer_steps",
        value=0,
        unit="step",
        first=place_at(made[0].text("site")),
        hint="does the batch reach the minibatch size? a loop over len(batch) // minibatch makes no pass when it is 0",
        at_most=Severity.WARNING,  # an evaluation may rebuild an optimizer with its checkpoint; the program's own counters decide
    )
