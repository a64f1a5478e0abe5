"""Options that mean the same in every command, and the one way a command ends: write, say what next, exit."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from gyrecheck.commands.choices import ColorWhen, FailOn, UndecidedAs
from gyrecheck.commands.streams import write_file, write_stderr, write_stdout
from gyrecheck.model.errors import ExitCode, GyreError
from gyrecheck.model.finding import Severity, Topology

if TYPE_CHECKING:
    from gyrecheck.model.finding import Report


__all__ = ["ColorWhen", "FailOn", "UndecidedAs", "write_file", "write_stdout"]  # named elsewhere, asked for here

Config = Annotated[
    Path | None, typer.Option("--config", help="Configuration file (pyproject.toml or gyrecheck.toml).", rich_help_panel="Shared")
]
OutputFormat = Annotated[
    list[str] | None,
    typer.Option(
        "--output-format",
        metavar="NAME[:PATH]",
        help="full, concise, json, … ; several at once, each to its PATH.",
        rich_help_panel="Shared",
    ),
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write the report to this file instead of standard output.", rich_help_panel="Shared")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing output files.", rich_help_panel="Shared")]
Color = Annotated[ColorWhen, typer.Option("--color", help="Colour the report.", rich_help_panel="Shared")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="The report only: no progress, no next line.", rich_help_panel="Shared")]
Verbose = Annotated[
    int, typer.Option("--verbose", "-v", count=True, help="Say which rule files were read and what was skipped.", rich_help_panel="Shared")
]
FailOnOption = Annotated[
    FailOn | None, typer.Option("--fail-on", help="Lowest severity that gives exit 1 (default: warning).", rich_help_panel="Shared")
]
ExitZero = Annotated[bool, typer.Option("--exit-zero", help="Exit 0 whatever is found.", rich_help_panel="Shared")]
Undecided = Annotated[UndecidedAs, typer.Option("--undecided", help="Whether an undecided verdict gives exit 3.", rich_help_panel="Shared")]
TopologyOption = Annotated[
    Topology | None, typer.Option("--topology", help="How the two sides are laid out; inferred when not given.", rich_help_panel="Shared")
]
Select = Annotated[list[str] | None, typer.Option("--select", help="Codes, prefixes or names to check.", rich_help_panel="Shared")]
Ignore = Annotated[list[str] | None, typer.Option("--ignore", help="Codes, prefixes or names to leave out.", rich_help_panel="Shared")]


def fail_level(option: FailOn | None, configured: Severity | None = None) -> Severity:
    """The level from the command line, else the project's, else warning; `never` is `OFF`."""
    if option is None:
        return configured or Severity.WARNING
    return Severity.OFF if option is FailOn.NEVER else Severity(option.value)


def use_color(when: ColorWhen, *, terminal: bool) -> bool:
    """`--color` beats a non-empty NO_COLOR, which beats FORCE_COLOR; TERM=dumb is off."""
    if when is not ColorWhen.AUTO:
        return when is ColorWhen.ALWAYS
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return terminal and os.environ.get("TERM") != "dumb"


def finish(
    report: Report,
    *,
    output_format: list[str] | None = None,
    output: Path | None = None,
    color: ColorWhen = ColorWhen.AUTO,
    quiet: bool = False,
    fail_on: Severity = Severity.WARNING,
    exit_zero: bool = False,
    undecided: UndecidedAs = UndecidedAs.FAIL,
    force: bool = False,
) -> NoReturn:
    """Write the report in every format asked for, print the next command on stderr, and leave with the report's exit code.

    Raises:
        GyreError: an unknown format, two formats for one stream, or an existing file without `--force`.
    """
    from gyrecheck.verdict.severity import exit_code

    code = 0 if exit_zero else int(exit_code(report, fail_on, undecided_ok=undecided is UndecidedAs.OK))
    if report.partial:
        code = int(ExitCode.INTERRUPTED)
    emit(report, code, output_format=output_format, output=output, color=color, force=force)
    if report.next and not quiet:
        write_stderr(f"next: {report.next}")
    raise typer.Exit(code)


def emit(
    report: Report,
    code: int,
    *,
    output_format: list[str] | None = None,
    output: Path | None = None,
    color: ColorWhen = ColorWhen.AUTO,
    force: bool = False,
) -> None:
    """Write the report without leaving; see `finish`."""
    from gyrecheck.report.style import Style
    from gyrecheck.report.writers import writer

    targets: list[tuple[str, Path | None]] = []
    for given in output_format or ["full"]:
        name, _, place = given.partition(":")
        targets.append((name, Path(place) if place else None))
    if output is not None:
        if targets[0][1] is not None:
            raise GyreError("--output and a path in --output-format name two files", hint="give one of them")
        targets[0] = (targets[0][0], output)
    if sum(path is None for _, path in targets) > 1:
        raise GyreError("two formats for standard output", hint="give one a file: --output-format sarif:out.sarif")
    inputs = {Path(given).resolve() for given in report.inputs if given != "-"}
    for _, path in targets:
        if path is not None and path.resolve() in inputs:
            raise GyreError(f"--output {path}: is read by this command, and is not overwritten", hint="give another path")
    for name, path in targets:
        terminal = path is None and sys.stdout.isatty()
        width = shutil.get_terminal_size().columns if terminal else 0
        text = writer(name)(report, exit_code=code, style=Style(color=use_color(color, terminal=terminal), width=width))
        if path is None:
            write_stdout(text, painted=True, last=True)
        else:
            write_file(path, text, force=force)
