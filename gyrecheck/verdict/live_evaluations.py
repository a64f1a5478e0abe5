"""What an evaluation leaves behind in a hooked run: an environment that stands elsewhere, a network in another mode."""

from __future__ import annotations

from gyrecheck.model.finding import State
from gyrecheck.model.live import HookedRun
from gyrecheck.rulebook.hook_table import HookLimits
from gyrecheck.verdict.live_places import place_at
from gyrecheck.verdict.ruling import Because, Docket, count


def judge_turns(run: HookedRun, limits: HookLimits, docket: Docket) -> None:
    """Enter environments on which another function plays while their collector stands in the middle of an episode."""
    last = {(e.pid, e.text("owner"), e.text("guest")): e for e in run.of("env_taken")}
    for event in last.values():
        times, resets, steps = (int(event.number(name)) for name in ("times", "resets", "steps"))
        if times < limits.env_taken:
            continue
        owner, guest, under = (place_at(event.text(name)) for name in ("owner", "guest", "under"))
        names = [event.text(name).rpartition(" ")[2] for name in ("owner", "guest", "under")]
        because = [Because(guest, f"{names[1]} plays here")] if guest else []
        because += [Because(owner, f"{names[0]} goes on here")] if owner else []
        docket.add(
            "GYR121",
            State.BROKEN,
            f"{names[1]} resets and plays the {event.text('env')} that {names[0]} stands on in the middle of an episode: {count(times)} times "
            f"{names[0]} went on from its own older observation, which the environment had left",
            quantity="env_resets_inside_update" if under else "env_resets_between_two_collections",
            value=resets,
            unit="reset",
            first=guest,
            because=because,
            hint="evaluate on an environment of its own, or reset before collecting goes on",
        )
        if under:
            docket.add(
                "GYR204",
                State.BROKEN,
                f"{names[2]} steps the optimizer and then plays on the collector's environment: {count(steps)} env steps and {count(resets)} "
                f"resets in {count(event.number('inside'))} updates ({names[2]} > {names[1]})",
                quantity="env_steps_inside_update",
                value=steps,
                unit="step",
                first=under,
                because=because,
                hint="let the outer loop evaluate, on an environment of its own",
            )


def judge_modes(run: HookedRun, limits: HookLimits, docket: Docket) -> None:
    """Enter acting networks that are trained in training mode first, and in evaluation mode from some sampling on to the end."""
    ends = {(e.pid, e.number("i")): e for e in run.of("totals")}
    last = {(e.pid, e.number("i")): e for e in run.of("mode_left")}
    for key, event in last.items():
        off = int(ends[key].number("in_eval") if key in ends else event.number("n"))
        on = int(event.number("on"))
        if on < limits.mode_on or off < limits.mode_off:
            continue
        docket.add(
            "GYR110",
            State.BROKEN,
            f"{event.text('module')} was trained in training mode for {count(on)} optimizer steps and in evaluation mode for the last "
            f"{count(off)}: {', '.join(sorted(set(event.words('layers'))))} stayed switched off",
            quantity="updates_in_eval_mode",
            value=off,
            unit=f"of {count(on + off)} steps",
            first=place_at(event.text("site")),
            hint="was = net.training; net.eval(); ...; net.train(was)",
        )
