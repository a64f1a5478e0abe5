"""Who waits for whom, and whether it can ever come: a hold for a policy that nobody will publish, a carrier nobody reads."""

from __future__ import annotations

import re
from itertools import pairwise

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Mark, Series
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.view import View, last_move

_SETTLED = frozenset(("counter", "level", "version", "axis"))
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
    if not _stuck(run, docket) and not _ports(run, docket):
        _unanswered(run, docket)
    flying = next(iter(run.snapshot.of("in_flight")), None)
    if flying is not None and flying.count >= 3 and flying.high > 0 and flying.last == 0:
        docket.add("GYR515", State.HOLDS, f"`{flying.name}` drains from {count(flying.high)} to 0", quantity=flying.name, value=0)
    _carrier(run, docket)
    _rejected(run, docket)
    _unbounded(run, docket)
    _leaking(run, docket)


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
            hint="compare the two sides' host and port: gyrecheck keys CONFIG",
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


_PORT = re.compile(r"(?:port[ =:]+|:)(\d{2,5})\b(?!:)")


def _ports(run: View, docket: Docket) -> bool:
    """A port that is connected to, and nobody listens on."""
    heard = [(m, p) for m in run.snapshot.marked("listening") for p in _PORT.findall(_untimed(m.place.text))]
    knocked = [(m, p) for m in run.snapshot.marked("connecting") for p in _PORT.findall(_untimed(m.place.text))]
    if not heard or not knocked or run.snapshot.marked("connected"):
        return False
    open_ports = {p for _, p in heard}
    lost = [(m, p) for m, p in knocked if p not in open_ports]
    if not lost or len(lost) < len(knocked):
        return False
    mark, port = lost[0]
    docket.add(
        "GYR602",
        State.BROKEN,
        f"connects to port {port}, on which nobody listens; {', '.join(sorted(open_ports))} is listened on",
        quantity="port",
        value=int(port),
        first=mark.place,
        because=[Because(heard[0][0].place, "listens"), Because(mark.place, "connects")],
        hint="give both sides the same address from one place: gyrecheck keys CONFIG",
    )
    return True


def _untimed(text: str) -> str:
    return re.sub(r"\d{1,2}:\d\d(:\d\d)?", "", text)


def _rejected(run: View, docket: Docket) -> None:
    """Data refused for its form."""
    marks = run.snapshot.marked("rejected")
    if marks:
        docket.add(
            "GYR505",
            State.BROKEN,
            (f"the consumer refuses data for its form, {len(marks)} line{'s' if len(marks) > 1 else ''}, the first {marks[0].place.line}"),
            quantity="rejected",
            value=len(marks),
            first=marks[0].place,
            because=[marks[0].place],
            hint="mend the sampler's writer: gyrecheck handoff check shows the field",
            at_most=None if len(marks) >= 3 or not run.taken or run.taken.last == 0 else Severity.WARNING,
        )


def _unbounded(run: View, docket: Docket) -> None:
    """A buffer without a bound that only fills."""
    account = run.main
    left = account.left if account else None
    if (
        left is None
        or len(left.values) < 12
        or run.snapshot.of("capacity", "max_age", "dropped_stale")
        or account is None
        or account.mode == "replay"
    ):
        return
    rises = sum(b > a for a, b in zip(left.values, left.values[1:]))  # noqa: B905
    if rises >= 0.9 * (len(left.values) - 1) and left.last >= 10 * max(left.values[0], 1):
        docket.add(
            "GYR604",
            State.BROKEN,
            (f"`{left.name}` grows from {count(left.values[0])} to {count(left.last)}, and neither a capacity nor an age limit is logged"),
            quantity=left.name,
            value=left.last,
            first=left.last_place,
            because=[left.first_place],
            hint="bound the buffer, or limit the age",
            at_most=Severity.NOTE,
        )


def _leaking(run: View, docket: Docket) -> None:
    """Work in flight that only grows, line after line up to the last: slots that are never given back."""
    for series in run.series("in_flight", least=12):
        rises = sum(b > a for a, b in pairwise(series.values))
        late = series.values[3 * len(series) // 4 :]
        if (
            series.falls
            or rises < 0.8 * (series.count - 1)
            or series.thinned > 1
            or late[-1] <= late[0]
            or series.last < 2 * max(series.first, 1)
        ):
            continue
        done = next((s for s in run.series("done", "taken", "sampled") if s.rises >= 0.8 * (s.count - 1)), None)
        if done is None:
            continue
        docket.add(
            "GYR604",
            State.BROKEN,
            f"`{series.name}` grows from {count(series.first)} to {count(series.last)} and never falls while `{done.name}` goes on: slots are "
            "taken and not given back",
            quantity=series.name,
            value=series.last,
            first=series.first_place,
            because=[series.first_place, series.last_place],
            hint="release the slot where a request fails or is cancelled, too",
            at_most=Severity.WARNING,
        )
        return


def _carrier(run: View, docket: Docket) -> None:
    """Written and not read."""
    written = _best(run.series("written"))
    read = _best(run.series("read"))
    if written is None or read is None or written.key.unit != read.key.unit or written.count < 3:
        return
    put = written.last if written.falls == 0 and written.rises else written.total
    got = read.last if read.falls == 0 and read.rises else read.total
    if put > 0 and got == 0:
        docket.add(
            "GYR504",
            State.BROKEN,
            f"{count(put)} written (`{written.name}`), none read (`{read.name}`)",
            quantity=read.name,
            value=0,
            first=read.first_place,
            because=[written.last_place, read.last_place],
            hint="compare the two sides' folder, queue or port",
        )


def _best(found: tuple[Series, ...]) -> Series | None:
    return max(found, key=lambda s: s.count) if found else None


__all__ = ["judge_waiting", "last_move"]
