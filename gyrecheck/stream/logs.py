"""Logs of one run, read together: each through its own format, in one order where all of them tell the time."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path

from gyrecheck.model.events import Reading, Unit
from gyrecheck.model.rows import Batch
from gyrecheck.model.snapshot import FileSeen
from gyrecheck.rulebook.log_formats import LogFormat
from gyrecheck.stream.formats import Chosen, best_format, choose
from gyrecheck.stream.open_log import LogFile, range_of
from gyrecheck.stream.reader import FormatReader
from gyrecheck.stream.scan import Scan, Seen
from gyrecheck.stream.strip import side_of

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Ask:
    """What the user said about the logs."""

    format: str = ""
    mapping: tuple[tuple[str, str], ...] = ()
    unit: Unit | None = None
    since: float | None = None
    until: float | None = None
    extra: Path | None = None

    @property
    def cut(self) -> bool:
        """Whether only a part of the time is wanted."""
        return self.since is not None or self.until is not None


@dataclass(slots=True)
class OpenLog:
    """One log under way."""

    log: LogFile
    chosen: Chosen
    scan: Scan
    readings: int = 0
    timed: bool = True

    def note(self) -> FileSeen:
        """What became of it, once it is read."""
        seen, form = self.scan.seen, self.chosen.form
        notes = []
        if seen.nul_bytes:
            notes.append(
                f"{seen.nul_bytes:,} NUL bytes passed over, the first in line {seen.nul_at} (a log truncated under "
                "its writer; lines may be missing there)"
            )
        notes += [f"line {line} is longer than 8 MiB and was passed over" for line in seen.too_long]
        if seen.cut_last_line:
            notes.append(f"line {seen.lines} has no line end: its numbers may be cut and were not counted")
        side = self.scan.reader.side or side_of(Path(self.log.path).name.encode("utf-8", "surrogateescape"))
        return FileSeen(
            self.log.path, self.chosen.name, seen.lines, self.readings, seen.size, side,
            form.mode if form else "auto", dict(form.lacks) if form else {}, form.tolerance if form else 0.0,
            form.tolerance_of if form else (), form.lag.unit if form else "version", form.lag.drops_when if form else ">",
            tuple(notes), form.unit if form else Unit.SAMPLE, form.gives if form else (),
        )  # fmt: skip


def open_log(log: LogFile, ask: Ask) -> OpenLog:
    """Choose the format of a log and make it ready.

    Raises:
        GyreError: unknown format or term, or the log cannot be read.
    """
    chosen = choose(log, forced=ask.format, extra=ask.extra)
    reader = FormatReader(chosen.form, mapping=ask.mapping, unit=ask.unit, extra=ask.extra, whole_last_line=log.text is not None)
    return OpenLog(log, chosen, Scan(log.path, reader))


def read_logs(logs: Iterable[OpenLog], ask: Ask, progress: Progress | None = None) -> tuple[Iterator[list[Reading]], list[bool]]:
    """Batches of readings of all logs, and a one-element list that says, once they are through, whether their order is one.

    Several logs are merged by time; a log without times is read whole, one after the other, and the order is then not one.
    """
    opened = list(logs)
    ordered = [True]
    if len(opened) == 1:
        return _one(opened[0], ask, progress), ordered
    return _several(opened, ask, progress, ordered), ordered


def read_batches(log: OpenLog, progress: Progress | None = None) -> Iterator[Batch]:
    """All readings of one log, as columns wherever its lines' shapes are known."""
    for batch in log.scan.batches(_counted(log.chosen.blocks, progress)):
        log.readings += batch.count
        yield batch


def part_of(log: OpenLog, ask: Ask, span: tuple[int, int], first_line: int) -> OpenLog:
    """The bytes of a plain file from one line's start to another's, as a log of their own with the whole file's line numbers."""
    reader = FormatReader(log.chosen.form, mapping=ask.mapping, unit=ask.unit, extra=ask.extra)
    chosen = replace(log.chosen, blocks=range_of(log.log, *span))
    return OpenLog(log.log, chosen, Scan(log.log.path, reader, first_line=first_line, offset=span[0]))


