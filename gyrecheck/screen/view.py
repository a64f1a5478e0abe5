"""What the screen shows at one moment, as plain values: every panel draws from a `View` and from nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from gyrecheck.model.finding import State, Step, Verdict

RunState = Literal["waiting", "live", "paused", "ended", "silent", "disconnected", "replay"]


@dataclass(frozen=True, slots=True)
class CounterRow:
    """One counter: its exact total, its rate over the last minute (none without times), and its recent increments, oldest first."""

    name: str
    total: float
    unit: str = ""
    per_second: float | None = None
    recent: tuple[float, ...] = ()
    first: str = ""
    last: str = ""


@dataclass(frozen=True, slots=True)
class BalanceRow:
    """One term of the conservation sum; `value` is None where the log has no such count."""

    name: str
    value: float | None
    share: float | None = None
    level: int = 1
    """0 for `sampled` and `residual`, 1 for the sinks between."""


@dataclass(frozen=True, slots=True)
class AgeRow:
    """How often a trajectory of this age (policy versions) was used."""

    age: float
    share: float
    over: bool = False


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """One process of the run. `state`: alive, silent, presumed dead, known dead, ended."""

    pid: str
    side: str
    state: str
    last: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class SeriesView:
    """A thinned history for the plot: seconds since the start (or reading numbers) and values."""

    name: str
    unit: str
    at: tuple[float, ...]
    values: tuple[float, ...]
    breach_at: float | None = None


@dataclass(frozen=True, slots=True)
class View:
    """One picture. `age` is seconds since the last line was read; `moment` its place in the history, `seconds` the run's length."""

    run: str = ""
    topology: str = ""
    state: RunState = "waiting"
    note: str = ""
    seconds: float | None = None
    age: float | None = None
    counters: tuple[CounterRow, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    coupling: tuple[tuple[str, str], ...] = ()
    coupling_state: str = ""
    coupling_recent: tuple[float, ...] = ()
    balance: tuple[BalanceRow, ...] = ()
    balance_unit: str = ""
    balance_state: str = ""
    ages: tuple[AgeRow, ...] = ()
    ages_note: tuple[str, ...] = ()
    handoff: tuple[tuple[str, str], ...] = ()
    ladder: tuple[Step, ...] = ()
    ladder_note: str = ""
    processes: tuple[ProcessRow, ...] = ()
    processes_note: str = ""
    verdicts: tuple[Verdict, ...] = ()
    not_judged: tuple[str, ...] = ()
    waiting_for: tuple[str, ...] = ()
    """While nothing was counted yet: what is watched, what is expected, what to do otherwise."""
    files: tuple[str, ...] = ()
    lines: int = 0
    not_understood: int = 0
    unknown_lines: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    series: tuple[SeriesView, ...] = field(default=(), repr=False)
    command: str = ""
    """The command that reproduces this view."""

    @property
    def nothing(self) -> str:
        """What a panel says that has nothing to show."""
        return "nothing yet" if self.state == "waiting" else "not logged"

    @property
    def broken(self) -> tuple[Verdict, ...]:
        """Verdicts that do not hold, gravest first."""
        return tuple(sorted((v for v in self.verdicts if v.state is State.BROKEN), key=lambda v: -v.severity.rank))

    @property
    def open_questions(self) -> tuple[Verdict, ...]:
        """Verdicts that are undecided."""
        return tuple(v for v in self.verdicts if v.state is State.UNDECIDED)

    @property
    def fine(self) -> tuple[Verdict, ...]:
        """Verdicts that hold."""
        return tuple(v for v in self.verdicts if v.state is State.HOLDS)
