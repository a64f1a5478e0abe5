"""What one process knows while it is hooked: its shard, its event file, its counted entries, and who wants to look at the next call.

Opened on first use, renewed in a child after fork. No thread, no lock, nothing raised.
"""

from __future__ import annotations

import os
import sys

from gyrecheck.hook.buffers import Buffers
from gyrecheck.hook.events import EventFile
from gyrecheck.hook.shard import Shard
from gyrecheck.hook.side import place
from gyrecheck.hook.turns import Turns

TYPE_CHECKING = False  # importing `typing` costs more than this package; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Any

    from gyrecheck.hook.shard import Cell

    Table = dict[str, list[dict[str, str]]]

FOLDER = "GYRECHECK_RUN_DIR"
RUN_ID = "GYRECHECK_RUN_ID"
TABLE = "hooks.json"
"""The compiled table of names, written by the launcher into the run folder."""
MARKED = "marked"


class Entry:
    """One counted function, class or scope: its cell, and the count at which the slow path looks again."""

    __slots__ = ("below", "caller", "cell", "label", "line", "look", "n", "name", "nested", "role", "runtime", "site", "steps", "thin")

    def __init__(self, runtime: Runtime, letter: str, role: str, label: str, cell: Cell | Shared) -> None:
        self.runtime, self.role, self.label, self.cell = runtime, role, label, cell
        self.name = (letter, role, label)
        self.n = 0
        """Calls in this process: what the cell holds, kept here because reading it there costs more."""
        self.look = 0
        self.thin = 0
        self.caller: CodeType | None = None
        """What made the newest call looked at, at which line, and what called that; and the cell of this place."""
        self.line = 0
        self.below: CodeType | None = None
        self.site: Any = None
        self.steps: list[tuple[Any, Any]] = []
        """Wrappers and functions of env steps, which may lie within another counted step."""
        self.nested = False
        """Whether one was seen to."""

    def __reduce__(self) -> tuple[object, ...]:
        """The entry of the same name in the process that unpickles it."""
        return (entry_again, self.name)


class Shared:
    """The cell of an entry for which the shard has no place left: it adds what is new to one that several share."""

    __slots__ = ("cell", "name", "told")

    def __init__(self, cell: Cell, name: tuple[str, str, str]) -> None:
        self.cell, self.name, self.told = cell, name, 0

    def __setitem__(self, place: int, n: int) -> None:
        self.cell[place] += n - self.told
        self.told = n

    def __reduce__(self) -> tuple[object, ...]:
        """That of the same entry in the process that unpickles it."""
        return (cell_of_entry, self.name)


