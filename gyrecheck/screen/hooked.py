"""What a hooked run's shards add to a picture: exact call counts with their history, processes, versions and loads. Nothing is judged."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from gyrecheck.model.finding import Report
from gyrecheck.model.live import HookedRun, ProcessCounts
from gyrecheck.model.snapshot import ProcessSeen, Snapshot
from gyrecheck.screen.view import CounterRow, ProcessRow, SeriesView
from gyrecheck.stream.shard_follow import FollowedShards
from gyrecheck.stream.shards import events_of
from gyrecheck.verdict.judge import Judgement
from gyrecheck.verdict.tally import Tally

LogJudge = Callable[[str], "Judgement | None"]
HookJudge = Callable[[HookedRun, LogJudge], Report]
"""The joined report on a hooked run; it asks for the judgement over the output once it knows the topology."""
LEDGER_TERMS = frozenset({"sampled", "taken", "drawn", "dropped_stale", "dropped_other", "left", "in_flight", "published", "loaded"})
AFTER = 1 << 40
"""Orders of the output's readings begin here: in a recorded run they come after all that the shards say."""
KEPT = 4096
WINDOW = 60.0
SILENT, DEAD = 10.0, 30.0


@dataclass(frozen=True, slots=True)
class HookFigures:
    """The hook's rows of one picture."""

    counters: tuple[CounterRow, ...] = ()
    coupling_recent: tuple[float, ...] = ()
    processes: tuple[ProcessRow, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    handoff: tuple[tuple[str, str], ...] = ()
    series: tuple[SeriesView, ...] = ()
    seconds: float | None = None
    ended: bool = False
    problems: tuple[str, ...] = ()


@dataclass(slots=True)
class HookedLook:
    """The shards of one folder, looked at every poll; `alive` asks whether a pid of this host runs."""

    folder: Path
    alive: Callable[[int], bool]
    clock: Callable[[], float] = time.time
    shards: FollowedShards = field(init=False)
    run: HookedRun | None = None
    _times: list[float] = field(default_factory=list)
    _totals: list[tuple[float, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Open nothing yet."""
        self.shards = FollowedShards(self.folder)

    def poll(self) -> bool:
        """Look; true when something changed."""
        self.run, changed = self.shards.poll()
        if self.run is not None:
            self._remember(self.clock(), tuple(value for _, value in totals(self.run)))
        return changed

    def snapshot(self, logs: Snapshot) -> Snapshot:
        """The ledger's terms that the shards hold, then the readings of the output, in the order of a recorded run."""
        tally = Tally()
        if self.run is not None:
            tally.feed_events(event for event in events_of(self.run) if event.kind in LEDGER_TERMS)
        return joined(tally.snapshot(), logs)

    def figures(self) -> HookFigures:
        """All rows for the picture."""
        run = self.run
        if run is None:
            return HookFigures()
        here = os.uname().nodename
        rows, gone = [], 0
        for process in run.processes:
            quiet = self.shards.quiet(process.path)
            local = process.host == here
            running = self.alive(process.pid) if local else quiet < DEAD
            gone += not running
            state = "alive" if running and quiet < SILENT else "silent" if running else "known dead" if local else "presumed dead"
            rows.append(ProcessRow(str(process.pid), _sides(process), state, f"{quiet:.1f} s ago" if running else "", process.path))
        ended = bool(rows) and gone == len(rows)
        now = self.clock()
        begun = min((p.start for p in run.processes), default=None)
        until = now if not ended else written(self.folder) or now
        names = [name for name, _ in totals(run)]
        return HookFigures(
            counters=tuple(
                self._row(at, name) for at, name in enumerate(names) if self._totals and (self._totals[-1][at] or "call" in name)
            ),
            coupling_recent=self._ratios(names),
            processes=tuple(rows),
            versions=versions(run),
            handoff=handoff(run, now),
            series=tuple(self._series(at, name) for at, name in enumerate(names) if len(self._times) > 1 and self._totals[-1][at]),
            seconds=None if begun is None else max(0.0, until - begun),
            ended=ended,
            problems=run.problems,
        )

    def _remember(self, now: float, values: tuple[float, ...]) -> None:
        self._times.append(now)
        self._totals.append(values)
        if len(self._times) > KEPT:  # every second one of the older half goes; the newest are whole
            half = KEPT // 2
            self._times[:half], self._totals[:half] = self._times[:half:2], self._totals[:half:2]

    def _row(self, at: int, name: str) -> CounterRow:
        total, end = self._totals[-1][at], self._times[-1]
        start = next((i for i, t in enumerate(self._times) if t >= end - WINDOW), 0)
        values = [row[at] for row in self._totals[start:]]
        span = end - self._times[start]
        rate = (values[-1] - values[0]) / span if span >= 1 else None
        steps = [b - a for a, b in pairwise(values)]
        return CounterRow(name, total, "", rate, tuple(steps[-120:]))

    def _ratios(self, names: list[str]) -> tuple[float, ...]:
        samples, updates = names.index("sample calls"), names.index("update calls")
        recent = self._totals[-61:]
        steps = [(b[samples] - a[samples], b[updates] - a[updates]) for a, b in pairwise(recent)]
        return tuple(s / u if u else 0.0 for s, u in steps)

    def _series(self, at: int, name: str) -> SeriesView:
        step = max(1, len(self._times) // 2000)
        begin = self._times[0]
        return SeriesView(name, "", tuple(t - begin for t in self._times[::step]), tuple(row[at] for row in self._totals[::step]))


def totals(run: HookedRun) -> tuple[tuple[str, float], ...]:
    """The counters of all processes, summed."""
    ledger = (("sampled", run.total("sampled")), ("consumed", run.total("taken") or run.total("drawn")))
    calls = (("sample calls", run.calls("S")), ("update calls", run.calls("T")), ("optimizer steps", run.total("optimizer_steps")))
    return tuple((name, float(value)) for name, value in (*ledger, *calls))


def versions(run: HookedRun) -> tuple[tuple[str, str], ...]:
    """The newest version published and loaded, where the program tells them."""
    out = []
    for side, cell in (("trainer", "published"), ("sampler", "loaded")):
        known = [p.cells.get(f"{cell}_version", -1) for p in run.processes if p.cells.get(cell)]
        if known:
            out.append((side, str(max(known))))
    return tuple(out)


def handoff(run: HookedRun, now: float) -> tuple[tuple[str, str], ...]:
    """Publication and loading of weights."""
    rows = []
    for name, cell, kind in (("published", "published", "publish"), ("loaded", "loaded", "loaded")):
        if count := run.total(cell):
            last = max([e.at for e in run.of(kind)], default=0.0)
            rows.append((name, f"{count:,} times" + (f", {max(0.0, now - last):.0f} s ago" if last and now - last < 1e6 else "")))
    for name, cell in (("weight loads", "load_calls"), ("backward passes", "backward_calls"), ("scheduler steps", "scheduler_calls")):
        if count := run.total(cell):
            rows.append((name, f"{count:,}"))
    if lost := run.total("events_lost"):
        rows.append(("events lost", f"{lost:,} (counters are exact)"))
    return tuple(rows)


def written(folder: Path) -> float:
    """When anything in the folder was last written, in seconds since the epoch; 0 when it is gone."""
    try:
        with os.scandir(folder) as entries:
            return max((entry.stat().st_mtime for entry in entries), default=0.0)
    except OSError:
        return 0.0


def joined(first: Snapshot, second: Snapshot) -> Snapshot:
    """Two snapshots of one run, the second of which began its orders at `AFTER`."""
    seen: dict[tuple[str, int, str], ProcessSeen] = {}
    for process in (*first.processes, *second.processes):
        name = (process.host, process.pid, "" if process.pid else process.path)
        seen[name] = _same(seen[name], process) if name in seen else process
    times = [t for t in (first.first_time, second.first_time) if t is not None]
    ends = [t for t in (first.last_time, second.last_time) if t is not None]
    return Snapshot(
        series=(*first.series, *second.series),
        marks=(*first.marks, *second.marks),
        processes=tuple(seen.values()),
        files=second.files,
        readings=first.readings + second.readings - AFTER,
        suppressed=second.suppressed,
        suppressed_at=second.suppressed_at,
        first_time=min(times, default=None),
        last_time=max(ends, default=None),
        run_id=second.run_id,
        ordered=second.ordered,
    )


def _same(one: ProcessSeen, later: ProcessSeen) -> ProcessSeen:
    begins = [t for t in (one.first_time, later.first_time) if t is not None]
    ends = [t for t in (one.last_time, later.last_time) if t is not None]
    return replace(
        one,
        sides=tuple(sorted({*one.sides, *later.sides})),
        readings=one.readings + later.readings,
        first_time=min(begins, default=None),
        last_time=max(ends, default=None),
    )


def _sides(process: ProcessCounts) -> str:
    both = [side for letter, side in (("S", "sampling"), ("T", "training")) if process.calls(letter)]
    return "both" if len(both) == 2 else both[0] if both else "-"
