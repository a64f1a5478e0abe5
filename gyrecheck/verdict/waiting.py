"""Who waits for whom, and whether it can ever come: a hold for a policy that nobody will publish, a knock that nobody answers."""

from __future__ import annotations

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Mark
from gyrecheck.verdict.carrier import lost_port, rejected, unread
from gyrecheck.verdict.growth import leaking, unbounded
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.view import View

_PROGRESS = frozenset(
    (
        "sampled",
        "taken",
        "drawn",
        "done",
        "written",
        "read",
        "update",
        "step",
        "published",
        "loaded",
        "trainer_version",
        "in_flight",
        "left",
        "sample_call",
        "update_call",
        "dropped",
        "dropped_stale",
        "dropped_other",
        "progress_done",
        "episodes",
    )
)


def judge_waiting(run: View, docket: Docket) -> None:
    """Enter the verdicts on waits and the carrier."""
    if not _stuck(run, docket) and not lost_port(run, docket):
        _unanswered(run, docket)
    flying = next(iter(run.snapshot.of("in_flight")), None)
    if flying is not None and flying.count >= 3 and flying.high > 0 and flying.last == 0:
        docket.add("GYR515", State.HOLDS, f"`{flying.name}` drains from {count(flying.high)} to 0", quantity=flying.name, value=0)
    unread(run, docket)
    rejected(run, docket)
    unbounded(run, docket)
    leaking(run, docket)


def _last_progress(run: View) -> int:
    """The order of the last reading at which anything counted moved."""
    moved = 0
    for series in run.snapshot.series:
        if series.key.term not in _PROGRESS:
            continue
        counted_per_step = series.key.cumulative == "no" or (series.falls and series.key.term in {"sampled", "taken"})
        last = next((series.orders[i] for i in range(len(series) - 1, 0, -1) if series.values[i] != series.values[i - 1]), series.orders[0])
        if counted_per_step:
            last = next((series.orders[i] for i in range(len(series) - 1, -1, -1) if series.values[i] > 0), last)
        moved = max(moved, last)
    return moved


def _stuck(run: View, docket: Docket) -> bool:
    """Nothing moves although signs of life go on."""
    t, snapshot = docket.rules.thresholds, run.snapshot
    moved = _last_progress(run)
    held = [s for s in run.snapshot.of("in_flight", "left") if s.orders[-1] > moved and s.last > 0]
    full = _held_back(run, moved)
    after = {m.order for m in (*snapshot.marked("alive", "hold"), *full) if m.order > moved}
    after |= {o for s in snapshot.series if s.key.term in _PROGRESS for o in s.orders if o > moved}
    alive = snapshot.marked("alive")
    holds = [*(m for m in snapshot.marked("hold") if m.order >= moved), *full]
    if len(after) < t.stuck_readings or not (holds or len(alive) >= t.stuck_readings):
        return False
    first = holds[0] if holds else None
    start = first.place if first else held[0].place(held[0].index(moved)) if held else alive[0].place
    last_place = max((s.last_place for s in snapshot.series), key=lambda p: p.line, default=start)
    seconds = None if start.time is None or snapshot.last_time is None else snapshot.last_time - start.time
    if seconds is not None and seconds < t.stuck_seconds and not (first and len(after) >= 2 * t.stuck_readings):
        return False
    gone = next((m for m in snapshot.marked("trainer_finished") if m.order <= last_order(snapshot.marks)), None)
    ended = next((m for m in snapshot.marked("sampler_finished")), None)
    if held and held[0].last == 0:
        return False
    span = f" for {_span(seconds)}" if seconds else ""
    number = (
        f"`{held[0].name}` stays at {count(held[0].last)}{span} and {len(after)} more lines"
        if held
        else f"no counter moves{span} and {len(after)} more lines"
    )
    why = ""
    because = [Because(start, "held from here on")] if first else [Because(start, "last progress")]
    awaited = gone or ended
    if first and awaited is not None:
        why = f": it waits for something newer, and its producer has ended (line {awaited.place.line})"
        because.append(Because(awaited.place, "the producer ended"))
    elif first:
        why = ": what it waits for does not come"
    because.append(Because(last_place, "last line"))
    docket.add(
        "GYR515",
        State.BROKEN,
        f"{number}{why}",
        quantity=held[0].name.replace(" ", "_") if held else "progress",
        value=held[0].last if held else None,
        first=start,
        because=because,
        hint="end the wait when its producer ends, or finish with the newest policy there is"
        if awaited
        else "look at what this side waits for; a longer timeout only hides it",
    )
    return True


def _held_back(run: View, moved: int) -> list[Mark]:
    """Producers that wait at a full buffer after the last progress, in a log that tells the trainer's progress too."""
    if run.main is not None:
        return []  # its counters say it better
    tells = {s.path for s in run.series("update", "taken", "step", "trainer_version", least=3) if s.rises >= 2}
    return [m for m in run.snapshot.marked("throttled") if m.order > moved and m.place.path in tells]


def last_order(marks: tuple[Mark, ...]) -> int:
    """Order of the last mark."""
    return max((m.order for m in marks), default=0)


def _span(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds >= 5400:
        return f"{seconds / 3600:.3g} h"
    return f"{seconds / 60:.3g} min" if seconds >= 90 else f"{seconds:.0f} s"


def _unanswered(run: View, docket: Docket) -> None:
    """Listening or connecting, and no connection; or a wait at the very end of the log."""
    snapshot = run.snapshot
    knocks = snapshot.marked("connecting", "listening")
    moved = any((f.last > 0) for f in (run.sampled, run.taken, run.updates) if f is not None)
    if knocks and not snapshot.marked("connected") and not moved and len(knocks) >= 2:
        docket.add(
            "GYR603",
            State.BROKEN,
            f"{len(knocks)} lines listen or try to connect, none says that a connection was made",
            quantity="connections",
            value=0,
            first=knocks[0].place,
            because=[knocks[0].place, knocks[-1].place],
            hint="compare the host and port that the two sides are given",
        )
        return
    holds = [m for m in snapshot.marked("hold") if m.order > _last_progress(run)]
    if len(holds) >= 3:
        docket.add(
            "GYR603",
            State.BROKEN,
            f"the log ends in {len(holds)} lines that wait, and nothing answers them",
            quantity="waits",
            value=len(holds),
            first=holds[0].place,
            because=[holds[0].place, holds[-1].place],
            hint="see which side should answer, and whether it still runs",
            at_most=Severity.WARNING,
        )
