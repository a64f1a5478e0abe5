"""`gyrecheck doctor`: what this machine has, and which processes of a run were hooked, with what; one clear line each."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gyrecheck.commands.options import Color, ColorWhen, Force, Output, OutputFormat, Quiet, finish
from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import Report, Severity, State, Table, Verdict
from gyrecheck.model.live import HookedRun

if TYPE_CHECKING:
    from gyrecheck.verdict.ruling import Docket

LIBRARIES = ("torch", "gymnasium", "ray", "numpy", "safetensors", "pyarrow", "h5py")
_POOR = {"nfs", "nfs4", "cifs", "smb3", "fuse", "fuse.sshfs", "fuse.s3fs", "9p", "lustre", "overlay"}
"""File systems on which a mapped store may be lost or slow; `overlay` only when it is full."""
_SHARD_BYTES = 1 << 17


def command(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[RUN]", help="A recorded run folder; without it only this machine is looked at.")
    ] = None,
    output_format: OutputFormat = None,
    output: Output = None,
    color: Color = ColorWhen.AUTO,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Say which processes of a run are hooked, which hooks fired, and what is out of their reach."""
    if folder is not None and not folder.is_dir():
        raise GyreError(f"{folder}: no such folder", hint="give the folder of `gyrecheck run --record FOLDER`")
    lines = [*_machine(folder or Path.cwd())]
    verdicts: tuple[Verdict, ...] = ()
    not_judged: tuple[str, ...] = ()
    tables: dict[str, Table] = {}
    if folder is not None:
        from gyrecheck.stream.shards import read_run
        from gyrecheck.verdict.live_sides import tables as tables_of

        run = read_run(folder)
        if run is None:
            raise GyreError(f"{folder}: holds nothing that the hook wrote", hint="gyrecheck run --record FOLDER -- python train.py")
        found, docket = _processes(run)
        lines += found
        verdicts, not_judged = tuple(docket.verdicts), tuple(docket.not_judged)
        tables = {name: table for name, table in tables_of(run).items() if name == "processes"}
    report = Report(
        "doctor",
        (str(folder),) if folder else (),
        heading=tuple(lines),
        verdicts=verdicts,
        tables=tables,
        summary=_summary(verdicts),
        not_judged=not_judged,
    )
    finish(report, output_format=output_format, output=output, color=color, quiet=quiet, force=force, fail_on=Severity.ERROR)


def _summary(verdicts: tuple[Verdict, ...]) -> str:
    broken = sum(v.state is State.BROKEN for v in verdicts)
    things = "1 thing is" if broken == 1 else f"{broken} things are"
    return f"{things} out of the hook's reach." if broken else "Nothing found wrong."


def _machine(folder: Path) -> list[str]:
    """Python, libraries, and whether counters can live in `folder`."""
    versions = ", ".join(f"{name} {version}" for name in LIBRARIES if (version := _version(name)))
    absent = ", ".join(name for name in LIBRARIES if not _version(name))
    kind, at = _file_system(folder)
    usage = shutil.disk_usage(folder)
    room = f"{usage.free / 2**30:,.1f} GiB free"
    if usage.free < _SHARD_BYTES:
        room = f"FULL ({usage.free} bytes free): counts would not be recorded"
    poor = ": mapped counters are not safe here, record on a local disk" if kind in _POOR - {"overlay"} else ""
    writable = "" if os.access(folder, os.W_OK) else "; not writable: counts would not be recorded"
    return [
        f"python     {platform.python_version()} at {sys.executable}",
        f"libraries  {versions or 'none of those the hook knows'}" + (f" (absent: {absent})" if absent else ""),
        f"disk       {kind} at {at}, {room}{poor}{writable}",
    ]


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _file_system(folder: Path) -> tuple[str, str]:
    """Kind and mount point of the file system that holds `folder`; `unknown` where the system does not tell."""
    best = ("unknown", "?")
    try:
        target = str(folder.resolve())
        for line in Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines():
            _, point, kind, *_ = line.split()
            inside = point in {"/", target} or target.startswith(point + "/")
            if inside and len(point) >= len(best[1]):
                best = (kind, point)
    except (OSError, ValueError):
        return best
    return best


def _processes(run: HookedRun) -> tuple[list[str], Docket]:
    """A line for each process and each library, and the verdicts about what the hook does not reach."""
    from gyrecheck.rulebook.codes import load_codes
    from gyrecheck.rulebook.hook_table import load_hook_table
    from gyrecheck.rulebook.thresholds import load_thresholds
    from gyrecheck.verdict.live_reach import judge_reach
    from gyrecheck.verdict.ruling import Docket, Rules

    counting = {p.pid for p in run.processes}
    lines = [
        f"process    pid {p.pid} (of {p.parent}): shard ok, {p.calls('S'):,} sample calls, {p.calls('T'):,} update calls: {p.line[:70]}"
        for p in run.processes
    ]
    idle = [pid for pid in run.reached if pid not in counting]
    if idle:
        pids = ", ".join(map(str, idle[:8]))
        lines.append(f"process    {len(idle)} more reached by the hook, with no library it knows and nothing marked: pid {pids}")
    for event in run.of("hooked"):
        fired, lacking = event.words("fired"), event.words("lacking")
        absent = f"; {len(lacking)} absent: {', '.join(lacking)}" if lacking else ""
        what = f"{event.text('module')} {event.text('version')}: {len(fired)} fired: {', '.join(fired) or 'none'}{absent}"
        lines.append(f"hooks      pid {event.pid}: {what}")
    docket = Docket(Rules(load_codes(), load_thresholds()))
    judge_reach(run, load_hook_table().unhooked, docket)
    if not run.reached:
        docket.skip("the hook was started in no process: python -I, -S or -E, or no Python program")
    return lines, docket
