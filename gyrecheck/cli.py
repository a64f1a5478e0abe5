"""The command line: which commands exist, and the one place that turns an error into a line on stderr and an exit code."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Annotated

import click
import typer

from gyrecheck import __version__
from gyrecheck.model.errors import ExitCode, GyreError

# name, module under gyrecheck.commands, help panel
COMMANDS = (
    ("lint", "lint", "Code"),
    ("handoff", "handoff", "Handoff"),
    ("run", "run", "Run"),
    ("watch", "watch", "Run"),
    ("ledger", "ledger", "After a run"),
    ("demo", "demo", "Knowledge"),
    ("explain", "explain", "Knowledge"),
    ("rules", "rules", "Knowledge"),
    ("vocab", "vocab", "Knowledge"),
    ("check-rules", "check_rules", "Knowledge"),
    ("doctor", "doctor", "Knowledge"),
)
INTRODUCTION = """Find where sampling and training touch, and whether the data adds up.

\b
  gyrecheck lint src/                     check code in CI
  gyrecheck run -- python train.py        count sample and update calls
  gyrecheck watch runs/latest             look on while it runs
  gyrecheck ledger runs/latest/*.log      after it ended
"""


def build_app(only: str | None = None) -> typer.Typer:
    """The app with every command, or with just the one that will run: a command must not pay for its neighbours' imports."""
    app = typer.Typer(
        name="gyrecheck",
        help=INTRODUCTION,
        epilog="Exit: 0 clean · 1 findings · 2 could not check · 3 undecided",
        rich_markup_mode="rich" if only is None else None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        add_completion=only is None,
    )
    app.callback(invoke_without_command=True)(_root)
    for name, module, panel in COMMANDS:
        if only is not None and name != only:
            continue
        loaded = importlib.import_module(f"gyrecheck.commands.{module}")
        if hasattr(loaded, "app"):
            app.add_typer(loaded.app, name=name, rich_help_panel=panel)
        else:
            settings = getattr(loaded, "CONTEXT_SETTINGS", None)
            app.command(name=name, rich_help_panel=panel, context_settings=settings)(loaded.command)
    return app


def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        typer.echo(f"gyrecheck {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command line; leaves with a number of `ExitCode`."""
    named = next((word for word in sys.argv[1:2] if any(word == name for name, _, _ in COMMANDS)), None)
    wants_help = any(word in {"--help", "-h"} for word in sys.argv[1:])
    completing = "_GYRECHECK_COMPLETE" in os.environ
    try:
        app = build_app(None if completing or (wants_help and named is None) else named)
        code = app(standalone_mode=False)
    except GyreError as error:
        code = _complain(error)
    except click.exceptions.Abort:
        code = int(ExitCode.INTERRUPTED)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        code = int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = int(ExitCode.OK)
    except Exception as error:  # noqa: BLE001 - the last line of defence: a defect of ours is said in one line
        code = _confess(error)
    sys.exit(code if isinstance(code, int) else 0)


def _complain(error: GyreError) -> int:
    sys.stdout.flush()
    typer.echo(f"error: {error.message}", err=True)
    if error.hint:
        typer.echo(f" hint: {error.hint}", err=True)
    return int(error.exit_code)


def _confess(error: Exception) -> int:
    sys.stdout.flush()
    typer.echo(f"internal error: {type(error).__name__}: {error}", err=True)
    if place := os.environ.get("GYRECHECK_TRACEBACK"):
        import traceback

        with open(place, "w", encoding="utf-8") as file:  # noqa: PTH123 - the shortest path when things are broken
            traceback.print_exception(error, file=file)
        typer.echo(f" hint: the traceback is in {place}; please report it", err=True)
    else:
        typer.echo(" hint: set GYRECHECK_TRACEBACK=FILE to keep the traceback, and report it", err=True)
    return int(ExitCode.INTERNAL)
