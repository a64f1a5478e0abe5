"""The feed of the screen and of its screenless forms: follow, tally, judge, one `View` a poll. No Textual, no writing.

The same engine as `gyrecheck ledger`: readings go through the same formats into the same tally and the same `judge`.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from gyrecheck.model.events import Reading
from gyrecheck.model.finding import State, Verdict
from gyrecheck.model.folder import FolderBalance
from gyrecheck.model.snapshot import FileSeen, Snapshot
from gyrecheck.model.visible import visible
from gyrecheck.rulebook.codes import Code
from gyrecheck.screen.build import Circumstances, build_view
from gyrecheck.screen.hooked import AFTER, HookedLook, HookJudge
from gyrecheck.screen.log_lines import LogLines
from gyrecheck.screen.places import alive, handoff_rows, not_begun
from gyrecheck.screen.sampled_file import Rows, SampledFile
from gyrecheck.screen.view import RunState, View
from gyrecheck.stream.follow import Follower
from gyrecheck.stream.follow_file import Change
from gyrecheck.stream.follow_pipe import FollowedPipe
from gyrecheck.stream.logs import Ask, OpenLog
from gyrecheck.stream.run_folder import is_run_folder, read_run_folder
from gyrecheck.stream.shard_follow import OUTPUTS, is_hooked
from gyrecheck.verdict.folder import with_folder
from gyrecheck.verdict.judge import Judgement, judge
from gyrecheck.verdict.tally import Tally

FOLDER_EVERY, FOLDER_SHARE = 0.5, 10.0
"""A run folder's files are read twice a second, or as seldom as makes it a tenth of the time; its log is read every poll."""
FINISHED = ("trainer_finished", "sampler_finished")


