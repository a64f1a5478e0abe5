"""Acting copies that follow the trained network in part, too early, or not at all from another process."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.live import HookedRun, HookEvent
from gyrecheck.rulebook.hook_table import HookLimits
from gyrecheck.verdict.live_places import place_at
from gyrecheck.verdict.ruling import Because, Docket, count


def judge_parts(phases: list[HookEvent], loads: list[HookEvent], limits: HookLimits, docket: Docket) -> bool:
    """Enter tensors or buffers that never arrive while the others do, and loads that come before the round's last step."""
    later = [e for e in phases if e.number("version") > 0]
    if len(later) < limits.phases:
        return False
    return _stuck(later, docket) or _buffers(phases, later, docket) or _too_early(later, loads, docket)


def _stuck(later: list[HookEvent], docket: Docket) -> bool:
    """Some tensors stay bit-identical in every phase while those that agree move with the trained network."""
    apart = {e.words("apart") for e in later}
    moved = {e.text("met") for e in later}
    if len(apart) != 1 or not later[0].words("apart") or len({e.text("still") for e in later}) != 1 or len(moved) < len(later) - 1:
        return False
    last = later[-1]
    docket.add(
        "GYR420",
        State.BROKEN,
        f"{count(last.number('differ'))} of {count(last.number('of'))} tensors of the acting network ({', '.join(last.words('apart'))}) are "
        f"bit-identical in all {len(later)} sampling phases after an update, while the others follow the trained network",
        quantity="tensors_never_synced",
        value=last.number("differ"),
        unit="tensor",
        first=place_at(last.text("site")),
        hint="copy every tensor of state_dict(), and count what was copied",
        at_most=Severity.WARNING,  # a head of its own may be intended
    )
    return True


def _buffers(phases: list[HookEvent], later: list[HookEvent], docket: Docket) -> bool:
    """Parameters arrive and the buffers never do: running statistics that the trained network uses."""
    known = [e for e in later if e.text("buffers_fp")]
    apart = [e for e in known if e.words("buffers_apart")]
    arrived = [e for e in known if not e.number("differ")]
    ours = {e.text("buffers_fp") for e in phases if e.text("buffers_fp")}
    theirs = {e.text("trained_buffers_fp") for e in known}
    if len(apart) < len(later) or len(arrived) < len(later) or len(ours) != 1 or len(theirs) < len(later) - 1:
        return False
    docket.add(
        "GYR420",
        State.BROKEN,
        f"the parameters of the acting network follow the trained one, its buffers ({', '.join(apart[-1].words('buffers_apart'))}) are "
        f"bit-identical in all {len(phases)} sampling phases while the trained ones move",
        quantity="sampler_buffers_changed",
        value=False,
        first=place_at(apart[-1].text("site")),
        hint="copy state_dict(), which holds the buffers, and not parameters() alone",
        at_most=Severity.WARNING,  # statistics of its own may be intended
    )
    return True


def _too_early(later: list[HookEvent], loads: list[HookEvent], docket: Docket) -> bool:
    """One thread loads in every round, always the same number of steps too early."""
    behind = {e.number("version") - e.number("loaded_at") for e in later}
    steady = len(behind) == 1 and min(behind) > 0 and all(e.number("loaded_at") >= 0 for e in later)
    renewed = all(b.number("loads") > a.number("loads") for a, b in pairwise(later))
    if not (loads and steady and renewed and all(e.fields.get("alone") and e.number("differ") for e in later)):
        return False
    between = {e.text("trained_fp") for e in later}
    midway = not any(e.text("fp") in between for e in later)
    steps, last = int(min(behind)), later[-1]
    place = place_at(loads[-1].text("site"))
    docket.add(
        "GYR420",
        State.BROKEN,
        f"in all {len(later)} sampling phases the acting network is {steps} optimizer step{'s' * (steps > 1)} behind the trained one "
        f"({count(last.number('differ'))} of {count(last.number('of'))} tensors, largest difference {last.number('gap'):.3g}): "
        "it is loaded in each round before the round's last step",
        quantity="sampler_weights_equal_learner_after_load",
        value=False,
        first=place,
        because=[Because(place, "the load")] if place else [],
        hint="load after the last optimizer step of the round",
        at_most=Severity.WARNING if midway else Severity.NOTE,  # acting one whole update late may be a pipeline
    )
    return True