def joined(parts: Sequence[OpenLog]) -> tuple[Seen, int]:
    """What was seen of a log's parts, and how many readings they gave, as of one log."""
    seen = parts[-1].scan.seen
    for part in reversed(parts[:-1]):
        seen = part.scan.seen.followed_by(seen)
    return seen, sum(part.readings for part in parts)


def _one(log: OpenLog, ask: Ask, progress: Progress | None) -> Iterator[list[Reading]]:
    for batch in log.scan.read(_counted(log.chosen.blocks, progress)):
        kept = [r for r in batch if _within(r, ask)] if ask.cut else batch
        log.readings += len(kept)
        yield kept


def _several(opened: list[OpenLog], ask: Ask, progress: Progress | None, ordered: list[bool]) -> Iterator[list[Reading]]:
    streams = [_timed(which, log, ask, progress) for which, log in enumerate(opened)]
    batch: list[Reading] = []
    for _, _, _, reading in heapq.merge(*streams, key=itemgetter(0, 1, 2)):
        batch.append(reading)
        if len(batch) >= 4096:
            yield batch
            batch = []
    if batch:
        yield batch
    rotated = len({_stem(log.log.path) for log in opened}) == 1
    ordered[0] = rotated or all(log.timed or not log.readings for log in opened)


def _timed(which: int, log: OpenLog, ask: Ask, progress: Progress | None) -> Iterator[tuple[float, int, int, Reading]]:
    """Readings with a key that never falls: their time, or the last time known."""
    now, at, with_time = float("-inf"), 0, 0
    for batch in _one(log, ask, progress):
        for reading in batch:
            if reading.time is not None:
                with_time += 1
                now = max(now, reading.time)
            at += 1
            yield now, which, at, reading
    log.timed = with_time * 2 >= at


def _within(reading: Reading, ask: Ask) -> bool:
    if reading.time is None:
        return True
    return (ask.since is None or reading.time >= ask.since) and (ask.until is None or reading.time <= ask.until)


def _counted(blocks: Iterable[bytes], progress: Progress | None) -> Iterator[bytes]:
    for block in blocks:
        if progress is not None:
            progress(len(block))
        yield block


def _stem(path: str) -> str:
    name = Path(path)
    while name.suffix.lstrip(".").isdigit() or name.suffix in {".gz", ".zst", ".xz", ".bz2"}:
        name = name.with_suffix("")
    return str(name)


def read_sample(text: str, form: LogFormat | None, name: str = "sample.log") -> list[Reading]:
    """A sample's readings."""
    reader = FormatReader(form, whole_last_line=True)
    return [r for batch in Scan(name, reader).read([text.encode()]) for r in batch]


def format_failures(form: LogFormat, formats: dict[str, LogFormat]) -> tuple[str, ...]:
    """Why a format does not prove itself: each sample must be taken for it (a silent one must not) and give exactly its events."""
    failures = []
    for number, sample in enumerate(form.samples, 1):
        text = sample.text.removeprefix("\n")
        best, hits, _ = best_format(text.encode(), formats)
        taken = best is not None and best.name == form.name and hits >= form.min_hits
        if taken == sample.silent:
            failures.append(
                f"sample {number} is {'taken' if taken else 'not taken'} for {form.name} (best: "
                f"{best.name if best else 'none'}, {hits} lines)"
            )
        if sample.silent:
            continue
        got: list[str] = []
        for reading in read_sample(text, form):
            got += [f"{reading.line} {key.term} {value:.12g}" for key, value in reading.values]
            got += [f"{reading.line} mark {name}" for name in reading.marks]
        wanted = [_plain(event) for event in sample.events]
        if got != wanted:
            lost = [e for e in wanted if e not in got]
            extra = [e for e in got if e not in wanted]
            failures.append(f"sample {number} gives {got if not (lost or extra) else ''} missing {lost} beside {extra}")
    return tuple(failures)


def _plain(event: str) -> str:
    """An expected event with its number in one spelling."""
    head, _, value = event.rpartition(" ")
    try:
        return f"{head} {float(value):.12g}"
    except ValueError:
        return event