class Runtime:
    """The hooked process. `due` is empty unless something rare wants to look at the next sampling call."""

    def __init__(self, folder: str, run_id: str) -> None:
        self.shard = Shard(folder, run_id)
        self.cells = self.shard.cells
        self.events = EventFile(self.shard)
        self.due: list[str] = []
        """Words for the slow path of a sampling call: `phase` (first calls after an update), `update` (one is open), `log`."""
        self.watchers: dict[str, Callable[[tuple[object, ...]], None]] = {}
        """What to call for a word of `due` before a sampling call; gets the call's positional arguments."""
        self.again: Callable[[], None] = lambda: None
        """Called at the first, second, fourth ... sampling call of an entry, and at every `THIN`-th later on."""
        self.sampling_codes: set[int] = set()
        """`id` of the code objects of counted sampling functions: comparing identities is cheap, hashing code is not."""
        self.step_codes: set[int] = set()
        """The same for env steps and their wrappers only."""
        self.places: dict[tuple[str, int, int, str], tuple[Cell, CodeType]] = {}
        """Cells of call sites by side, code object (kept, so that its identity stays its own), line and role."""
        self.update_codes: set[int] = set()
        self.libraries: tuple[str, ...] = ()
        """Parts of paths whose frames are not shown to a person."""
        self.fetches = False
        """Whether `update_codes` holds functions that fetch training batches, whose frames are looked for in each phase."""
        self.entries: dict[str, dict[str, Entry]] = {"S": {}, "T": {}}
        self.marked = False
        """The program marks its training side: a step may lie in an open scope."""
        self.active: list[Entry] = []
        """Sampling entries that have been called; all others take the slow path at their first call anyway."""
        self.buffers = Buffers(self)
        self.turns = Turns(self)
        self.seen = {"marked": 0, "hooked": 0}
        """Sample calls at the update before, for marked and for hooked updates."""
        self.pid = os.getpid()
        self.renewers: list[Callable[[], None]] = []

    def __reduce__(self) -> tuple[object, ...]:
        """The runtime of the process that unpickles it."""
        return (current, ())

    def renew(self) -> None:
        """In a child after fork."""
        try:
            self.pid = os.getpid()
            self.shard.renew()
            self.events.renew()
            self.seen = dict.fromkeys(self.seen, 0)
            self.active.clear()
            self.turns = Turns(self, self.turns.words)
            for side in self.entries.values():
                for entry in side.values():
                    entry.thin = entry.look = entry.n = 0
                    if isinstance(entry.cell, Shared):
                        entry.cell.told = 0
            for renew in self.renewers:
                renew()
        except Exception:
            pass

    def entry(self, letter: str, role: str, label: str) -> Entry:
        """The counted entry of side `S` or `T`; it counts into a shared overflow cell when the shard has no place left."""
        known = self.entries[letter].get(f"{role} {label}")
        if known is None:
            self.marked |= letter == "T" and role == MARKED
            cell: Cell | Shared | None = self.shard.place_for(f"E {letter} {role} {label}")
            if cell is None:
                cell = Shared(self.cells["sample_calls" if letter == "S" else "update_calls"], (letter, role, label))
            known = self.entries[letter][f"{role} {label}"] = Entry(self, letter, role, label, cell)
        return known

    def called_from(self, letter: str, frame: FrameType | None, role: str) -> Cell:
        """The cell of the place that made a call of side `S` or `T`."""
        if frame is None:
            return self.shard.site(f"C {letter} {role} ?")
        key = (letter, id(frame.f_code), frame.f_lineno, role)
        known = self.places.get(key)
        if known is None:
            known = self.places[key] = (self.shard.site(f"C {letter} {role} {place(frame)}"), frame.f_code)
        return known[0]

    @property
    def samples(self) -> int:
        """Sample calls of this process."""
        return sum([entry.n for entry in tuple(self.active)])

    def nested(self, skip: int = 2) -> bool:
        """Whether the counted env step that asks was called by another one, or by a function that one calls."""
        frame: Any = sys._getframe(skip)
        below = frame.f_back
        return id(frame.f_code) in self.step_codes or (below is not None and id(below.f_code) in self.step_codes)

    def turn(self, role: str) -> None:
        """Before an update: note whether any sample call lies between it and the update before."""
        kind = "marked" if role == MARKED else "hooked"
        samples = self.samples
        if samples != self.seen[kind]:
            self.seen[kind] = samples
            self.cells[f"turns_{kind}"][0] += 1

    def want(self, word: str) -> None:
        """Have the next sampling calls take the slow path for `word`."""
        if self.due:  # then every next call is looked at already
            if word not in self.due:
                self.due.append(word)
            return
        self.due.append(word)
        self.look_again()

    def look_again(self) -> None:
        """The next call of each sampling entry takes the slow path."""
        for entry in tuple(self.active):
            entry.look = 0

    def unwant(self, word: str) -> None:
        """No longer."""
        if word in self.due:
            self.due.remove(word)


_CURRENT: list[Runtime] = []


def current() -> Runtime:
    """This process's runtime, opened now if need be; with no run folder in the environment it counts in memory."""
    return _CURRENT[0] if _CURRENT else open_in(os.environ.get(FOLDER, ""), os.environ.get(RUN_ID, ""))


def open_in(folder: str, run_id: str) -> Runtime:
    """Open the runtime on a run folder, once a process; a folder that cannot be written is said in one line on stderr."""
    if _CURRENT:
        return _CURRENT[0]
    runtime = Runtime(folder, run_id)
    _CURRENT.append(runtime)
    if runtime.shard.problem:
        complain(f"counts of pid {runtime.pid} are not recorded: {runtime.shard.problem}")
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=runtime.renew)
    return runtime


def cell_again(name: str = "") -> Cell | Shared:
    """The cell of a name in this process."""
    runtime = current()
    if name in runtime.cells:
        return runtime.cells[name]
    kind, letter, role, label = name.split(" ", 3)
    return runtime.entry(letter, role, label).cell if kind == "E" else runtime.shard.site(name)


def entry_again(letter: str, role: str, label: str) -> Entry:
    """The entry of a name in this process."""
    return current().entry(letter, role, label)


def cell_of_entry(letter: str, role: str, label: str) -> Cell | Shared:
    """The cell of an entry in this process."""
    return current().entry(letter, role, label).cell


def complain(sentence: str) -> None:
    """One line on stderr, never an exception."""
    try:
        sys.stderr.write(f"gyrecheck: {sentence}\n")
    except Exception:
        pass


def load_table(folder: str) -> Table:
    """The compiled table of names in the run folder; empty when there is none."""
    import json

    try:
        with open(os.path.join(folder, TABLE), encoding="utf-8") as file:
            table = json.load(file)
    except Exception:
        return {}
    return table if isinstance(table, dict) else {}
