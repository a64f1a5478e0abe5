"""The ledger's work: find the logs, read them, judge them, write what was asked for beside the report."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gyrecheck.commands.ledger_parts import processes_for, tally_in_parts
from gyrecheck.commands.ledger_refusals import is_binary, nothing_read, refuse_unused, unused_left
from gyrecheck.commands.ledger_report import report_of
from gyrecheck.commands.streams import write_stderr
from gyrecheck.model.errors import GyreError
from gyrecheck.model.events import Reading, Unit
from gyrecheck.model.finding import Report
from gyrecheck.model.snapshot import Snapshot
from gyrecheck.model.whole_file import exists_as_file
from gyrecheck.rulebook.codes import Code
from gyrecheck.stream.logs import Ask, OpenLog, open_log, read_batches, read_logs
from gyrecheck.stream.open_log import LogFile, find_logs
from gyrecheck.verdict.judge import Judgement, judge
from gyrecheck.verdict.tally import Tally

if TYPE_CHECKING:
    from gyrecheck.report.figure import Plot

COLUMNS_FROM = 1 << 18
"""Bytes from which reading in columns is worth the start of the array library."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line asked for."""

    paths: tuple[str, ...]
    format: str = ""
    mapping: tuple[tuple[str, str], ...] = ()
    unit: Unit | None = None
    left: float | None = None
    max_age: float | None = None
    age_unit: str = "version"
    since: float | None = None
    until: float | None = None
    topology: str = ""
    chosen: frozenset[str] | None = None
    extra: Path | None = None
    explain: bool = False
    per_step: bool = False
    quiet: bool = True
    verbose: int = 0
    figure: Path | None = None
    html: Path | None = None
    columns: Path | None = None
    force: bool = False
    beside: tuple[str, ...] = ()
    """The other run, where two are compared."""

    @property
    def ask(self) -> Ask:
        """How to read."""
        return Ask(self.format, self.mapping, self.unit, self.since, self.until, self.extra)


def ledger_of(request: Request, codes: dict[str, Code]) -> Report:
    """The report on one run.

    Raises:
        GyreError: no log, an unreadable one, or none that says anything the ledger knows.
    """
    judged, snapshot, partial = judge_paths(request, codes)
    judged = _texts(judged, request)
    report = report_of(
        judged,
        snapshot,
        request.paths,
        topology=request.topology,
        reason="declared" if request.topology else "",
        explain=request.explain,
        per_step=request.per_step,
    )
    if partial:
        from dataclasses import replace

        report = replace(report, partial=True)
    _beside(request, judged, report)
    return report


def compared(request: Request, codes: dict[str, Code]) -> Report:
    """The report on two runs, side by side.

    Raises:
        GyreError: not exactly two logs or folders were given.
    """
    from dataclasses import replace

    from gyrecheck.commands.ledger_compare import compare_report

    if len(request.paths) != 2:
        raise GyreError(
            f"--compare sets two runs side by side, {len(request.paths)} were given", hint="gyrecheck ledger --compare a.log b.log"
        )
    ones = [replace(request, paths=(path,), beside=(other,)) for path, other in (request.paths, request.paths[::-1])]
    sides = [judge_paths(one, codes) for one in ones]
    return compare_report(request, codes, [(_texts(judged, one), snapshot) for one, (judged, snapshot, _) in zip(ones, sides, strict=True)])


def _texts(judged: Judgement, request: Request) -> Judgement:
    from dataclasses import replace

    from gyrecheck.commands.ledger_text import with_texts

    return replace(judged, verdicts=with_texts(judged.verdicts, find_logs(request.paths)))