@dataclass(slots=True)
class RunFeed:
    """One run, followed. `targets` are logs, folders or patterns."""

    targets: tuple[str, ...]
    codes: dict[str, Code]
    ask: Ask = field(default_factory=Ask)
    topology: str = ""
    chosen: frozenset[str] | None = None
    max_age: float | None = None
    pid: int | None = None
    hook_judge: HookJudge | None = None
    """How a folder of counter shards is judged; without it such a folder is read for its logs alone."""
    tally: Tally = field(default_factory=Tally)
    snapshot: Snapshot = field(default_factory=Snapshot)
    judged: Judgement | None = None
    folder: FolderBalance | None = None
    folder_due: float = -1e9
    """When (monotonic) a run folder's files are read again."""
    _follower: Follower | None = None
    _lines: LogLines = field(init=False)
    _gaps: list[str] = field(default_factory=list)
    _last_data: float | None = None
    _started: float = field(default_factory=time.monotonic)
    _missing_since: float | None = None
    _seen_alive: set[int] = field(default_factory=set)
    _hook: HookedLook | None = None
    _found_topology: str = ""
    _sample: SampledFile | None = None

    def __post_init__(self) -> None:
        self._lines = LogLines(self.ask)

    def poll(self) -> View:
        """Read what is new and judge the run as far as it is known."""
        if self._hook is None and self.hook_judge is not None and len(self.targets) == 1 and is_hooked(Path(self.targets[0])):
            self._hook = HookedLook(Path(self.targets[0]), alive)
            self._start(Tally(AFTER))
        fresh: list[Reading] = []
        again = True
        while again:
            follower = self._follower = self._follower or self._follow()
            for item in follower.poll():
                if isinstance(item, Change):
                    self._changed(item)
                elif (found := self._lines.read(item)) is not None:
                    fresh += found
                else:
                    self._start(Tally(AFTER) if self._hook is not None else Tally())
                    fresh = []
                    break
            again = self._follower is None or (follower.behind and len(fresh) < 200_000)
        fresh += self._lines.last_line()
        if len({r.path for r in fresh}) > 1 and all(r.time is not None for r in fresh):
            fresh.sort(key=lambda r: r.time or 0.0)
        return self.show(fresh)

    def show(self, fresh: list[Reading]) -> View:
        """Count readings and give the picture of the run after them."""
        if fresh:
            self.tally.feed(fresh)
            self._last_data = time.monotonic()
        for log in self._lines.logs.values():
            self.tally.saw(self._note(log))
        self.tally.ordered = self._lines.ordered()
        looked = self._hook.poll() if self._hook is not None else self._look_at_folder()
        if looked and self._hook is not None:
            self._last_data = time.monotonic()
        if fresh or looked or self.judged is None:
            self.snapshot = self.tally.snapshot()
            self.judged = self._judge_hooked() if self._hook is not None else self._judge(self.topology)
            if self.folder is not None:
                self.judged = with_folder(self.judged, self.folder, self.codes, self.topology, self.chosen)
            if self._gaps:
                self.judged = replace(self.judged, verdicts=tuple(self._doubted(v) for v in self.judged.verdicts))
        return build_view(self.snapshot, self.judged, self._circumstances(), self.folder)

    def _judge(self, topology: str) -> Judgement:
        return judge(self.snapshot, self.codes, topology=topology, chosen=self.chosen, max_age=self.max_age)

    def _judge_hooked(self) -> Judgement:
        """The joined report of `run` as a judgement, over all that the shards and the output say now."""
        hook, judge_all = self._hook, self.hook_judge
        if hook is None or hook.run is None or judge_all is None:
            return Judgement((), (), (), (judged := judge(Snapshot(), self.codes, chosen=frozenset())).layout, judged.run)
        self.snapshot = hook.snapshot(self.snapshot)
        known: list[Judgement] = []

        def logs(topology: str) -> Judgement | None:
            known.append(judge(self.snapshot, self.codes, topology=topology, chosen=self.chosen))
            return known[-1] if self.snapshot.readings else None

        report = judge_all(hook.run, logs)
        self._found_topology = report.topology
        base = known[-1] if known else self._judge(report.topology)
        return replace(base, verdicts=report.verdicts, not_judged=report.not_judged)

    def _doubted(self, verdict: Verdict) -> Verdict:
        """Where lines may be missing, a balance of log lines can neither hold nor break for certain."""
        if verdict.code not in {"GYR507", "GYR510"} or verdict.state is State.UNDECIDED or self.folder is not None:
            return verdict
        message = f"{verdict.message}; but {self._gaps[0].partition(' ')[2]}"
        return replace(verdict, state=State.UNDECIDED, message=message, hint="rotate by rename, or read the run folder's own files")

    def close(self) -> None:
        """Stop following."""
        if self._follower is not None:
            self._follower.close()
        if self._hook is not None:
            self._hook.shards.close()

    def _follow(self) -> Follower:
        if self._hook is not None:
            return Follower(tuple(f"{self.targets[0]}/{name}" for name in OUTPUTS))
        if "-" not in self.targets:
            return Follower(self.targets)
        if self._lines.pipe is None:
            self._lines.pipe = FollowedPipe(sys.stdin.fileno())
        else:
            self._lines.pipe.rewind()
        return Follower(self.targets, {"-": self._lines.pipe})

    def _start(self, tally: Tally) -> None:
        """Read everything from its beginning again."""
        if self._follower is not None:
            self._follower.close()
        self._lines.forget()
        self.tally, self._follower = tally, None

    @property
    def ended(self) -> bool:
        """Every side says so itself, the process that was named is gone, or every process that was seen alive here is dead."""
        if (self.pid is not None and not alive(self.pid)) or (self._lines.pipe is not None and self._lines.pipe.ended):
            return True
        running = self._alive()
        if running and not any(running.values()) and len(running) == len(self.snapshot.processes):
            return True
        sides = {side for process in self.snapshot.processes for side in process.sides}
        said = {name.removesuffix("_finished") for name in FINISHED if self.snapshot.marked(name)}
        return bool(sides) and len(said) >= len(sides)

    def _alive(self) -> dict[int, bool]:
        """For pids that once ran on this host while we looked: whether they still do. Pids of other hosts say nothing."""
        running = {p.pid: alive(p.pid) for p in self.snapshot.processes if p.pid}
        self._seen_alive |= {pid for pid, runs in running.items() if runs}
        return {pid: runs for pid, runs in running.items() if pid in self._seen_alive}

    def _changed(self, change: Change) -> None:
        if change.kind == "gap":
            self._gaps.append(f"{change.path}:{change.line} {change.message}")
        if change.kind in {"truncated", "appeared"}:
            self.tally.feed([Reading(change.path, max(1, change.line), 0, change.message.encode(), (), ("restart",))])

    def _note(self, log: OpenLog) -> FileSeen:
        note = log.note()
        gaps = tuple(gap for gap in self._gaps if gap.startswith(log.log.path + ":"))
        return replace(note, notes=(*note.notes, *gaps))

    def _look_at_folder(self) -> bool:
        now = time.monotonic()
        if now < self.folder_due:
            return False
        place = next((Path(t) for t in self.targets if is_run_folder(Path(t))), None)
        if place is not None:
            self.folder = read_run_folder(place)
            self.tally.run_id = self.folder.run_id
        self.folder_due = time.monotonic() + max(FOLDER_EVERY, FOLDER_SHARE * (time.monotonic() - now))
        return place is not None

    def _circumstances(self) -> Circumstances:
        files = tuple(self._lines.logs)
        hook = self._hook.figures() if self._hook is not None else None
        missing = [t for t in self.targets if t != "-" and not Path(t).exists()]
        begun = bool(self.snapshot.series) or (hook is not None and any(row.total for row in hook.counters))
        state: RunState = "live" if begun else "waiting"
        age = None if self._last_data is None else time.monotonic() - self._last_data
        note = " + ".join(self.targets)
        if begun and (self.ended or (hook is not None and hook.ended)):
            state = "ended"
        elif begun and missing and len(missing) == len(self.targets):
            state = "disconnected"
            self._missing_since = self._missing_since or time.monotonic()
            note = f"disconnected {time.monotonic() - self._missing_since:.0f} s ago, last figures kept"
        elif age is not None and age > 30:
            state, note = "silent", f"no line for {age:.0f} s"
        run = visible(self.snapshot.run_id or Path(self.targets[0]).name)
        return Circumstances(
            run=run,
            topology=self.topology or self._found_topology,
            state=state,
            note=note,
            now=time.time() if state != "ended" else None,
            age=age,
            files=files,
            gaps=tuple(self._gaps),
            unknown_lines=tuple(self._lines.unknown),
            not_understood=self._lines.not_understood,
            waiting_for=() if begun else not_begun(self.targets, len(self._lines.logs)),
            command="gyrecheck watch --once " + " ".join(self.targets),
            alive=self._alive(),
            handoff=(*handoff_rows(self.targets, self.snapshot, self.folder, live=state != "ended"), *self._sampled()),
            hook=hook,
        )

    def _sampled(self) -> Rows:
        """The field contract of the newest trajectory file, where a run folder has any."""
        place = next((Path(t) for t in self.targets if is_run_folder(Path(t))), None)
        if place is None:
            return ()
        if self._sample is None:
            self._sample = SampledFile(self.codes, self.chosen, self.ask.extra)
        return self._sample.look(place)
