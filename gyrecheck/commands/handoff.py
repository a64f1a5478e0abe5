"""`gyrecheck handoff`: what trajectory files hold (`show`), whether they keep the contract (`check`), both sides compared (`diff`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gyrecheck.commands.handoff_diff import diff
from gyrecheck.commands.handoff_options import Field, Files, Schema, WriteSchema, asked, field_options, never_an_input
from gyrecheck.commands.handoff_replay import replay
from gyrecheck.commands.options import (
    Color,
    ColorWhen,
    Config,
    ExitZero,
    FailOnOption,
    Force,
    Ignore,
    Output,
    OutputFormat,
    Quiet,
    Select,
    Undecided,
    UndecidedAs,
    Verbose,
    finish,
    write_file,
)  # fmt: skip

if TYPE_CHECKING:
    from gyrecheck.rulebook.codes import Sample

app = typer.Typer(no_args_is_help=True, help="Compare the fields that the sampler writes and the trainer reads.")
Episode = Annotated[
    str,
    typer.Option("--episode", metavar="ID", help="Print one whole episode first; `first` for the first one.", rich_help_panel="Handoff"),
]


@app.command()
def show(
    files: Files,
    field: Field = None,
    schema: Schema = None,
    write_schema: WriteSchema = None,
    episode: Episode = "",
    config: Config = None,
    output_format: OutputFormat = None,
    output: Output = None,
    force: Force = False,
    color: Color = ColorWhen.AUTO,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    """The table of keys: dtype, shape, range, what is None, NaN or constant, an example."""
    from gyrecheck.commands.handoff_check import show_report

    report, text = show_report(files, field_options(field), schema=schema, config=config, episode=episode, verbose=verbose)
    if write_schema is not None:
        write_file(never_an_input(write_schema, "--write-schema", *files), text, force=force)
    finish(report, output_format=output_format, output=output, color=color, quiet=quiet, force=force)


@app.command()
def check(
    files: Files,
    field: Field = None,
    schema: Schema = None,
    write_schema: WriteSchema = None,
    select: Select = None,
    ignore: Ignore = None,
    config: Config = None,
    output_format: OutputFormat = None,
    output: Output = None,
    force: Force = False,
    color: Color = ColorWhen.AUTO,
    quiet: Quiet = False,
    verbose: Verbose = 0,
    fail_on: FailOnOption = None,
    exit_zero: ExitZero = False,
    undecided: Undecided = UndecidedAs.FAIL,
) -> None:
    """The contract on these files: what is wrong, at which record, and which side must mend it."""
    from gyrecheck.commands.handoff_check import check_report

    report, text = check_report(
        files, field_options(field), schema=schema, config=config, select=tuple(select or ()), ignore=tuple(ignore or ()), verbose=verbose
    )
    if write_schema is not None:
        write_file(never_an_input(write_schema, "--write-schema", *files), text, force=force)
    level = asked(field=field, schema=schema, config=config, fail_on=fail_on).fail_on
    finish(
        report, output_format=output_format, output=output, color=color, quiet=quiet, fail_on=level, exit_zero=exit_zero,
        undecided=undecided, force=force,
    )  # fmt: skip


def prove(sample: Sample) -> tuple[tuple[str, int], ...]:
    """The codes found in one rule sample, each with its record.

    Raises:
        GyreError: the sample cannot be read.
    """
    from gyrecheck.commands.handoff_check import prove as run

    return run(sample)


app.command("diff")(diff)
app.command("replay")(replay)