def judge_base(run: HookedRun, limits: HookLimits, docket: Docket) -> None:
    """Enter networks that act with the frozen part of one that is trained beside it, in every phase: adapters that never reach them."""
    acting: dict[tuple[int, str], list[HookEvent]] = defaultdict(list)
    for event in run.of("phase"):
        if event.number("base_of") and event.text("by") != "pass" and not event.fields.get("look"):
            acting[event.pid, event.text("form")].append(event)
    for phases in acting.values():
        later = [e for e in phases if e.number("version") > 0]
        moved = {e.text("beside_fp") for e in later}
        if len(later) < limits.phases or any(e.number("base_differ") for e in phases) or len(moved) < len(later):
            continue
        if len({e.text("fp") for e in phases}) > 1:
            continue
        last = later[-1]
        place = place_at(last.text("site"))
        because = [Because(place, "the acting network is called here")] if place else []
        docket.add(
            "GYR420",
            State.BROKEN,
            f"{last.text('module')} acts with the frozen weights of {last.text('host')} in all {len(phases)} sampling phases, bit by bit, "
            "while the parameters beside them are trained: what is trained never reaches it",
            quantity="sampler_weights_changed",
            value=False,
            first=place,
            because=because,
            hint="copy the merged weights while they are merged: a generator, or a clone of each tensor",
            at_most=Severity.WARNING,  # a base may act by intention
        )
        docket.add(
            "GYR402",
            State.BROKEN,
            f"replay ratio off: in the first pass of {len(later)} of {len(phases)} rounds the ratio of trained to acting policy cannot be 1: "
            f"the one is {last.text('host')} with what is trained in it, the other without",
            quantity="rounds_with_ratio_off_at_first_pass",
            value=len(later),
            unit=f"of {len(phases)} rounds",
            because=because,
            hint="see GYR420: mend the sync, and the ratio of the first pass is 1",
            at_most=Severity.WARNING,
        )


def judge_remote(run: HookedRun, limits: HookLimits, docket: Docket) -> None:
    """Enter networks that act in a process that never updates, never change, and are trained meanwhile in another."""
    trained: dict[str, list[HookEvent]] = defaultdict(list)
    for event in run.of("weights"):
        trained[event.text("form")].append(event)
    idle = {p.pid for p in run.processes if p.calls("S") and not p.cells.get("optimizer_steps")}
    acting: dict[tuple[int, float], list[HookEvent]] = defaultdict(list)
    for event in run.of("phase"):
        if event.pid in idle and event.text("by") == "step" and event.text("form") in trained:
            acting[event.pid, event.number("net")].append(event)
    for (pid, net), looks in acting.items():
        first, last = looks[0], looks[-1]
        others = [e for e in trained[last.text("form")] if e.pid != pid]
        moved = {e.text("fp") for e in others if first.at < e.at <= last.at}
        if len(looks) < limits.phases or len({e.text("fp") for e in looks}) > 1 or len(moved) < limits.phases:
            continue
        loads = [e for e in run.of("load") if e.pid == pid and e.number("net") == net]
        how = f"{len(loads)} loads were made and brought the values it had" if loads else "nothing was ever loaded into it"
        place = place_at((loads[0] if loads else first).text("site"))
        docket.add(
            "GYR420",
            State.BROKEN,
            f"{first.text('module')} acts in process {pid} with bit-identical weights in all {len(looks)} looks, while process "
            f"{others[-1].pid} trained a network of the same form at least {count(max(e.number('step') for e in others))} steps: {how}",
            quantity="sampler_weights_changed",
            value=False,
            first=place,
            hint="load the published weights in the sampling process before each round",
            at_most=None if len(loads) >= limits.phases_after_load else Severity.WARNING,  # a fixed opponent may act by intention
        )
