"""Reads what a hooked run left: counter shards and event lines, after any kind of death. A bad file is named and left out, never fatal."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path

from gyrecheck.model import shard_layout as layout
from gyrecheck.model.events import Event, Source, Unit
from gyrecheck.model.live import HookedRun, HookEvent, ProcessCounts, SiteCount

PROCESSES = "processes.jsonl"
_PATIENCE = 50
"""Readings of the ledger cells before a writer that never finishes its set (killed in between) is read as it stands."""


def read_run(folder: Path) -> HookedRun | None:
    """The hooked run in `folder`; None when nothing there was written by the hook.

    Half-written shards (`.partial`) are no shards: the process that was making one had not counted yet.
    """
    shards = sorted(folder.glob(f"*{layout.SUFFIX}"))
    signed = folder / PROCESSES
    if not shards and not signed.exists():
        return None
    processes: list[ProcessCounts] = []
    problems: list[str] = []
    for path in shards:
        try:
            processes.append(read_shard(path))
        except (OSError, ValueError) as error:  # noqa: PERF203 - one bad file must not cost the others
            problems.append(f"{path.name}: {error}")
    events: list[HookEvent] = []
    pids = {Path(p.path).name.removesuffix(layout.SUFFIX): p.pid for p in processes}
    for path in sorted(folder.glob(f"*{layout.EVENTS_SUFFIX}")):
        events += read_events(path, pids.get(path.name.removesuffix(layout.EVENTS_SUFFIX), 0), problems)
    reached = tuple(int(e.number("pid")) for e in read_events(signed, 0, problems)) if signed.exists() else ()
    return HookedRun(
        str(folder),
        tuple(sorted(processes, key=lambda p: (p.start, p.pid))),
        tuple(sorted(events, key=lambda e: (e.at, e.path, e.line))),
        reached,
        tuple(problems),
    )


def read_shard(path: Path) -> ProcessCounts:
    """One shard.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no shard, or of a layout this version does not know.
    """
    raw = path.read_bytes()
    if len(raw) < layout.SIZE or raw[: len(layout.MAGIC)] != layout.MAGIC:
        raise ValueError("is no counter shard (wrong size or first bytes)")
    _, version, cells, pid, parent, start, run_id, host, _, line, python = layout.HEADER.unpack_from(raw)
    if version != layout.LAYOUT:
        raise ValueError(f"has layout {version}, expected {layout.LAYOUT}")
    for _ in range(_PATIENCE):  # a set of ledger totals is being written when its sequence is odd
        values = _cells(raw, min(cells, len(layout.CELLS)))
        if not values["sequence"] % 2:
            break
        time.sleep(0.001)
        raw = path.read_bytes()
    return ProcessCounts(
        str(path), pid, parent, _text(host), _text(run_id), _text(line), _text(python), start / 1e9, values, tuple(_sites(raw))
    )


def read_events(path: Path, pid: int, problems: list[str]) -> list[HookEvent]:
    """The event lines of one process; a last line without its newline was cut by death and is left out."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        problems.append(f"{path.name}: {error.strerror or error}")
        return []
    return event_lines(raw[: raw.rfind(b"\n") + 1], 1, pid, str(path), problems)


def event_lines(data: bytes, first: int, pid: int, path: str, problems: list[str]) -> list[HookEvent]:
    """The events of whole lines, the first of which has the number `first`; a line that is none is a problem."""
    found = []
    for number, text in enumerate(data.split(b"\n")[:-1], first):
        try:
            fields = json.loads(text)
            kind = str(fields.pop("k", ""))
            found.append(HookEvent(kind, float(fields.pop("at", 0.0)), pid, path, number, fields))
        except (ValueError, AttributeError, TypeError):  # noqa: PERF203 - the same for lines
            problems.append(f"{Path(path).name}:{number}: is no event line")
    return found


def events_of(run: HookedRun) -> Iterable[Event]:
    """The run's counters as the events that every log gives: running totals at the moment of reading, and versions in time.

    Ledger totals of a process that told a fall of one are left out: what they add up to is not known.
    """
    marked = bool(run.calls("S", marked=True))
    fallen = {event.path.removesuffix(layout.EVENTS_SUFFIX) for event in run.of("total_fell")}
    for process in run.processes:
        source = Source(process.path)
        common = {"cumulative": True, "pid": process.pid, "host": process.host, "run_id": process.run_id, "source": source}
        if process.cells.get("ledger_calls") and process.path.removesuffix(layout.SUFFIX) not in fallen:
            for term in layout.LEDGER:
                value = process.cells.get(term, 0)
                if value or term not in {"drawn", "dropped_other", "in_flight"}:
                    yield Event(term, value, Unit.SAMPLE, **common)  # type: ignore[arg-type]
        for letter, kind, side in (("S", "sample_call", "sampling"), ("T", "update_call", "training")):
            calls = process.calls(letter) if letter == "T" or not marked or process.calls("S", marked=True) else 0
            if calls:
                yield Event(kind, calls, Unit.CALL, side=side, **common)  # type: ignore[arg-type]
    for event in run.of("publish", "loaded"):
        kind = "published" if event.kind == "publish" else "loaded"
        side = "training" if kind == "published" else "sampling"
        version = event.number("version")
        yield Event(kind, version, Unit.CALL, side=side, pid=event.pid, wall_clock=event.at, source=Source(event.path, event.line))


def _cells(raw: bytes, count: int) -> dict[str, int]:
    values = memoryview(raw)[layout.CELLS_AT : layout.CELLS_AT + 8 * layout.CELL_ROOM].cast("q")
    return dict(zip(layout.CELLS, values[:count], strict=False))


def _sites(raw: bytes) -> Iterable[SiteCount]:
    for place in range(layout.SITE_ROOM):
        calls, name = layout.SITE.unpack_from(raw, layout.SITES_AT + layout.SITE.size * place)
        words = _text(name).split(" ", 3)
        if calls and len(words) == 4:
            yield SiteCount(words[1], words[2], words[3], words[0] == "E", calls)


def _text(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace")
