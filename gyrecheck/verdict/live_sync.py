"""Whether what is trained reaches what acts: by the weights themselves, phase by phase, not by version labels.

A phase is the first sampling call after an update. Networks are compared by architecture, since a program may copy its acting network anew
each round. A network whose own parameters are in an optimizer acts for itself and needs no sync; where such a one shares its
architecture with another acting one (self-play), nothing is said.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.live import HookedRun, HookEvent
from gyrecheck.rulebook.hook_table import HookLimits
from gyrecheck.verdict.live_copies import judge_base, judge_parts, judge_remote
from gyrecheck.verdict.live_places import numbers, place_at
from gyrecheck.verdict.ruling import Because, Docket, count


def judge_sync(run: HookedRun, limits: HookLimits, docket: Docket) -> None:
    """Enter what loads and acting networks show."""
    acting = _acting(run)
    nets = {event.number("net") for phases in acting.values() for event in phases}
    for (pid, form), phases in acting.items():
        loads = [e for e in run.of("load") if e.pid == pid and e.text("form") == form]
        _judge_copy(phases, [e for e in loads if not e.fields.get("trained")], limits, docket)
    judge_base(run, limits, docket)
    judge_remote(run, limits, docket)
    _unmatched(run, nets, docket)
    _reversed(run, docket)
    _versions(run, docket)


def _acting(run: HookedRun) -> dict[tuple[int, str], list[HookEvent]]:
    """Phases of acting copies by process and architecture; empty for networks that act and are trained themselves."""
    confirmed: dict[int, set[float]] = defaultdict(set)
    for event in run.of("acting"):
        nets = event.fields.get("nets")
        confirmed[event.pid].update(float(n) for n in nets if isinstance(n, (int, float))) if isinstance(nets, list) else None
    stepping = {event.pid for event in run.of("phase") if event.text("by") != "pass"}
    found: dict[tuple[int, str], list[HookEvent]] = defaultdict(list)
    own: set[tuple[int, str]] = set()
    for event in run.of("phase"):
        if event.fields.get("look"):
            continue
        sure = confirmed[event.pid]
        if (sure and event.number("net") not in sure) or (event.text("by") == "pass" and event.pid in stepping):
            continue
        key = (event.pid, event.text("form"))
        if event.fields.get("same"):
            if event.text("by") != "pass":
                own.add(key)
        elif "opt" in event.fields:
            found[key].append(event)
    return {key: phases for key, phases in found.items() if key not in own}


def _judge_copy(phases: list[HookEvent], loads: list[HookEvent], limits: HookLimits, docket: Docket) -> None:
    first, later = phases[0], [e for e in phases if e.number("version") > 0]
    sure = first.text("by") != "pass"
    if not sure and not loads:
        return  # called without recording a graph and never loaded: a reference model as well as a sampler
    where = Because(place, "the acting network is called here") if (place := place_at(first.text("site"))) else None
    because = [where] if where else []
    if first.number("version") == 0 and first.number("differ"):
        _different_at_start(first, later, loads, because, docket)
        return
    moved = {e.text("trained_fp") for e in later} - {first.text("trained_fp")}
    least = limits.phases_after_load if loads else limits.phases
    if len(later) >= least and len({e.text("fp") for e in phases}) == 1 and len(moved) >= least:
        _never_changed(phases, later, loads, because, docket)
        return
    behind = [e for e in later if e.number("loaded_at") == e.number("version") and e.number("differ")]
    if len(behind) >= 2 and len(behind) >= len(later) / 2:
        _not_arrived(behind, later, loads, because, docket)
        return
    if sure:
        judge_parts(phases, loads, limits, docket)


def _different_at_start(first: HookEvent, later: list[HookEvent], loads: list[HookEvent], because: list[Because], docket: Docket) -> None:
    equal = [e for e in later if not e.number("differ")]
    synced = bool(equal or loads)
    after = f"; they are equal in {len(equal)} of {len(later)} later sampling phases" if later else ""
    how = "" if synced else "; nothing was ever loaded into the acting one"
    docket.add(
        "GYR420",
        State.BROKEN,
        f"acting and trained networks differ at version 0, before any update: {_apart(first)}{after}{how}",
        quantity="sampler_weights_equal_learner_at_version_0",
        value=False,
        first=place_at(first.text("site")),
        because=because,
        hint="load the trained network's weights into the acting one once, where both are built",
        at_most=None if synced else Severity.NOTE,  # a teacher or an opponent may act by intention
    )
    if synced:
        _ratio(1, len(later) + 1, first, "round 1 (version 0)", because, docket)


def _never_changed(phases: list[HookEvent], later: list[HookEvent], loads: list[HookEvent], because: list[Because], docket: Docket) -> None:
    first, last = phases[0], later[-1]
    copied = first.number("version") == 0 and not first.number("differ")
    empty = [e for e in loads if e.number("missing") and e.number("missing") == e.number("params")]
    if empty:
        names = f"{', '.join(empty[0].words('missed'))} against {', '.join(empty[0].words('strange')) or 'none'}"
        why = f"{len(loads)} loads were made and {len(empty)} of them matched no parameter name ({names})"
        hint = "make the names agree, and load with strict=True so that a mismatch is loud"
    elif loads:
        why = f"{len(loads)} loads were made and brought the values it had already"
        hint = "take the trained network's state_dict() anew for each load"
    else:
        why = "nothing was ever loaded into it"
        hint = "load the trained network's weights into the acting one after each update"
    if loads and (place := place_at((empty or loads)[0].text("site"))):
        because = [*because, Because(place, "the load that changes nothing")]
    docket.add(
        "GYR420",
        State.BROKEN,
        f"the acting network is bit-identical in all {len(phases)} sampling phases while the trained one moved on "
        f"({_apart(last)} at version {int(last.number('version'))}): {why}",
        quantity="sampler_weights_changed",
        value=False,
        first=place_at((empty or loads or [first])[0].text("site")),
        because=because,
        hint=hint,
        at_most=None if loads or copied else Severity.WARNING,
    )
    stale = [e for e in later if e.number("differ")]
    if loads and stale:
        _ratio(len(stale), len(phases), last, f"rounds {numbers([phases.index(e) + 1 for e in stale])}", because, docket)


def _not_arrived(behind: list[HookEvent], later: list[HookEvent], loads: list[HookEvent], because: list[Because], docket: Docket) -> None:
    last = behind[-1]
    partial = [e for e in loads if 0 < e.number("missing") < e.number("params")]
    earlier = {e.text("trained_fp") for e in later}
    lagging = all(e.text("fp") in earlier or e is behind[0] for e in behind[1:])
    if partial:
        why = f"loads left out {', '.join(partial[0].words('missed'))}"
        hint = "load with strict=True, so that a name that does not meet is loud"
    elif lagging:
        why = "it holds the weights of an earlier version, although it was loaded after the last update"
        hint = "take the state after the last optimizer step of the round, not before it"
    else:
        why = "what was loaded is not what is trained"
        hint = "load the state_dict() of the network that the optimizer holds"
    place = place_at((partial or loads or behind)[0].text("site"))
    docket.add(
        "GYR420",
        State.BROKEN,
        f"after a load the acting network still differs from the trained one in {len(behind)} of {len(later)} sampling phases "
        f"({_apart(last)} at version {int(last.number('version'))}): {why}",
        quantity="sampler_weights_equal_learner_after_load",
        value=False,
        first=place,
        because=because,
        hint=hint,
        at_most=None if partial else Severity.WARNING,  # an averaged or deliberately older policy may act
    )


def _ratio(rounds: int, of: int, phase: HookEvent, which: str, because: list[Because], docket: Docket) -> None:
    """Different weights under one version label: the importance ratio of the first pass cannot be 1."""
    docket.add(
        "GYR402",
        State.BROKEN,
        f"replay ratio off: in the first pass of {which} the ratio of trained to acting policy cannot be 1, since their weights differ "
        f"({_apart(phase)}) although the version label says lag 0",
        quantity="rounds_with_ratio_off_at_first_pass",
        value=rounds,
        unit=f"of {of} rounds",
        because=because,
        hint="see GYR420: mend the sync, and the ratio of the first pass is 1",
    )


def _apart(event: HookEvent) -> str:
    return f"{count(event.number('differ'))} of {count(event.number('of'))} tensors, largest difference {event.number('gap'):.3g}"


def _unmatched(run: HookedRun, acting: set[float], docket: Docket) -> None:
    """Tolerant loads whose names do not meet, into networks that the verdicts above do not cover."""
    covered = any(v.code == "GYR420" for v in docket.verdicts)
    seen: set[str] = set()
    for event in run.of("load"):
        missing, params = event.number("missing"), event.number("params")
        key = event.text("site") + event.text("form")
        if not missing or key in seen or (covered and event.number("net") in acting):
            continue
        names = f"{', '.join(event.words('missed'))} against {', '.join(event.words('strange')) or 'none'}"
        whole = missing == params
        if not whole and not event.number("unexpected"):
            continue  # a part was given on purpose
        seen.add(key)
        docket.add(
            "GYR421",
            State.BROKEN,
            f"a load into {event.text('module')} left {count(missing)} of {count(params)} parameters as they were: the names do not meet "
            f"({names})",
            quantity="parameters_not_loaded",
            value=missing,
            unit=f"of {count(params)}",
            first=place_at(event.text("site")),
            hint="make the names agree, and load with strict=True so that a mismatch is loud",
            at_most=None if whole and event.number("given") else Severity.WARNING,
        )


def _reversed(run: HookedRun, docket: Docket) -> None:
    """Loads that put the trained network back to older weights, each round."""
    back: dict[tuple[int, float], list[HookEvent]] = defaultdict(list)
    for event in run.of("load"):
        if event.fields.get("trained") and event.number("version") > 0 and event.text("before") != event.text("fp"):
            back[event.pid, event.number("net")].append(event)
    for (pid, _), events in back.items():
        restored = {e.text("fp") for e in events}
        acting = {e.text("fp") for e in run.of("phase") if e.pid == pid and not e.fields.get("same")}
        if len(events) < 2 or len(restored) > 1 or not restored & acting:
            continue
        docket.add(
            "GYR422",
            State.BROKEN,
            f"{len(events)} loads put the trained network back to the acting network's weights: each update is undone "
            f"(first after {int(events[0].number('version'))} optimizer steps)",
            quantity="updates_undone",
            value=len(events),
            unit="load",
            first=place_at(events[0].text("site")),
            hint="load from the trained network into the acting one, not the other way round",
        )


def _versions(run: HookedRun, docket: Docket) -> None:
    """Versions given to publish() and load(), against the weights that came with them."""
    published = {int(e.number("version")): e for e in run.of("publish") if e.text("fp")}
    ordered = [published[v] for v in sorted(published)]
    same = [b for a, b in pairwise(ordered) if a.text("fp") == b.text("fp")]
    if same:
        docket.add(
            "GYR423",
            State.BROKEN,
            f"{len(same)} of {len(ordered)} published versions carry the weights of the version before "
            f"(versions {numbers([int(e.number('version')) for e in same])})",
            quantity="versions_without_new_weights",
            value=len(same),
            unit="version",
            first=place_at(same[0].text("site")),
            hint="publish after optimizer.step, and only when a step was made",
        )
    wrong = [
        e
        for e in run.of("loaded")
        if (p := published.get(int(e.number("version")))) and e.text("form") == p.text("form") and e.text("fp") != p.text("fp")
    ]
    if wrong:
        docket.add(
            "GYR420",
            State.BROKEN,
            f"{len(wrong)} loads took a version's label without its weights: the fingerprint is not the published one "
            f"(versions {numbers([int(e.number('version')) for e in wrong])})",
            quantity="loads_with_other_weights",
            value=len(wrong),
            unit="load",
            first=place_at(wrong[0].text("site")),
            hint="load the weights first, then set the version",
        )
