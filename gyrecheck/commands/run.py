"""`gyrecheck run -- python train.py`: hook a program that nobody changed, and say at its end what its two sides did."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Annotated

import typer

from gyrecheck.commands.options import (
    Color,
    ColorWhen,
    Config,
    FailOnOption,
    Force,
    Ignore,
    OutputFormat,
    Quiet,
    Select,
    TopologyOption,
    fail_level,
    use_color,
    write_file,
    write_stdout,
)
from gyrecheck.commands.streams import write_stderr
from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import Report
from gyrecheck.model.live import HookedRun
from gyrecheck.rulebook.codes import Sample

CONTEXT_SETTINGS = {"ignore_unknown_options": True, "allow_interspersed_args": False}


def command(
    program: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", help="The program and its arguments, e.g. -- python train.py --lr 3e-4.")
    ],
    record: Annotated[
        Path | None, typer.Option("--record", help="Keep counters, events and output in this folder; else they are deleted.")
    ] = None,
    report: Annotated[
        str, typer.Option("--report", metavar="PATH|-", help="A file for the report, or - for standard output; else standard error.")
    ] = "",
    quiet_child: Annotated[bool, typer.Option("--quiet-child", help="Do not show the program's own output.")] = False,
    output_format: OutputFormat = None,
    topology: TopologyOption = None,
    select: Select = None,
    ignore: Ignore = None,
    config: Config = None,
    fail_on: FailOnOption = None,
    color: Color = ColorWhen.AUTO,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Run a program and count its sample and update calls.

    The program's exit code is kept. Findings change it only when --fail-on is given and the program itself ended with 0: then it is 1.
    A program that a signal n ended gives 128 + n. The judgement's own code stands in the report.
    """
    from gyrecheck.hook.program import Program, environment_for, write_table
    from gyrecheck.report.writers import writer
    from gyrecheck.rulebook.codes import load_codes, select_codes
    from gyrecheck.rulebook.hook_table import compiled
    from gyrecheck.rulebook.project_config import load_project_config

    name = (output_format or ["full"])[0]
    writer(name)  # an unknown format is said before the program runs, not after
    if len(output_format or ()) > 1:
        raise GyreError("run writes one format", hint="read the recorded folder again: gyrecheck ledger DIR --output-format ...")
    if report not in {"", "-"} and Path(report).exists() and not force:
        raise GyreError(f"{report}: exists already", hint="--force overwrites it")
    settings = load_project_config(config, Path.cwd())
    extra = settings.rules_folder
    chosen = None
    if select or ignore or settings.select or settings.ignore:
        chosen = select_codes(load_codes(extra), tuple(select or settings.select), (*settings.ignore, *(ignore or ())))
    laid_out = topology or settings.topology
    run_id = uuid.uuid4().hex[:12]
    folder, kept, refused = _folder(record)
    try:
        logs: Path | None = folder
        try:
            write_table(folder, compiled())
        except OSError as error:
            why = refused or error
            write_stderr(f"gyrecheck: nothing is recorded: {folder}: {why.strerror or why}")
            logs = None
        started = time.time()
        try:
            outcome = Program(program, environment_for(folder, run_id), logs, quiet=quiet_child).run()
        except OSError as error:
            hint = "give the program after `--`, as you would start it"
            raise GyreError(f"`{program[0]}` cannot be started: {error.strerror or error}", hint=hint) from error
        declared = laid_out.value if laid_out else ""
        found = _judged(folder, program, outcome.code, declared, chosen, extra, tuple(outcome.problems), started, kept=kept)
        level = fail_level(fail_on, settings.fail_on)
        judged = _exit_code(found, level)
        _deliver(found, judged, name, report, color, force=force)
        if found.next and not quiet:
            write_stderr(f"next: {found.next if not kept else f'gyrecheck ledger {record}'}")
        raise typer.Exit(outcome.code or (judged if fail_on is not None and judged == 1 else 0))
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)


def _folder(record: Path | None) -> tuple[Path, bool, OSError | None]:
    """The run folder, whether it is kept, and why it could not be made."""
    if record is None:
        return Path(tempfile.mkdtemp(prefix="gyrecheck-")), False, None
    if record.is_dir() and any(record.glob("*.shard")):
        raise GyreError(f"{record}: holds the counters of another run", hint="give --record a folder of its own")
    try:
        record.mkdir(parents=True, exist_ok=True)
    except OSError as error:  # said once, when the table cannot be written
        return record, True, error
    return record, True, None


def _judged(
    folder: Path,
    program: list[str],
    code: int,
    topology: str,
    chosen: frozenset[str] | None,
    extra: Path | None,
    problems: tuple[str, ...],
    started: float,
    *,
    kept: bool,
) -> Report:
    import dataclasses

    from gyrecheck.commands.run_report import judge_hook, judge_logs, judge_printed, placed, report_of
    from gyrecheck.stream.shards import read_run

    run = read_run(folder) or HookedRun(str(folder))
    live = judge_hook(run, topology=topology, chosen=chosen, extra=extra)
    logs = judge_logs(folder, run, topology=live.topology, chosen=chosen, extra=extra)
    printed = judge_printed(folder, run, topology=live.topology, chosen=chosen, extra=extra)
    made = report_of("run", (" ".join(program),), live, logs, printed)
    made = made if kept else placed(made, folder)
    not_judged = [*made.not_judged, *problems]
    if not run.reached:
        not_judged.append("the hook was not started in any process (python -I, -S or -E, or no Python program): calls were not counted")
    elif not run.processes:
        not_judged.append(
            "no process loaded a library that the hook knows, and nothing was marked: there are no counts of calls; mark the two sides with gyrecheck.hook.sampling and gyrecheck.hook.training"
        )
    heading = (f"Program ended with {code} after {time.time() - started:.0f} s", *made.heading)
    return dataclasses.replace(made, heading=heading, not_judged=tuple(not_judged), statistics={**made.statistics, "program_exit": code})


def _exit_code(found: Report, level: object) -> int:
    from gyrecheck.model.finding import Severity
    from gyrecheck.verdict.severity import exit_code

    return int(exit_code(found, level if isinstance(level, Severity) else Severity.WARNING))


def _deliver(found: Report, code: int, name: str, place: str, color: ColorWhen, *, force: bool) -> None:
    """The report to standard output (`-`), a file, or standard error, after everything the program wrote."""
    from gyrecheck.report.style import Style
    from gyrecheck.report.writers import writer

    stream = sys.stdout if place == "-" else sys.stderr
    terminal = place in {"", "-"} and stream.isatty()
    text = writer(name)(found, exit_code=code, style=Style(color=use_color(color, terminal=terminal)))
    if place == "-":
        write_stdout(text, painted=True, last=True)
    elif place:
        write_file(Path(place), text, force=force)
    else:
        sys.stderr.write(text if text.endswith("\n") else text + os.linesep)
        sys.stderr.flush()


def prove(sample: Sample) -> tuple[tuple[str, int], ...]:
    """The codes that a sample program shows under the hook."""
    from gyrecheck.commands.hook_samples import prove as run_sample

    return run_sample(sample)