def judge_paths(request: Request, codes: dict[str, Code]) -> tuple[Judgement, Snapshot, bool]:
    """Read and judge; the last value is true when Ctrl-C ended the reading early."""
    from gyrecheck.stream.run_folder import is_run_folder, read_run_folder

    folder = next((Path(p) for p in request.paths if p != "-" and is_run_folder(Path(p))), None)
    files = find_logs(request.paths)
    if folder is not None:
        files = tuple(f for f in files if Path(f.path).parent == folder and Path(f.path).suffix == ".log") or files
    tally, partial = _tally(files, request)
    if folder is not None:
        tally.run_id = read_run_folder(folder).run_id
    snapshot = tally.snapshot(last=True)
    if folder is None and not partial and (not snapshot.series or is_binary(files[0])):
        raise nothing_read(files[0], request, next(f for f in snapshot.files if f.path == files[0].path))
    refuse_unused(snapshot, files, request)
    judged = judge(
        snapshot, codes, topology=request.topology, chosen=request.chosen,
        max_age=request.max_age, age_unit=request.age_unit, left=request.left,
    )  # fmt: skip
    if folder is not None:
        from gyrecheck.verdict.folder import with_folder

        judged = with_folder(judged, read_run_folder(folder), codes, request.topology, request.chosen)
    if not request.quiet and (unused := unused_left(judged, request)):
        write_stderr(unused)
    return judged, snapshot, partial


def _tally(files: tuple[LogFile, ...], request: Request) -> tuple[Tally, bool]:
    tally = Tally()
    logs: list[OpenLog] = [open_log(file, request.ask) for file in files]
    bar = _Bar(sum(f.size for f in files), shown=not request.quiet)
    partial = False
    writer = _Columns(request.columns, force=request.force) if request.columns else None
    plain = len(logs) == 1 and writer is None and request.since is None and request.until is None
    plain = plain and not 0 < files[0].size < COLUMNS_FROM
    batches, ordered = read_logs(() if plain else logs, request.ask, bar)
    try:
        several = processes_for(logs[0]) if plain else 1
        if several > 1 and not tally_in_parts(logs[0], request.ask, several, tally, bar):
            tally, logs, several = Tally(), [open_log(files[0], request.ask)], 1
        if plain and several == 1:
            for columns in read_batches(logs[0], bar):
                tally.feed_batch(columns)
        for batch in batches:
            tally.feed(batch)
            if writer is not None:
                writer.add(batch)
    except KeyboardInterrupt:
        partial = True
    bar.clear()
    if writer is not None:
        writer.close()
    for log in logs:
        tally.saw(log.note())
    tally.ordered = ordered[0]
    return tally, partial


def judge_text(text: str, codes: dict[str, Code], *, topology: str = "", name: str = "run.log", format_: str = "") -> Judgement:
    """Judge a log given as text."""
    data = text.encode("utf-8", "surrogateescape")
    tally, _ = _tally((LogFile(name, len(data), data),), Request((name,), format=format_))
    return judge(tally.snapshot(), codes, topology=topology)


def _beside(request: Request, judged: Judgement, report: Report) -> None:
    if request.figure is not None:
        from gyrecheck.report.figure import draw_run

        draw_run(request.figure, plots_of(judged), force=request.force)
    if request.html is not None:
        from gyrecheck.commands.options import write_file
        from gyrecheck.report.html import render_page

        write_file(request.html, render_page(report, plots_of(judged)), force=request.force)


def plots_of(judged: Judgement) -> tuple[Plot, ...]:
    """What there is to draw."""
    from gyrecheck.commands.ledger_plots import plots

    return plots(judged)


class _Bar:
    """Progress on stderr: only on a terminal, only after half a second, one line, erased at the end."""

    def __init__(self, size: int, *, shown: bool) -> None:
        self._size, self._done, self._start, self._drawn = size, 0, time.monotonic(), 0.0
        self._shown = shown and sys.stderr.isatty()

    def __call__(self, read: int) -> None:
        self._done += read
        now = time.monotonic()
        if self._shown and now - self._start > 0.5 and now - self._drawn > 0.2:
            self._drawn = now
            part = f"{100 * self._done / self._size:3.0f}%" if self._size else ""
            sys.stderr.write(f"\r\x1b[Kreading {self._done / 1e6:,.0f} MB {part}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


class _Columns:
    """All that was read as columns: CSV while reading, or Parquet at the end."""

    def __init__(self, path: Path, *, force: bool) -> None:
        if exists_as_file(path) and not force:
            raise GyreError(f"{path}: exists already", hint="--force overwrites it")
        if path.suffix not in {".csv", ".parquet"}:
            raise GyreError(f"--columns {path}: expected a name that ends in .csv or .parquet", hint="e.g. --columns run.parquet")
        from gyrecheck.stream.columns import columns_writer

        self._writer = columns_writer(path)

    def add(self, batch: list[Reading]) -> None:
        self._writer.add(batch)

    def close(self) -> None:
        self._writer.close()
